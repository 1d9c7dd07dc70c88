"""The normal form of a data set: JSON lines of texts with a label, one file for each split and subset.

Test sets are published in about thirty layouts. An importer (`importers.py`) turns each of them into `Part`s; the tasks
read nothing else. A part keeps the file and the line from which each text was read, so that messages can name them.
Reading published files is faster than unpacking a copy, so nothing is kept in a cache; `import_set` writes the parts of
a set into a folder with a manifest, for other programs.

    {"texts": ["Guten Morgen!", "Good morning!"], "langs": ["deu", "eng"], "label": 4.5, "places": ["a.tsv:3"]}

A row without a label, an identifier or the name of a label lacks these keys. The reader `jsonl` reads the files too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_write, collect, write_record
from isoglot.data.formats import read_records
from isoglot.data.sets.content import measure

VERSION = 1  # version of the importers; increase it when one of them yields other rows for the same files
MANIFEST = "normal.json"


class Row(NamedTuple):
    """One row: one or two texts, where each was read (one place for both if they stood in one line), and its label.

    `id` is the identifier of the row in the set; `name` is the name of a numbered label.
    """

    texts: tuple[str, ...]
    places: tuple[str, ...]
    label: str | int | float | None = None
    id: str = ""
    name: str = ""


class Rows(tuple[Row, ...]):
    """The rows of a part, with their columns."""

    __slots__ = ()

    def texts(self, side: int = 0) -> list[str]:
        """The texts of one column."""
        return [row.texts[side] for row in self]

    def place(self, side: int = 0) -> Callable[[int], str]:
        """A function from a row number to where the text of that column was read (`file:line`)."""
        return lambda row: self[row].places[side if len(self[row].places) > 1 else 0]

    @property
    def labels(self) -> tuple[Any, ...]:
        """The label of each row."""
        return tuple(row.label for row in self)


class Columns:
    """The two texts of many rows, with the place of each row: what `Rows` without labels give, in half the memory."""

    def __init__(self) -> None:
        self.sides: tuple[list[str], list[str]] = [], []
        self.places: list[str] = []

    def texts(self, side: int = 0) -> list[str]:
        """The texts of one column."""
        return self.sides[side]

    def place(self, side: int = 0) -> Callable[[int], str]:  # noqa: ARG002
        """A function from a row number to where the row was read."""
        return self.places.__getitem__


Texts = Rows | Columns


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One split of one subset of a set. Nothing is read before `rows` is called.

    `languages` are those of the texts of a row, in the codes of the set. `files` are the published files; `labelled`
    is whether its rows have labels, judged by the first line.
    """

    split: str
    subset: str
    languages: tuple[str, ...]
    files: tuple[Path, ...]
    rows: Callable[[], Iterable[Row]]
    labelled: bool = True


# (split, subset) -> part, in the order of the set.
Parts = dict[tuple[str, str], Part]


def parts_of(parts: Iterable[Part]) -> Parts:
    """The parts by name; of two with the same name, the first."""
    named: Parts = {}
    for part in parts:
        named.setdefault((part.split, part.subset), part)
    return named


def import_set(name: str, parts: Parts, folder: Path) -> int:
    """Write the parts in the normal form, and a manifest with a checksum of each published file; the number of rows.

    The manifest of a new folder lists no parts until all are written: an interrupted import does not count as a set,
    and can be repeated there. An old manifest stays until then. Raises `CorpusError` for files that cannot be used,
    `OutputError` for a folder that cannot be written.
    """
    entries: list[dict[str, Any]] = []
    total = 0
    if not (folder / MANIFEST).exists():
        _write_manifest(name, [], folder)
    for (split, subset), part in parts.items():
        rows = Rows(part.rows())
        file = f"{split}/{subset}.jsonl"
        with atomic_write(folder / file) as lines:
            lines.writelines(map(partial(_json_line, part.languages), rows))
        published = {str(path): measure(path).sha256 for path in part.files}
        entry = {"split": split, "subset": subset, "languages": part.languages, "labelled": part.labelled}
        entries.append({**entry, "file": file, "rows": len(rows), "published": published})
        total += len(rows)
    _write_manifest(name, entries, folder)
    return total


def _write_manifest(name: str, entries: list[dict[str, Any]], folder: Path) -> None:
    write_record(folder / MANIFEST, {"set": name, "importer": VERSION, "parts": entries})


def _json_line(languages: tuple[str, ...], row: Row) -> str:
    record = {"texts": row.texts, "langs": languages, "label": row.label, "id": row.id, "name": row.name}
    present = {key: value for key, value in record.items() if value not in (None, "")}
    return json.dumps({**present, "places": row.places}, ensure_ascii=False) + "\n"


def load_parts(name: str, folder: Path) -> Parts:
    """The parts of a set in its normal form; none where the folder has no manifest of this set.

    Raises `CorpusError` for a manifest that cannot be used.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return {}
    collect([path])
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["set"] != name:
            return {}
        parts = []
        for entry in manifest["parts"]:
            split, subset, languages, file = entry["split"], entry["subset"], entry["languages"], folder / entry["file"]
            rows = partial(read_rows, file)
            parts.append(Part(split, subset, tuple(languages), (file,), rows, bool(entry["labelled"])))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CorpusError("not the manifest of an imported set; import the set again", file=path) from error
    return parts_of(parts)


def read(part: Part) -> Rows:
    """The rows of a part. Raises `CorpusError` with file and line for files that cannot be used, and for no rows."""
    rows = Rows(part.rows())
    if not rows:
        raise CorpusError("has no row that can be scored; get the file again", file=next(iter(part.files), None))
    return rows


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file in the normal form. Raises `CorpusError`."""
    for number, record in read_records(path):
        try:
            texts, places = tuple(record["texts"]), tuple(record["places"])
            row = Row(texts, places, record.get("label"), record.get("id", ""), record.get("name", ""))
            if not texts or not places or not all(isinstance(cell, str) for cell in (*texts, *places)):
                raise TypeError
        except (KeyError, TypeError):
            problem = "is not a row of texts and places; import the set again"
            raise CorpusError(problem, file=path, line=number) from None
        yield row
