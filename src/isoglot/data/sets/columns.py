"""How lines and records of published files become rows of the normal form: a description of their columns.

Errors are `CorpusError`s with file and line. Missing values are errors. So are carriage returns, since such a copy of
the set may differ in more than its line ends, except in sets published with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal

from isoglot.core.errors import CorpusError
from isoglot.data.files import read_lines
from isoglot.data.formats import csv_cells
from isoglot.data.sets.exports import records
from isoglot.data.sets.normal import Row

ANY_SCALE = (-math.inf, math.inf)
# Place, place of the cell that comes from a second file (else the same), cells by the names of their columns.
Table = Iterable[tuple[str, str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns a file has, and which of them make a row.

    names    the columns in their order, between blanks; a single one is the whole line; of records and below a header
             those that are needed, others may be between them
    form     `tabs`: cells between tabs, without quoting; `csv`: quoted cells between commas or tabs; `records`: JSON
             lines or Parquet
    header   the first line has the names of the columns
    surplus  of a line with more tabs than columns: an error, `ignored`, or `joined` to the last column
    beside   the column whose cells are the lines of a second file, which with `beside_shorter` may end earlier: rows
             below have no label
    texts    the columns of the sentences, between blanks
    label    the column of the label; "": none
    scale    the label is a number from one to the other; a row where it is blank was not rated and is left out
    classes  all labels that there are
    kind     type of the label in records; whole numbers stay numbers if it is `int`
    id       the column of the identifier, which is unique; "#": the number of the row
    clean    applied to sentences and labels
    blank    sentences without text are an error that ends with `advice`, `kept`, or `skipped` with their row
    carriage_returns  the set is published with them
    """

    names: str = "text"
    _: KW_ONLY
    form: Literal["tabs", "csv", "records"] = "tabs"
    header: bool = False
    surplus: Literal["error", "ignored", "joined"] = "error"
    beside: str = ""
    beside_shorter: bool = False
    texts: str = "text"
    label: str = ""
    scale: tuple[float, float] | None = None
    classes: tuple[str, ...] = ()
    kind: Any = str
    id: str = ""
    clean: Callable[[str], str] = str
    blank: Literal["error", "kept", "skipped"] = "error"
    advice: str = "restore it"
    carriage_returns: bool = False

    def read(self, paths: Sequence[Path], beside: Path | None = None, *, swap: bool = False) -> Iterator[Row]:
        """The rows of the files; `swap` puts the second sentence first."""
        table: Table = ((place, place, cells) for place, cells in self._table(paths))
        return self.rows(table if beside is None else self._join(table, paths[0], beside), swap=swap)

    def rows(self, table: Table, *, swap: bool = False) -> Iterator[Row]:
        """The rows of a table, which are checked."""
        place_of_id: dict[str, str] = {}
        names = self.texts.split()
        for number, (place, other, cells) in enumerate(table, 1):
            label = self._label(cells.get(self.label), other if self.label == self.beside else place)
            if label is None and self.scale is not None:
                continue
            texts = [cells[name] for name in names]
            if self.blank == "skipped" and not any(text.strip() for text in texts):
                continue
            for name, text in zip(names, texts, strict=True):
                if not isinstance(text, str) or not (text.strip() or self.blank == "kept"):
                    where = other if name == self.beside else place
                    raise CorpusError(f"{where}: {name} {text!r} is empty or not text; {self.advice}")
            key = str(number) if self.id == "#" else str(cells.get(self.id, ""))
            if self.id and not key.strip():
                raise CorpusError(f"{place}: {self.id} is empty; restore it")
            if self.id and place_of_id.setdefault(key, place) != place:
                raise CorpusError(f"{place}: the id {key!r} is in {place_of_id[key]} already; make ids unique")
            label_name = str(cells.get("label_text", label)) if self.kind is int else ""
            places = (place, other) if self.beside in names else (place,)
            yield Row(tuple(map(self.clean, texts[::-1] if swap else texts)), places, label, key, label_name)

    def _label(self, cell: Any, place: str) -> str | int | float | None:
        if self.scale is not None:
            return number_of(cell, place, self.scale)
        if not self.label or (cell is None and self.classes):
            return None
        if self.classes and cell not in self.classes:
            raise CorpusError(f"{place}: the label {cell!r} is not one of {', '.join(self.classes)}; correct it")
        if not isinstance(cell, self.kind) or not str(cell).strip():
            raise CorpusError(f"{place}: {self.label} {cell!r} is empty or not a label; correct it")
        return int(cell) if self.kind is int else self.clean(str(cell))

    def _table(self, paths: Sequence[Path]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        if self.form == "records":
            yield from records(paths, self.names.split())
            return
        [path] = paths
        rows, names = self._split(path), self.names.split()
        if self.header:
            names = [cell.strip() for cell in next(rows, (1, []))[1]]
            if missing := [name for name in self.names.split() if name not in names]:
                raise CorpusError(f"the header lacks {', '.join(missing)}; add these column names", file=path, line=1)
        for line, cells in rows:
            if len(cells) < len(names) or (len(cells) > len(names) and self.surplus != "ignored"):
                problem = f"{len(cells)} cells where {len(names)} are expected; correct the line"
                raise CorpusError(problem, file=path, line=line)
            yield f"{path}:{line}", dict(zip(names, cells, strict=False))

    def _split(self, path: Path) -> Iterator[tuple[int, list[str]]]:
        if self.form != "tabs":
            return csv_cells(path, skip_blank=False, carriage_returns=self.carriage_returns)
        most = self.names.count(" ") if self.surplus == "joined" or " " not in self.names else -1
        lines = read_lines(path, carriage_returns=self.carriage_returns)
        return ((number, line.split("\t", most)) for number, line in lines)

    def _join(self, table: Table, path: Path, beside: Path) -> Table:
        """The table with the lines of a second file as a column. Raises `CorpusError` if one of the two is longer."""
        rows, lines = list(table), [text for _, text in read_lines(beside, carriage_returns=False)]
        rows = rows[: len(lines)] if self.beside_shorter else rows
        if len(rows) != len(lines):
            problem = f"{path} has {len(rows)} lines and {beside} has {len(lines)}; they are not aligned from line"
            raise CorpusError(f"{problem} {min(len(rows), len(lines)) + 1} on: get both files again")
        for number, ((place, _, cells), line) in enumerate(zip(rows, lines, strict=True), 1):
            yield place, f"{beside}:{number}", {**cells, self.beside: line}


def number_of(cell: Any, place: str, scale: tuple[float, float]) -> float | None:
    """A gold score; None where the cell is blank."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        gold = float(cell)
    except (TypeError, ValueError):
        gold = math.nan
    if not math.isfinite(gold) or not scale[0] <= gold <= scale[1]:
        kind = "finite number" if scale == ANY_SCALE else f"number from {scale[0]:g} to {scale[1]:g}"
        raise CorpusError(f"{place}: the score {cell!r} is not a {kind}; correct it, or leave it blank")
    return gold
