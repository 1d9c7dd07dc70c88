"""Vectors as they are multiplied, and candidates that something less exact found, scored in float32."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoglot.data.vectors import not_finite, unit
from isoglot.search.top import Best, Floats, Ids

Metric = Literal["dot", "cosine"]


def load(vectors: NDArray[Any], start: int, stop: int, metric: Metric) -> Floats:
    """Rows of a table, float32, for "cosine" of length one. Raises `ValueError` for a value that is not finite."""
    rows = np.asarray(vectors[start:stop], np.float32)
    if len(bad := not_finite(rows)):
        raise ValueError(f"row {start + bad[0]} of the vectors holds a value that is not finite")
    return unit(rows) if metric == "cosine" else rows


def rescore(x: NDArray[Any], y: NDArray[Any], best: Best, k: int, *, metric: Metric, budget: int) -> Best:
    """The best k of the candidates `best.ids` (N, C) for the rows of `x`, by their float32 scores with rows of `y`."""
    n, width = best.ids.shape
    kept = Best.empty(n, min(k, width))
    # Gathered vectors, as they lie, in float32 and divided by their lengths.
    step = max(1, budget // (4 * x.shape[1] * (4 * width + 4)))
    for start in range(0, n, step):
        ids = best.ids[start : start + step]
        rows = load(x, start, start + step, metric)
        scores = _scores(rows, y, ids, metric)
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        kept.scores[start : start + step] = np.take_along_axis(scores, order, axis=1)
        kept.ids[start : start + step] = np.take_along_axis(ids, order, axis=1)
    return kept


def _scores(rows: Floats, y: NDArray[Any], ids: Ids, metric: Metric) -> Floats:
    found = np.asarray(y[ids.ravel()], np.float32)
    if metric == "cosine":
        found = unit(found)
    scores: Floats = np.einsum("nd,ncd->nc", rows, found.reshape(*ids.shape, -1))
    return scores
