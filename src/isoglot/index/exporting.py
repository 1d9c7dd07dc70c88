"""The sentences of an index as a file: Parquet with vectors, a table, JSON lines, or a translation memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from isoglot.data.files import atomic_write
from isoglot.data.tmx import Unit, write_tmx
from isoglot.data.vectors import write_parquet
from isoglot.errors import OutputError, nearest
from isoglot.index.origin import Origin
from isoglot.index.store import Sentence
from isoglot.index.table import Vectors

FORMATS = {".parquet": "parquet", ".tsv": "tsv", ".jsonl": "jsonl", ".tmx": "tmx"}
_COLUMNS = ("id", "text", "language")
_TRANSLATED = (*_COLUMNS, "translation", "translation_language")
_BREAKS = re.compile(r"[\t\r\n]")
Pieces = Iterable[tuple[Sequence[Sentence], Vectors]]


def format_of(path: Path, given: str | None = None) -> str:
    """The format given, or that of the suffix of a file name. Raises `OutputError` for any other."""
    if given is not None:
        if given not in FORMATS.values():
            raise OutputError(f"unknown format {given!r}; {nearest(given, FORMATS.values())}")
        return given
    if (suffix := path.suffix.lower()) not in FORMATS:
        raise OutputError(f"{path}: can't infer a format from {path.suffix!r}; {nearest(suffix, FORMATS)}")
    return FORMATS[suffix]


def write(path: Path, form: str, pieces: Pieces, origin: Origin, *, translated: bool) -> int:
    """Write the sentences in a format; the number of rows, or of a TMX of translation units.

    `translated`: with columns for translations. Raises `OutputError`, also without pyarrow.
    """
    names = _TRANSLATED if translated else _COLUMNS
    if form == "tmx":
        if not translated:
            raise OutputError(f"{path}: no sentence has a translation; export TSV or JSON lines, or index pairs")
        return write_tmx(path, _units(pieces))
    if form == "parquet":
        known = {"isoglot.model": origin.name, "isoglot.identity": origin.identity}
        blocks = ([*([getattr(one, name) for one in some] for name in names), rows] for some, rows in pieces)
        with atomic_write(path, binary=True) as stream:
            columns = dict.fromkeys(names, "string") | {"vector": origin.dim}
            return write_parquet(stream, columns, blocks, metadata=known)
    rows = 0
    with atomic_write(path) as stream:
        if form == "tsv":
            stream.write("\t".join(names) + "\n")
        for sentence in _sentences(pieces):
            rows += 1
            values = {name: value for name, value in asdict(sentence).items() if name in names}
            if form == "tsv":
                stream.write("\t".join(_BREAKS.sub(" ", values[name] or "") for name in names) + "\n")
            else:
                given = {name: value for name, value in values.items() if value is not None}
                stream.write(json.dumps(given, ensure_ascii=False) + "\n")
    return rows


def _sentences(pieces: Pieces) -> Iterator[Sentence]:
    for sentences, _ in pieces:
        yield from sentences


def _units(pieces: Pieces) -> Iterator[Unit]:
    """Each pair of a sentence and its translation once, though each of the two may be a row with the other."""
    seen: set[int] = set()  # hashes of 64 bits, so that a memory of millions of units needs no copy of its texts
    for one in _sentences(pieces):
        if one.translation is None:
            continue
        unit = ((one.language, one.text), (one.translation_language, one.translation))
        if (mark := hash(frozenset(unit))) not in seen:
            seen.add(mark)
            yield {}, unit
