"""The formats that tables of text are written in: how their names end, and how a row is written.

`mine` and `Index.export` write them. A format of lines is an entry of `SUFFIXES` and one of `LINES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.data.vectors import write_parquet
from isoglot.errors import OutputError, nearest

SUFFIXES = {".tsv": "tsv", ".jsonl": "jsonl", ".tmx": "tmx", ".parquet": "parquet"}
_BREAKS = re.compile(r"[\t\r\n]")


def format_of(path: Path, suffixes: Mapping[str, str] = SUFFIXES, *, given: str | None = None, advice: str = "") -> str:
    """The format given, or that of a file name, by its suffix. Raises `OutputError` for any other, with the advice."""
    if given is not None and given not in suffixes.values():
        raise OutputError(f"unknown format {given!r}; {nearest(given, suffixes.values())}")
    if given is not None:
        return given
    if (suffix := path.suffix.lower()) not in suffixes:
        problem = f"{path}: can't infer a format from {path.suffix!r}; {nearest(suffix, filter(None, suffixes))}"
        raise OutputError(f"{problem} {advice}".strip())
    return suffixes[suffix]


def one_line(text: str) -> str:
    """The text with spaces for tabs and line ends."""
    return _BREAKS.sub(" ", text)


def _tsv_line(row: Mapping[str, Any]) -> str:
    cells = (f"{cell:.6f}" if isinstance(cell, float) else "" if cell is None else str(cell) for cell in row.values())
    return "\t".join(map(one_line, cells))


def _json_line(row: Mapping[str, Any]) -> str:
    cells = {name: round(cell, 6) if isinstance(cell, float) else cell for name, cell in row.items()}
    return json.dumps({name: cell for name, cell in cells.items() if cell is not None}, ensure_ascii=False)


LINES: dict[str, Callable[[Mapping[str, Any]], str]] = {"tsv": _tsv_line, "jsonl": _json_line}


def write_table(
    path: Path,
    form: str,
    columns: Mapping[str, str | int],
    blocks: Iterable[Sequence[Any]],
    *,
    header: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> int:
    """Write a table in Parquet or a format of `LINES`, as a whole or not at all. Returns the number of rows.

    columns, blocks  as `write_parquet` takes them
    header           of TSV: the first line has the names
    metadata         of Parquet

    Text has six decimals of a float. None is an empty cell of TSV, and left out in JSON lines. Raises `OutputError`.
    """
    if form == "parquet":
        with atomic_write(path, binary=True) as stream:
            return write_parquet(stream, columns, blocks, metadata=metadata)
    rows = (dict(zip(columns, cells, strict=True)) for block in blocks for cells in zip(*block, strict=True))
    count = 0
    with atomic_write(path) as lines:
        if form == "tsv" and header:
            lines.write("\t".join(columns) + "\n")
        for count, row in enumerate(rows, 1):  # noqa: B007 - it is returned
            lines.write(LINES[form](row) + "\n")
    return count
