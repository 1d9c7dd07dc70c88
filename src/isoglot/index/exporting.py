"""The sentences of an index as a file: Parquet with vectors, a table, JSON lines, or a translation memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from isoglot.core.errors import OutputError
from isoglot.data.formats import write_table
from isoglot.data.tmx import Unit, write_tmx
from isoglot.index.origin import Origin
from isoglot.index.store import Sentence
from isoglot.index.table import Vectors
from isoglot.index.units import group

_COLUMNS = ("id", "text", "language")
_TRANSLATED = (*_COLUMNS, "translation", "translation_language")
Pieces = Iterable[tuple[Sequence[Sentence], Vectors]]


def write(path: Path, form: str, pieces: Pieces, origin: Origin, *, translated: bool) -> int:
    """Write the sentences in a format; the number of rows, or of a TMX of translation units.

    `translated`: with columns for translations. Raises `OutputError`, and `MissingExtraError` without pyarrow.
    """
    names = _TRANSLATED if translated else _COLUMNS
    if form == "tmx":
        if not translated:
            raise OutputError(f"{path}: no sentence has a translation; export TSV or JSON lines, or index pairs")
        return write_tmx(path, _units(pieces))
    metadata = {"isoglot.model": origin.name, "isoglot.identity": origin.identity}
    vectors = {"vector": origin.dim} if form == "parquet" else {}
    blocks = (
        [*([getattr(one, name) for one in sentences] for name in names), *([rows] if vectors else [])]
        for sentences, rows in pieces
    )
    return write_table(path, form, {**dict.fromkeys(names, "string"), **vectors}, blocks, metadata=metadata)


def _units(pieces: Pieces) -> Iterator[Unit]:
    """Each entry with a translation; of entries with equal sentences the first."""
    written: set[int] = set()  # so that a memory of millions of units needs no copy of its texts
    for unit in group(chain.from_iterable(sentences for sentences, _ in pieces)):
        sides = dict.fromkeys(
            (code, text)
            for one in unit.sentences
            for code, text in ((one.language, one.text), (one.translation_language, one.translation))
            if text is not None
        )
        if len(sides) > 1 and unit.content not in written:
            written.add(unit.content)
            yield {"tuid": unit.id}, [*sides]
