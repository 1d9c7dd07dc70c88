"""Triplets from natural language inference: premise, entailment, contradiction, as TSV or as SimCSE's quoted CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from isoglot.data.files import read_lines, without_compression
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.records import Group
from isoglot.errors import CorpusError

_HEADERS = {
    *(("sent0", "sent1", "hard_neg"), ("sent0", "sent1")),
    *(("premise", "entailment", "contradiction"), ("premise", "entailment")),
    *(("anchor", "positive", "negative"), ("anchor", "positive")),
}


def read_nli(path: str | Path, *, language: str = UNKNOWN) -> Iterator[Group]:
    """A pair (premise, entailment) a row, keyed by the premise, with the contradiction as hard negative.

    Quoted CSV when the name ends in `.csv`, before any compression; else unquoted TSV. Columns in that order, under
    one of the usual headers (`sent0,sent1,hard_neg`; `premise,entailment,contradiction`; `anchor,positive,negative`)
    or none; the contradiction may be blank or missing. Raises `CorpusError` for another number of columns and for a
    blank premise or entailment.
    """
    code = canonical(language, file=path)
    rows = _csv_rows(path) if without_compression(str(path)).endswith(".csv") else _tsv_rows(path)
    empty = True
    for place, (line, cells) in enumerate(rows):
        if place == 0 and tuple(cell.strip().lower() for cell in cells) in _HEADERS:
            continue
        if not 2 <= len(cells) <= 3:
            raise CorpusError(
                f"{len(cells)} columns where premise, entailment and contradiction are expected", file=path, line=line
            )
        empty = False
        yield _group(cells, code, path, line)
    if empty:
        raise CorpusError("holds a header and no text below it", file=path)


def _group(cells: list[str], code: str, path: str | Path, line: int) -> Group:
    for name, cell in zip(("premise", "entailment"), cells, strict=False):
        if not cell.strip():
            raise CorpusError(f"the {name} is empty; remove the row", file=path, line=line)
    contradictions = tuple(cell for cell in cells[2:] if cell.strip())
    return Group((cells[0], cells[1]), (code, code), cells[0], contradictions, (code,) * len(contradictions))


def _tsv_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    for number, text in read_lines(path):
        yield number, text.split("\t")


def _csv_rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    rows = csv.reader((text + "\n" for _, text in read_lines(path)), strict=True)
    while True:
        first = rows.line_num + 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise CorpusError(f"not CSV ({error}); check the quotes of this row", file=path, line=first) from None
        yield first, cells
