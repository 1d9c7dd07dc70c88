"""The tables of the page that are made of details: what went wrong, what was found, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from isoglot.evaluation.base import Detail, Score
from isoglot.report.page.facts import called, labels
from isoglot.report.page.markup import Html, element, folded, join, number, sentence, table, text
from isoglot.report.scores import Results

_WORST = 10  # rows of a table of sentences; of hits, queries
_ROWS = 2500  # of all these tables together, so that the page opens at once


def sentences(results: Sequence[Results], *kinds: str) -> Html:
    """The details of these kinds as tables: a fold for each subset, in it a table for each model."""
    names = labels(results)
    chosen = [
        (names[place] if len(names) > 1 else "", score, detail)
        for place, result in enumerate(results)
        for score in result.scores
        for detail in score.details
        if detail.kind in kinds and detail.rows
    ]
    most = max(3, min(_WORST, _ROWS // max(1, len(chosen))))
    parts: dict[str, dict[str, list[Html]]] = {}
    for name, score, detail in chosen:
        parts.setdefault(score.task, {}).setdefault(score.subset, []).append(_detail(name, score, detail, most))
    found = []
    for alone, tasks in groupby(parts.items(), lambda part: len(part[1]) == 1):
        if alone:  # small tasks that follow each other are one list
            small = dict(tasks)
            folds = [_subset(f"{task}, ", *next(iter(subsets.items()))) for task, subsets in small.items()]
            found += [element("h3", text(", ".join(small))), element("div", join(folds), class_="folds")]
            continue
        for task, subsets in tasks:
            folds = [_subset("", subset, shown) for subset, shown in subsets.items()]
            found += [element("h3", text(task)), element("div", join(folds), class_="folds")]
    return join(found)


def _subset(before: str, subset: str, shown: Sequence[Html]) -> Html:
    return folded(text(before + called(subset)), *shown, subset=subset)


def _detail(name: str, score: Score, detail: Detail, most: int) -> Html:
    columns = list(zip(*detail.rows, strict=True))
    numeric = [all(isinstance(cell, int | float) for cell in column) for column in columns]
    digits = [max(map(_digits, column)) for column in columns]
    language = score.subset if "-" not in score.subset else None  # of a pair, it is not known which
    rows, kept = [], _first(detail, most)
    for row in kept:
        own = str(row[detail.columns.index("language")]) if "language" in detail.columns else language
        kinds = zip(row, numeric, digits, strict=True)
        rows.append(element("tr", *(_cell(cell, numbers, places, own) for cell, numbers, places in kinds)))
    shown = table(
        list(zip(detail.columns, numeric, strict=True)), [rows], label=f"{score.task}, {called(score.subset)}"
    )
    cut = f", {len(kept)} of {len(detail.rows)} shown" if len(kept) < len(detail.rows) else ""
    words = [element("b", text(name)), text(" · ")] if name else []
    return join([element("small", *words, text(score.metric + cut)), shown])


def _first(detail: Detail, most: int) -> Sequence[tuple[str | float, ...]]:
    """So many rows; of hits all rows of so many queries."""
    if detail.kind != "hits":
        return detail.rows[:most]
    queries = [list(rows) for _, rows in groupby(detail.rows, lambda row: row[0])]
    return [row for rows in queries[:most] for row in rows]


def _cell(cell: str | float, numeric: bool, digits: int, language: str | None) -> Html:
    return number(f"{cell:.{digits}f}".replace("-", "−")) if numeric else sentence(str(cell), language=language)


def _digits(cell: str | float) -> int:
    """The decimals that a number needs, at most three."""
    return 0 if isinstance(cell, str) else len(f"{cell:.3f}".rstrip("0").partition(".")[2])
