"""How a score is made of its items: one function for each name that `Score.statistic` may have.

Each takes the items of a score, float64 `(n,)` or `(n, columns)`, and gives its value, so that the same function gives
the value on the items themselves and on any resample of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


def mean(items: NDArray[Any]) -> float:
    """The mean of outcomes (n,), such as hits of 0 and 1."""
    return float(np.mean(items, dtype=np.float64))


def spearman(items: NDArray[Any]) -> float:
    """Rank correlation of (n, 2): gold, predicted. Ties share their mean rank; without variation it is 0."""
    return _correlation(*(_ranks(column) for column in np.asarray(items, np.float64).T))


def pearson(items: NDArray[Any]) -> float:
    """Linear correlation of (n, 2): gold, predicted. Without variation it is 0."""
    return _correlation(*np.asarray(items, np.float64).T)


def f1(items: NDArray[Any]) -> float:
    """F1 of counts (n, 3), for instance of each sentence: right, predicted, gold. 0 when nothing is predicted."""
    right, predicted, gold = np.asarray(items, np.float64).sum(axis=0)
    return float(2 * right / (predicted + gold)) if predicted + gold else 0.0


STATISTICS: dict[str, Callable[[NDArray[Any]], float]] = {
    "mean": mean,
    "spearman": spearman,
    "pearson": pearson,
    "f1": f1,
}


def _ranks(values: Doubles) -> Doubles:
    """Ranks from 1, equal values sharing the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts, dtype=np.float64)
    return np.asarray((last - (counts - 1) / 2)[place.reshape(-1)])


def _correlation(a: Doubles, b: Doubles) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(a @ a) * np.sqrt(b @ b)
    return float(np.clip(a @ b / scale, -1, 1)) if scale > 0 else 0.0
