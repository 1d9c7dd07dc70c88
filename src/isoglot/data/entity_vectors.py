"""Vectors of entities by Wikipedia2Vec (Yamada et al. 2020), brought into the order of a table of entities.

Two kinds of file are read: its text formats, where entities are the lines that begin with `ENTITY/`, and the models
that the library saves. An entity is looked up by its title in the Wikipedia that the vectors were trained on. A table
of titles gives these exactly; without it the labels of the entities are used, which are English titles where an entity
has one.

    entity_vectors.npy   (E, D) float32, row i for line i of entities.tsv, NaN where an entity has no vector
    entity_vectors.json  the table they belong to (SHA-256), their file, how many there are, and the ids without one
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import CorpusError, EncoderError
from isoglot.data.files import atomic_write, digest, first_bytes, read_lines, write_record
from isoglot.data.readers.entities import TABLE, read_table
from isoglot.data.vectors import open_table
from isoglot.data.vectors import write_vectors as write_table

VECTORS = "entity_vectors.npy"
Table: TypeAlias = NDArray[np.float32]

_PREFIX = "ENTITY/"
_PICKLE = b"\x80"


@dataclass(frozen=True, slots=True)
class Aligned:
    """Vectors (E, D), NaN where an entity has none, and the ids (E,) of their rows."""

    vectors: Table
    ids: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids without a vector."""
        without = np.asarray(np.isnan(self.vectors).any(axis=1))
        return tuple(name for name, none in zip(self.ids, without, strict=True) if none)


def align(
    vectors: Path, folder: Path, *, titles: Iterable[tuple[str, str]] | None = None, allow_pickle: bool = False
) -> Aligned:
    """The vectors of the entities of a folder that `isoglot wikipedia` wrote.

    `titles` are pairs of title and id (`isoglot.wikipedia.entities.read_titles`); without it labels are titles.
    A saved model is a pickle, which can run any code when it is read, so it is rejected unless `allow_pickle` is set.
    Kept in memory: the titles and the table. Raises `CorpusError` when a file cannot be read or no entity is found.
    """
    entities = list(read_table(folder / TABLE))
    ids = tuple(name for name, _, _ in entities)
    if titles is None:
        wanted = _rows((label, row) for row, (_, _, label) in enumerate(entities))
    else:
        place = {name: row for row, name in enumerate(ids)}
        wanted = _rows((title, place[name]) for title, name in titles if name in place)
    read = _read_text
    if first_bytes(vectors)[:1] == _PICKLE:
        if not allow_pickle:
            problem = "is a pickle, which can run any code when it is read; if you trust where it is from, pass it to"
            problem += " `isoglot entities --vectors FILE --allow-pickle`, or save the model as text"
            raise CorpusError(problem, file=vectors)
        read = _read_model
    table: Table | None = None
    for row, vector in read(vectors, wanted):
        if table is None:
            table = np.full((len(ids), len(vector)), np.nan, np.float32)
        if np.isnan(table[row, 0]):
            table[row] = vector
    if table is None:
        asked = "the titles that were given" if titles is not None else f"the labels of {folder / TABLE}"
        raise CorpusError(f"no entity matches any of {asked}; use titles in its language", file=vectors)
    return Aligned(table, ids)


def write_vectors(aligned: Aligned, folder: Path, *, source: Path) -> Path:
    """Write the table and its note into the folder of the entities; returns the table's path."""
    path = folder / VECTORS
    note: dict[str, Any] = {"entities": digest(folder / TABLE), "source": source.name}
    note |= {"rows": len(aligned.ids), "dim": aligned.vectors.shape[1], "missing": aligned.missing}
    path.with_suffix(".json").unlink(missing_ok=True)  # so that there is never an old note next to new vectors
    with atomic_write(path, binary=True) as stream:
        write_table(stream, aligned.vectors, (), form="npy")
    write_record(path.with_suffix(".json"), note)
    return path


def read_vectors(path: Path, *, entities: Path | None = None) -> Table:
    """A table (E, D) that `write_vectors` wrote or, with the folder of `entities`, any file that `align` reads.

    Raises `CorpusError` for a file that is neither, and for a table that belongs to other entities.
    """
    if path.suffix != ".npy":
        if entities is None:
            problem = "is not aligned with a table of entities; name their folder in `entities`"
            raise CorpusError(f"{problem}, or run isoglot entities", file=path)
        return align(path, entities).vectors
    table = open_table(path)
    if not len(table):
        raise CorpusError("contains no vectors; write it with isoglot entities", file=path)
    _require_same(path, len(table))
    read = np.array(table, np.float32)
    if (wrong := np.isinf(read).any(axis=1)).any():  # rows of NaN are entities without a vector
        raise CorpusError(f"row {int(wrong.argmax())} contains infinity; write it with isoglot entities", file=path)
    return read


def _require_same(path: Path, rows: int) -> None:
    """Raise `CorpusError` if the table of entities has changed since the vectors were written."""
    note, beside = path.with_suffix(".json"), path.with_name(TABLE)
    if not note.exists() or not beside.exists():
        return
    try:
        recorded = json.loads(note.read_text(encoding="utf-8"))
        same = recorded["entities"] == digest(beside) and recorded["rows"] == rows
    except (ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"damaged ({error}); run isoglot entities again", file=note) from None
    if not same:
        raise CorpusError(f"belongs to another {TABLE} than the one next to it; run isoglot entities again", file=path)


def _rows(named: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Map titles to rows; a title of several entities is ambiguous and left out."""
    rows: dict[str, int] = {}
    for title, row in named:
        rows[title] = row if rows.get(title, row) == row else -1
    return {title: row for title, row in rows.items() if row >= 0 and title}


def _read_text(path: Path, wanted: dict[str, int]) -> Iterator[tuple[int, Table]]:
    """Rows and their vectors, in the order of the file.

    They are `ENTITY/A title TAB 0.1 0.2 ...`, or `ENTITY/A_title 0.1 0.2 ...` where words are between spaces, too.
    """
    width, entities = 0, 0
    for number, line in read_lines(path):
        if not line.startswith(_PREFIX):
            continue
        entities += 1
        name, _, values = line.partition("\t" if "\t" in line else " ")
        row = wanted.get(name.removeprefix(_PREFIX).replace("_", " "))
        if row is None:
            continue
        try:
            vector = np.array(values.split(), dtype=np.float32)
        except ValueError as error:
            raise CorpusError(f"not a vector ({error}); copy the file again", file=path, line=number) from None
        width = width or len(vector)
        if len(vector) != width or not width or not np.isfinite(vector).all():
            problem = f"{len(vector)} numbers where {width or 'some'} finite ones are expected; copy the file again"
            raise CorpusError(problem, file=path, line=number)
        yield row, vector
    if not entities:
        raise CorpusError(f"contains no line that begins with {_PREFIX}; use vectors of Wikipedia2Vec", file=path)


def _read_model(path: Path, wanted: dict[str, int]) -> Iterator[tuple[int, Table]]:
    """By the library, which follows redirects that it knows."""
    library = wikipedia2vec()
    with path.open("rb") as stream:
        compressed = stream.read(1) != _PICKLE  # then it cannot be mapped
    try:
        model = library.Wikipedia2Vec.load(str(path), None if compressed else "c")
        entities = [(row, model.get_entity(title)) for title, row in wanted.items()]
        vectors = [(row, np.asarray(model.get_vector(entity), np.float32)) for row, entity in entities if entity]
    except Exception as error:  # a pickle can fail in any way
        raise CorpusError(f"not a model of Wikipedia2Vec ({error!r}); copy or train it again", file=path) from error
    yield from vectors


def wikipedia2vec(part: str = "") -> Any:
    """The library, or a module of it. Raises `EncoderError` where it is not installed, or built for other libraries."""
    try:
        return import_module(f"wikipedia2vec{part and '.'}{part}")
    except ImportError as error:
        raise EncoderError(f'Wikipedia2Vec is needed ({error}): pip install "isoglot[wikipedia]"') from error
