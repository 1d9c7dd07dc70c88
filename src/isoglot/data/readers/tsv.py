"""Tab-separated text: one meaning per line, one language per column. Never quoted, so every character stands for
itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isoglot.data.files import read_lines
from isoglot.data.groups import Group
from isoglot.data.languages import OnUnknown, canonical, is_language
from isoglot.data.numbers import finite
from isoglot.errors import CorpusError

SCORE = "score"
IGNORED = "_"


def read_tsv(
    path: str | Path,
    *,
    languages: str | Iterable[str] | None = None,
    on_unknown_language: OnUnknown = "error",
    counts: Counter[str] | None = None,
) -> Iterator[Group]:
    """One group per line, one sentence per column; blank cells are left out.

    The first line names the language of each column, unless `languages` does (then a first line that names the same
    ones is skipped). Two more names are understood: `score` becomes the extra of that name (mined pairs), `_` is
    ignored. With `on_unknown_language = "skip"`, columns whose names are not known languages are left out and counted.
    Raises `CorpusError` for a header that names no languages, a line with another number of columns, a score that is
    not a finite number, and a line without any text.
    """
    lines = read_lines(path)
    first, text = next(lines)
    if languages is None:
        skipped = (Counter() if counts is None else counts) if on_unknown_language == "skip" else None
        columns = _columns(text.split("\t"), path, first, skipped)
    else:
        columns = _columns(languages.split(",") if isinstance(languages, str) else list(languages), path, None)
        if not _names_columns(text, columns):
            yield _group(text, columns, path, first)
    empty = languages is None
    for number, text in lines:
        empty = False
        yield _group(text, columns, path, number)
    if empty:
        raise CorpusError("contains a header and no text below it", file=path)


def _columns(
    names: Sequence[str], path: str | Path, line: int | None, skipped: Counter[str] | None = None
) -> tuple[str, ...]:
    columns = []
    for name in names:
        if name.strip().lower() in (SCORE, IGNORED):
            columns.append(name.strip().lower())
            continue
        if skipped is not None and not is_language(name):
            skipped["columns in unknown languages"] += 1
            columns.append(IGNORED)
            continue
        try:
            columns.append(canonical(name, file=path, line=line))
        except CorpusError as error:
            if line is None:
                raise
            shown = name if len(name) <= 40 else name[:40] + "..."
            raise CorpusError(
                f"the first line must contain the language code of each column, and {shown!r} is not a language code; "
                "add such a line, or set the option `languages` of the reader",
                file=path,
                line=line,
            ) from error
    return tuple(columns)


def _names_columns(text: str, columns: tuple[str, ...]) -> bool:
    try:
        return _columns(text.split("\t"), "", None) == columns
    except CorpusError:
        return False


def _group(text: str, columns: tuple[str, ...], path: str | Path, line: int) -> Group:
    cells = text.split("\t")
    if len(cells) != len(columns):
        raise _wrong_width(cells, columns, path, line)
    if SCORE not in columns and IGNORED not in columns and all(map(str.strip, cells)):
        return Group(tuple(cells), columns)
    kept = [(cell, name) for cell, name in zip(cells, columns, strict=True) if _is_sentence(cell, name)]
    if not kept:
        raise CorpusError("contains no text in any language; remove the line", file=path, line=line)
    scores = {SCORE: _score(cells[columns.index(SCORE)], path, line)} if SCORE in columns else {}
    return Group(tuple(cell for cell, _ in kept), tuple(name for _, name in kept), extras=scores)


def _is_sentence(cell: str, name: str) -> bool:
    return name not in (SCORE, IGNORED) and bool(cell.strip())


def _score(cell: str, path: str | Path, line: int) -> float:
    try:
        return finite(cell)
    except ValueError as error:
        raise CorpusError(f"the score {error}; fix it or remove the line", file=path, line=line) from None


def _wrong_width(cells: Sequence[str], columns: Sequence[str], path: str | Path, line: int) -> CorpusError:
    if cells == [""]:
        return CorpusError("is empty; remove the line", file=path, line=line)
    kind = "a column is missing" if len(cells) < len(columns) else "a tab too many"
    return CorpusError(
        f"{kind}: {len(cells)} columns where {len(columns)} are expected ({', '.join(columns)})", file=path, line=line
    )
