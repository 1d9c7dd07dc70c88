"""Tables of text: one meaning per row, one language per column, in TSV, quoted CSV or the first sheet of a workbook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError, quote
from isoglot.core.numbers import finite
from isoglot.data.formats import read_table
from isoglot.data.groups import Group, group_of, roles_in
from isoglot.data.languages import OnUnknown, canonical, header_languages

SCORE = "score"
IGNORED = "_"
_NUMBERS = (SCORE, "label")


def read_tsv(
    path: str | Path,
    *,
    languages: str | Iterable[str] | None = None,
    columns: Mapping[str, str] | None = None,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """One group per row of a table, one sentence per column; blank cells are left out.

    A name that ends in `.csv` or `.xlsx` is that of a CSV file or a workbook (see `isoglot.data.formats`), any other
    that of TSV. The first line has the language of each column, by its code or English name, unless `languages` does
    (then a first line that names the same ones is skipped). `score` becomes the extra of that name (mined pairs), `_`
    is ignored. A first line may also have names such as `source` and `target` or `text`, as in `group_of`; then
    `languages` are those of the sentences. `columns` are the columns that are read, with their language or one of these
    names: `{"english": "en"}`.
    With `on_unknown_language = "skip"`, columns whose names are not known languages are left out and counted. Raises
    `CorpusError` for a header that names no languages, a row with another number of columns, a score that is not a
    finite number, and a row without any text.
    """
    skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
    given = languages.split(",") if isinstance(languages, str) else None if languages is None else [*languages]
    codes = None if given is None else _columns(given, path, None)

    def infer(first: list[str]) -> Sequence[str] | None:
        header = columns or codes is None or roles_in(first) or _names_columns(first, codes)
        return None if header else codes

    names, rows = read_table(path, columns, implied=infer)
    if not roles_in(names):
        langs = codes if codes is not None and len(codes) == len(names) else _columns(names, path, 1, skipped)
        yield from (_group(cells, langs, path, line) for line, cells in rows)
        return
    for line, cells in rows:
        row: dict[str, Any] = dict(zip(names, cells, strict=True))
        row |= {name: _number(name, row[name], path, line) for name in _NUMBERS if row.get(name, "").strip()}
        try:
            yield group_of(row, codes or (), skipped=skipped)
        except CorpusError as error:
            raise CorpusError(str(error), file=path, line=line) from None


def _columns(
    names: Sequence[str], path: str | Path, line: int | None, skipped: Counter[str] | None = None
) -> tuple[str, ...]:
    columns = []
    for name, column in zip(names, header_languages(names, (SCORE, IGNORED)), strict=True):
        if skipped is not None and column is None:
            skipped["columns in unknown languages"] += 1
            columns.append(IGNORED)
            continue
        try:
            columns.append(column or canonical(name, file=path, line=line))
        except CorpusError as error:
            if line is None:
                raise
            problem = "the first line must contain the language of each column, and"
            problem += f" {quote(name, most=40)} is not a language; the columns are "
            problem += f"{quote(', '.join(names), quotes=False)}: choose some with the option `columns`"
            problem += " (--columns english=en,german=de), or set `languages`, or add such a line"
            raise CorpusError(problem, file=path, line=line) from error
    return tuple(columns)


def _names_columns(first: list[str], columns: tuple[str, ...]) -> bool:
    try:
        return _columns(first, "", None) == columns
    except CorpusError:
        return False


def _group(cells: list[str], columns: tuple[str, ...], path: str | Path, line: int) -> Group:
    if SCORE not in columns and IGNORED not in columns and all(map(str.strip, cells)):
        return Group(tuple(cells), columns)
    pairs = zip(cells, columns, strict=True)
    sentences = [(cell, name) for cell, name in pairs if name not in (SCORE, IGNORED) and cell.strip()]
    if not sentences:
        raise CorpusError("contains no text in any language; remove the line", file=path, line=line)
    scores = {SCORE: _number(SCORE, cells[columns.index(SCORE)], path, line)} if SCORE in columns else {}
    return Group(tuple(cell for cell, _ in sentences), tuple(name for _, name in sentences), extras=scores)


def _number(name: str, cell: str, path: str | Path, line: int) -> float:
    try:
        return finite(cell)
    except ValueError as error:
        raise CorpusError(f"the {name} {error}; fix it or remove the line", file=path, line=line) from None
