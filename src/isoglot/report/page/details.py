"""Details for the page: those that models share under one title, square tables as numbers, columns of maps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Score
from isoglot.report.page.facts import called, labels
from isoglot.report.scores import Results


def details(results: Sequence[Results], kind: str) -> dict[str, list[tuple[str, Score, Detail]]]:
    """Details of a kind under the title that models share, each with its model's name and its score."""
    found: dict[str, list[tuple[str, Score, Detail]]] = {}
    for name, result in zip(labels(results), results, strict=True):
        for score in result.scores:
            chosen = [detail for detail in score.details if detail.kind == kind and detail.rows]
            for place, detail in enumerate(chosen, 1):
                metric = f"{score.metric} ↓" if score.lower_is_better else score.metric
                more = f", {place}" if len(chosen) > 1 else ""
                found.setdefault(f"{score.task}, {called(score.subset)}, {metric}{more}", []).append(
                    (name, score, detail)
                )
    return found


def matrix(detail: Detail, title: str) -> NDArray[np.float64]:
    """The numbers (N, N) of a square table, NaN where a cell is empty. Raises `EvaluationError` when it is none."""
    size = len(detail.columns) - 1
    try:
        values = np.array([[np.nan if cell == "" else cell for cell in row[1:]] for row in detail.rows], np.float64)
    except ValueError:
        values = np.zeros((0, 0))
    if values.shape != (size, size) or np.isinf(values).any() or np.isnan(values).all():
        raise EvaluationError(f"{title}: its similarity table is not {size} by {size} finite numbers; evaluate again")
    return values


def column(detail: Detail, name: str, title: str) -> int:
    """The place of a column. Raises `EvaluationError` when there is none of that name."""
    if name not in detail.columns:
        raise EvaluationError(
            f"{title}: its map has no column {name!r} but {', '.join(detail.columns)}; evaluate again"
        )
    return detail.columns.index(name)


def order(values: NDArray[np.float64]) -> list[int]:
    """An order of the rows of a square table (N, N) in which those that are alike stand together.

    The leaves of a tree of average linkage over the rows, ordered so that neighbours are near. A number that is
    missing counts as the mean of all.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    filled = np.where(np.isnan(values), np.nanmean(values), values)
    return [int(place) for place in leaves_list(linkage(pdist(filled), "average", optimal_ordering=True))]
