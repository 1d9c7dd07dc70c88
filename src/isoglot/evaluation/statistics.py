"""Computes scores from items: one function for each value of `Score.statistic`.

Each takes the items of a score, float64 `(n,)` or `(n, columns)`, and returns its value. The second table, `WEIGHTED`,
has the same statistics when row k counts `weights[b, k]` times, for many rows of weights at once. A bootstrap sample is
such a row of weights, so thousands of them are a few matrix products; ranks are recomputed in each sample, and no row
is copied.
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
    return _correlation(*(ranks(column) for column in np.asarray(items, np.float64).T))


def pearson(items: NDArray[Any]) -> float:
    """Linear correlation of (n, 2): gold, predicted. Without variation it is 0."""
    return _correlation(*np.asarray(items, np.float64).T)


def f1(items: NDArray[Any]) -> float:
    """F1 of counts (n, 3), for instance of each sentence: right, predicted, gold. 0 when nothing is predicted."""
    right, predicted, gold = np.asarray(items, np.float64).sum(axis=0)
    return float(2 * right / (predicted + gold)) if predicted + gold else 0.0


def precision(items: NDArray[Any]) -> float:
    """Precision, right over predicted, of counts (n, 3) as for `f1`. 0 when nothing is predicted."""
    right, predicted, _ = np.asarray(items, np.float64).sum(axis=0)
    return float(right / predicted) if predicted else 0.0


def recall(items: NDArray[Any]) -> float:
    """Recall, right over gold, of counts (n, 3) as for `f1`. 0 without gold."""
    right, _, gold = np.asarray(items, np.float64).sum(axis=0)
    return float(right / gold) if gold else 0.0


def ranks(values: Doubles) -> Doubles:
    """Ranks (n,) of values (n,) from 1, equal values sharing the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts, dtype=np.float64)
    return np.asarray((last - (counts - 1) / 2)[place.reshape(-1)])


def over_parts(kind: str, way: str) -> Callable[[NDArray[Any]], float]:
    """The mean over parts of their correlations, of items (n, 3): gold, predicted, and the number of the part.

    `kind` is `spearman` or `pearson`; with `way` `wmean` a part weighs as many as its items, with `mean` all the same.
    """

    def value(items: NDArray[Any]) -> float:
        rows = np.asarray(items, np.float64)
        parts = [rows[rows[:, 2] == part, :2] for part in np.unique(rows[:, 2])]
        # Shares, not a sum divided at the end: of one part, the mean is then its value to the last bit.
        shares = [len(part) / len(rows) if way == "wmean" else 1 / len(parts) for part in parts]
        return float(np.dot([STATISTICS[kind](part) for part in parts], shares))

    return value


STATISTICS: dict[str, Callable[[NDArray[Any]], float]] = {
    "mean": mean,
    "spearman": spearman,
    "pearson": pearson,
    "f1": f1,
    "precision": precision,
    "recall": recall,
    **{f"{kind}/{way}": over_parts(kind, way) for kind in ("spearman", "pearson") for way in ("wmean", "mean")},
}


def weighted(statistic: str, items: NDArray[Any], weights: Doubles) -> Doubles:
    """The values (B,) of a statistic on items (n,) or (n, columns) that count `weights` (B, n) times each.

    Weights are whole numbers, and not all of a row are 0. A statistic that has only its entry in `STATISTICS` is
    computed on repeated rows, which is slower and the same. Raises `ValueError` for a name that is not there.
    """
    if statistic not in STATISTICS:
        raise ValueError(f"no statistic is called {statistic!r}; known: {', '.join(STATISTICS)}")
    rows = np.asarray(items, np.float64)
    if statistic in WEIGHTED:
        return WEIGHTED[statistic](rows, weights)
    counts = np.asarray(weights, np.int64)
    return np.array([STATISTICS[statistic](np.repeat(rows, row, axis=0)) for row in counts], np.float64)


def _mean(items: Doubles, weights: Doubles) -> Doubles:
    return np.asarray(weights @ items / weights.sum(axis=1))


def _counts(right: int, predicted: int, gold: int) -> Callable[[Doubles, Doubles], Doubles]:
    """Weighted right over weighted predicted and gold; F1 has the weights 2, 1, 1."""

    def values(items: Doubles, weights: Doubles) -> Doubles:
        sums = weights @ items
        above, below = right * sums[:, 0], predicted * sums[:, 1] + gold * sums[:, 2]
        return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))

    return values


def _over_parts(kind: str, way: str) -> Callable[[Doubles, Doubles], Doubles]:
    def values(items: Doubles, weights: Doubles) -> Doubles:
        total = shares = np.zeros(len(weights))
        for part in np.unique(items[:, 2]):
            mask = items[:, 2] == part
            own = weights[:, mask]
            size = own.sum(axis=1)
            own[size == 0] = 1  # a part that was not sampled has no share, so its value does not matter
            share = size if way == "wmean" else (size > 0).astype(np.float64)
            total, shares = total + share * WEIGHTED[kind](items[mask, :2], own), shares + share
        return np.asarray(total / shares)

    return values


def _pearson(items: Doubles, weights: Doubles) -> Doubles:
    # Centred at the mean of the column first, so that a column far from 0 loses no digits.
    gold, predicted = (column - column.mean() for column in items.T)
    total = weights.sum(axis=1)
    table = np.stack([gold, predicted, gold * gold, predicted * predicted, gold * predicted], axis=1)
    a, b, aa, bb, ab = (weights @ table / total[:, None]).T
    return _share(ab - a * b, _variance(aa, a), _variance(bb, b))


def _spearman(items: Doubles, weights: Doubles) -> Doubles:
    gold, predicted = (_weighted_ranks(column, weights) for column in items.T)
    return _share(*(np.einsum("bn,bn,bn->b", weights, x, y) for x, y in _products(gold, predicted)))


def _products(a: Doubles, b: Doubles) -> tuple[tuple[Doubles, Doubles], ...]:
    return (a, b), (a, a), (b, b)


def _weighted_ranks(values: Doubles, weights: Doubles) -> Doubles:
    """Ranks (B, n) less their mean: of weights w in a tie below which there are c, each has c + w / 2 - total / 2."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(values[order]) != 0])
    groups = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(groups, axis=1) - groups / 2 - weights.sum(axis=1)[:, None] / 2
    place = np.empty(len(values), np.intp)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(values)]))
    return np.asarray(middle[:, place])


def _share(both: Doubles, first: Doubles, second: Doubles) -> Doubles:
    """Covariance over standard deviations, 0 where a variance is 0."""
    scale = np.sqrt(first) * np.sqrt(second)
    return np.asarray(np.clip(np.divide(both, scale, out=np.zeros_like(both), where=scale > 0), -1, 1))


def _variance(squares: Doubles, middle: Doubles) -> Doubles:
    """Mean square less squared mean, 0 where only rounding is left of it."""
    variance = squares - middle * middle
    return np.where(variance > 1e-12 * squares, variance, 0.0)


def _correlation(a: Doubles, b: Doubles) -> float:
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt(a @ a) * np.sqrt(b @ b)
    return float(np.clip(a @ b / scale, -1, 1)) if scale > 0 else 0.0


WEIGHTED: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "mean": _mean,
    "spearman": _spearman,
    "pearson": _pearson,
    "f1": _counts(2, 1, 1),
    "precision": _counts(1, 1, 0),
    "recall": _counts(1, 0, 1),
    **{f"{kind}/{way}": _over_parts(kind, way) for kind in ("spearman", "pearson") for way in ("wmean", "mean")},
}
