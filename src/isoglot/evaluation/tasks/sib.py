"""The tables of SIB-200 (Adelani et al. 2024): where they lie, and their rows, for its topics and its translations.

A table is `<xxx_Xxxx>/train.tsv`, `dev.tsv` or `test.tsv`: tab-separated with CSV quotes, so that a cell may hold a
line feed, and a header. A row's `index_id` is that of its sentence in FLORES-200, the same in every language.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from isoglot.errors import EvaluationError
from isoglot.evaluation.files import lines

PLACES = ("sib-200/annotated", "sib-200", "sib-200/data/annotated", "", "annotated", "data/annotated")
_HEADER = ["index_id", "category", "text"]


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence with its topic; `line` is the last one of the row in the file."""

    number: int
    category: str
    text: str
    line: int


def read_table(path: Path, *, where: str) -> Iterator[Row]:
    """The rows of a table. Raises `EvaluationError`, opened by `where`, with file and line for any other content."""
    # The reader is given line ends, as a quoted cell may hold one, and tells the line itself.
    cells = csv.reader((line + "\n" for line in lines(path, where=where, blank=True)), delimiter="\t", strict=True)
    seen: set[int] = set()
    try:
        if next(cells, None) != _HEADER:
            raise EvaluationError(f"{where}: {path}:1: the header is not {', '.join(_HEADER)}; fetch the file again")
        for row in cells:
            place = f"{where}: {path}:{cells.line_num}"
            if len(row) != 3 or not row[0].isdecimal() or not all(cell.strip() for cell in row):
                raise EvaluationError(f"{place}: is no row of index_id, category and text; fetch the file again")
            if int(row[0]) in seen:
                raise EvaluationError(f"{place}: index_id {row[0]} stands twice; fetch the file again")
            seen.add(int(row[0]))
            yield Row(int(row[0]), row[1], row[2], cells.line_num)
    except csv.Error as error:
        raise EvaluationError(
            f"{where}: {path}:{cells.line_num}: is not quoted as CSV ({error}); fetch it again"
        ) from None
