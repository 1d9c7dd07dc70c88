"""Tables of text: one meaning per row, one language per column, in TSV, quoted CSV or a workbook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError, quote
from isoglot.core.numbers import finite
from isoglot.data.formats import read_table
from isoglot.data.groups import Group, group_of, roles_in, unzip
from isoglot.data.languages import OnUnknown, canonical, check_id, header_languages

SCORE, KEY, IGNORED = "score", "key", "_"
_ASIDE = (SCORE, KEY, IGNORED)  # columns that are not sentences
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
    (then a first line that names the same ones is skipped). `score` becomes the extra of that name (mined pairs), `key`
    is that of the group, `_` is ignored. A first line may also have names such as `source` and `target` or `text`, as
    in `group_of`; then `languages` are those of the sentences. `columns` are the columns that are read, with their
    language or one of these names: `{"english": "en"}`.
    With `on_unknown_language = "skip"`, columns whose names are not known languages are left out and counted. Raises
    `CorpusError` for a header that names no languages, or `languages` in another order, a missing column, a row with
    another number of columns, ids where Indonesian is expected, a score that is not a finite number, and a row without
    any text.
    """
    skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
    names = languages.split(",") if isinstance(languages, str) else [*(languages or ())]
    codes = None if languages is None else _columns(names, path, None)
    names, rows = read_table(path, columns, implied=lambda first: None if columns else _implied(first, codes, path))
    if missing := [name for name, role in (columns or {}).items() if role not in names]:
        raise CorpusError(f"has no column {missing[0]!r}; correct `columns`", file=path, line=1)
    if not roles_in(names):
        langs = _columns(names, path, 1, skipped)
        if codes is not None and sorted(langs) != sorted(codes):
            problem = f"`columns` are in {', '.join(langs)}, but `languages` in {', '.join(codes)}; leave these out"
            raise CorpusError(problem, file=path)
        line, cells = next(rows)
        if codes is None and columns is None:
            check_id(dict(zip(names, cells, strict=True)), cells, file=path, line=line)
        yield from (_group(cells, langs, path, line) for line, cells in chain([(line, cells)], rows))
        return
    if len(set(names)) < len(names):
        raise CorpusError(f"two columns have the same name: {', '.join(names)}", file=path, line=1)
    for line, cells in rows:
        row: dict[str, Any] = dict(zip(names, cells, strict=True))
        row |= {name: _number(name, row[name], path, line) for name in _NUMBERS if row.get(name, "").strip()}
        try:
            yield group_of(row, codes or (), skipped=skipped)
        except CorpusError as error:
            raise CorpusError(str(error), file=path, line=line) from None


def _implied(first: list[str], codes: tuple[str, ...] | None, path: str | Path) -> tuple[str, ...] | None:
    """The languages that were passed, if the first row is not a header."""
    if codes is None or roles_in(first):
        return None
    header = () if None in header_languages(first, _ASIDE) else _columns(first, path, 1)
    if header != codes and sorted(header) == sorted(codes):
        problem = f"the first line has the languages {', '.join(header)}, and `languages` in another order"
        raise CorpusError(f"{problem}; pass them in the order of the columns", file=path, line=1)
    return None if header == codes else codes


def _columns(
    names: Sequence[str], path: str | Path, line: int | None, skipped: Counter[str] | None = None
) -> tuple[str, ...]:
    columns = []
    for name, column in zip(names, header_languages(names, _ASIDE), strict=True):
        if skipped is not None and column is None:
            skipped["columns in unknown languages"] += 1
            columns.append(IGNORED)
            continue
        try:
            columns.append(column or canonical(name, file=path, line=line))
        except CorpusError as error:
            if line is None:
                raise
            wrong = next((one for one in names if header_languages([one], _ASIDE) == [None]), name)
            problem = f"the first line must contain the language of each column, and {quote(wrong, most=40)} is not a "
            problem += f"language; the columns are {quote(', '.join(names), quotes=False)}: choose some with the option"
            problem += " `columns` (--columns english=en,german=de), or set `languages`, or add such a line"
            raise CorpusError(problem, file=path, line=line) from error
    return tuple(columns)


def _group(cells: list[str], columns: tuple[str, ...], path: str | Path, line: int) -> Group:
    if not any(name in columns for name in _ASIDE) and all(map(str.strip, cells)):
        return Group(tuple(cells), columns)
    row = dict(zip(columns, cells, strict=True))
    sentences = [(cell, name) for cell, name in zip(cells, columns, strict=True) if name not in _ASIDE and cell.strip()]
    if not sentences:
        raise CorpusError("contains no text in any language; remove the line", file=path, line=line)
    scores = {SCORE: _number(SCORE, row[SCORE], path, line)} if SCORE in row else {}
    return Group(*unzip(sentences), row.get(KEY, ""), extras=scores)


def _number(name: str, cell: str, path: str | Path, line: int) -> float:
    try:
        return finite(cell)
    except ValueError as error:
        raise CorpusError(f"the {name} {error}; fix it or remove the line", file=path, line=line) from None
