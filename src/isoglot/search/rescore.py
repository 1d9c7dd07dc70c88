"""Vectors as they are multiplied, and candidates that something less exact found, scored in float32."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoglot.search.top import Best, Floats, Ids

Metric = Literal["dot", "cosine"]


def load(vectors: NDArray[Any], start: int, stop: int, metric: Metric) -> Floats:
    """Rows of a table, float32, for "cosine" of length one. Raises `ValueError` for a value that is not finite."""
    rows = np.asarray(vectors[start:stop], np.float32)
    if not np.isfinite(rows).all():
        bad = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ValueError(f"row {bad} of the vectors holds a value that is not finite")
    return unit(rows) if metric == "cosine" else rows


def unit(rows: Floats) -> Floats:
    """The rows divided by their lengths; rows of zeros as they are."""
    # Through float64, so that neither tiny nor huge rows lose their direction.
    lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
    return np.asarray(rows / np.where(lengths > 0, lengths, 1).astype(np.float32)[:, None], np.float32)


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
