"""Sections of the page that are drawn: which figures there are, at which scale, and the words below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Score
from isoglot.report.page import figures
from isoglot.report.page.details import column, details, matrix, order
from isoglot.report.page.facts import Table, called, labels, tables
from isoglot.report.page.figures import Spot
from isoglot.report.page.maps import MARKED, Point, groups, sentence_map
from isoglot.report.page.markup import Html, element, folded, sentence, table, text
from isoglot.report.scores import Results

_WIDE = 24  # languages from which a heat map takes the whole width
_NAME = 24  # letters of a model's name in a figure


def alignment(results: Sequence[Results]) -> Html:
    """A figure for each task that has both metrics: a point for each model and subset."""
    numbers, names, drawn = count(1), [_short(name) for name in labels(results)], []
    found = {(one.task, one.metric): one for one in tables(results, main=False)}
    for task in dict.fromkeys(
        task for task, metric in found if {(task, "alignment"), (task, "uniformity")} <= {*found}
    ):
        spots = list(_spots(found[task, "alignment"], found[task, "uniformity"], names))
        if len(spots) > 1:
            words = (f"{spot.subset} {spot.model} {spot.alignment:.3f}, {spot.uniformity:.3f}" for spot in spots)
            label = f"{task}: " + "; ".join(words)
            picture = figures.alignment_uniformity(spots, name=f"alignment-{next(numbers)}", label=label)
            subsets = list(dict.fromkeys(spot.subset for spot in spots))
            drawn.append(_figure(picture, f"{task}, {subsets[0]}" if len(subsets) == 1 else task))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def _spots(alignment: Table, uniformity: Table, names: list[str]) -> Iterator[Spot]:
    averages = alignment.tops()
    subsets = {} if alignment.large else alignment.part(averages=False)
    for subset, row in (subsets | averages).items():
        for name, a, u in zip(names, row, uniformity.scores.get(subset, []), strict=False):
            if a and u:
                yield Spot(name, subset, u.value, a.value, average=subset in averages)


def similarity(results: Sequence[Results]) -> Html:
    """Heat maps, those of several models on one scale."""
    numbers, drawn = count(1), []
    for title, found in details(results, "similarity").items():
        tables_ = [(name, *_ordered(detail, matrix(detail, title), found[0][2], title)) for name, _, detail in found]
        every = np.concatenate([values.ravel() for _, _, values in tables_])
        shown = _one_group(*found[0][1:]) or title
        limits = (float(np.nanmin(every)), float(np.nanmax(every)))
        for name, detail, values in tables_:
            codes = [code[:14] for code in detail.columns[1:]]
            label = f"{shown}, {name}: heat map of {len(codes)} languages, from {limits[0]:.2f} to {limits[1]:.2f}"
            picture = figures.heat_map(codes, values, name=f"heat-{next(numbers)}", label=label, limits=limits)
            caption = f"{shown} · {name}" if len(results) > 1 else shown
            drawn.append(_figure(picture, caption, _names(detail), wide=len(codes) > _WIDE))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def _ordered(
    detail: Detail, values: NDArray[np.float64], first: Detail, title: str
) -> tuple[Detail, NDArray[np.float64]]:
    """A large table in the order in which the rows of the first model's, if it has the same, lie together."""
    if len(values) <= _WIDE:
        return detail, values
    same = first.columns == detail.columns
    turn = order(matrix(first, title) if same else values)
    names = (detail.columns[0], *(detail.columns[1 + place] for place in turn))
    return Detail(detail.kind, names, tuple(detail.rows[place] for place in turn)), values[np.ix_(turn, turn)]


def maps(results: Sequence[Results]) -> Html:
    """A map for each model and subset, with the sentences that are joined in it.

    It shows vectors and not the metric that it stands with, which its caption therefore leaves out.
    """
    numbers, drawn = count(1), []
    for title, found in details(results, "map").items():
        for name, score, detail in found:
            at = [column(detail, wanted, title) for wanted in ("group", "language", "x", "y", "text")]
            points = [
                Point(str(row[at[0]]), str(row[at[1]]), _place(row[at[2]], title), _place(row[at[3]], title))
                for row in detail.rows
            ]
            joined = groups(points)
            codes = dict.fromkeys(point.language for point in points)
            shown = f"{score.task}, {called(score.subset)}: {len(points)} sentences, {len(joined)} groups joined"
            label = f"{shown}, {name}; languages: {', '.join(codes)}"
            picture = sentence_map(points, name=f"map-{next(numbers)}", label=label)
            rows = [[str(row[place]) for place in (at[0], at[1], at[4])] for row in detail.rows]
            texts = _texts([row for row in rows if row[0] in joined])
            caption = f"{shown} · {name}" if len(results) > 1 else shown
            drawn.append(_figure(picture, caption, texts, wide=len(codes) > MARKED))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def _place(cell: str | float, title: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise EvaluationError(f"{title}: its map has the place {cell!r}, not a number; evaluate again") from None


def _one_group(score: Score, detail: Detail) -> str:
    """The caption of a table whose rows are sentences: those of one group, which the metric is a mean over many of."""
    if [row[0] for row in detail.rows] == list(detail.columns[1:]):
        return ""
    return f"{score.task}, {called(score.subset)}: {score.metric.partition('/')[0]} within one group of translations"


def _names(detail: Detail) -> Html:
    """The rows' names in full, where they are more than the columns' (a sentence, for instance)."""
    names = [str(row[0]) for row in detail.rows]
    if names == list(detail.columns[1:]):
        return Html("")
    codes = detail.columns[1:]
    # The code before the sentence would decide its direction.
    rows = [[code, name.removeprefix(f"{code}: ")] for code, name in zip(codes, names, strict=True)]
    return _texts(rows)


def _texts(rows: Sequence[Sequence[str]]) -> Html:
    if not rows:
        return Html("")
    lines = [
        element("tr", *(element("td", text(group)) for group in groups), element("td", text(code)), cell)
        for *groups, code, words in rows
        for cell in [sentence(words, language=code)]
    ]
    header = [(name, False) for name in ("group", "language", "sentence")[-len(rows[0]) :]]
    return folded(text("The sentences"), table(header, [lines], label="The sentences of the figure"))


def _figure(picture: str, caption: str, *below: Html, wide: bool = False) -> Html:
    # The picture comes from our own drawing, whose writer escapes.
    box = element("div", Html(picture), class_="scroll")
    return element("figure", box, element("figcaption", text(caption)), *below, class_="wide" if wide else None)


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[-_NAME // 2 + 1 :]}"
