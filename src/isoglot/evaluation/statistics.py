"""Computes scores from items, also from items that count several times, as in a bootstrap sample.

`weigh` takes the items of a score, `(n,)` or `(n, columns)`, and how often each counts, `(B, n)`: thousands of
bootstrap samples are a few matrix products, ranks are recomputed in each, and no row is copied. `STATISTICS` has the
function of each value of `Score.statistic` for items that count once.

mean            of outcomes (n,), such as hits of 0 and 1
spearman        rank correlation of (n, 2): gold, predicted; ties share their mean rank
pearson         linear correlation of (n, 2): gold, predicted
f1              of counts (n, 3), for instance of each sentence: right, predicted, gold; so are `precision`, `recall`
spearman/wmean  the mean over parts of their correlations, of items (n, 3): gold, predicted, and the number of the
                part; a part weighs as many as its items, with `/mean` all weigh the same

A correlation without variation is 0, and so is a share of nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Weighted = Callable[[Doubles, Doubles], Doubles]  # items (n,) or (n, columns), weights (B, n) -> values (B,)


def weigh(statistic: str, items: NDArray[Any], weights: NDArray[Any]) -> Doubles:
    """The values (B,) of a statistic on items that count `weights` (B, n) times each.

    Weights are whole numbers, and not all of a row are 0. Raises `ValueError` for a statistic that is not there.
    """
    if statistic not in _WEIGHTED:
        raise ValueError(f"no statistic is called {statistic!r}; known: {', '.join(_WEIGHTED)}")
    return _WEIGHTED[statistic](np.asarray(items, np.float64), np.asarray(weights, np.float64))


def _share(items: Doubles, weights: Doubles, *, factors: tuple[int, int, int]) -> Doubles:
    """Right times the first factor over predicted and gold times the others."""
    right, predicted, gold = (weights @ items).T * np.array(factors)[:, None]
    return _divide(right, predicted + gold)


def _pearson(items: Doubles, weights: Doubles) -> Doubles:
    # Centred twice: a column far from 0 loses no digits.
    columns = [column - column.mean() for column in items.T]
    total = weights.sum(axis=1)
    centred = [column - ((weights @ column) / total)[:, None] for column in columns]
    # What is left of equal values is rounding.
    rounding = [1e-24 * total * np.square(column).max(initial=0) for column in items.T]
    return _correlation(weights, centred, rounding)


def _spearman(items: Doubles, weights: Doubles) -> Doubles:
    return _correlation(weights, [rank(column, weights) for column in items.T], [np.zeros(len(weights))] * 2)


def _correlation(weights: Doubles, columns: list[Doubles], rounding: list[Doubles]) -> Doubles:
    """Of two centred columns (B, n); 0 where a variance is not above its rounding error (B,)."""
    gold, predicted = columns
    both, *squares = (
        np.einsum("bn,bn,bn->b", weights, x, y) for x, y in ((gold, predicted), (gold, gold), (predicted, predicted))
    )
    deviations = [np.sqrt(np.where(square > error, square, 0)) for square, error in zip(squares, rounding, strict=True)]
    return np.clip(_divide(both, deviations[0] * deviations[1]), -1, 1)


def rank(values: Doubles, weights: Doubles) -> Doubles:
    """Ranks (B, n) less their mean: of weights w in a tie below which there are c, each has c + w / 2 - total / 2."""
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(values[order]) != 0])
    groups = np.add.reduceat(weights[:, order], starts, axis=1)
    middle = np.cumsum(groups, axis=1) - groups / 2 - weights.sum(axis=1)[:, None] / 2
    place = np.empty(len(values), np.intp)
    place[order] = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(values)]))
    return np.asarray(middle[:, place])


def _average_parts(items: Doubles, weights: Doubles, *, correlation: Weighted, by_size: bool) -> Doubles:
    values, sizes = [], []
    for part in np.unique(items[:, 2]):
        mask = items[:, 2] == part
        counts = weights[:, mask]
        size = counts.sum(axis=1)
        counts[size == 0] = 1  # a part that was not sampled has no share, so its value does not matter
        values.append(correlation(items[mask, :2], counts))
        sizes.append(size if by_size else (size > 0).astype(np.float64))
    # Shares, not a sum divided at the end: of one part, the mean is then its value to the last bit.
    return np.asarray((np.array(values) * (np.array(sizes) / np.sum(sizes, axis=0))).sum(axis=0))


def _divide(above: Doubles, below: Doubles) -> Doubles:
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=below > 0))


_CORRELATIONS: dict[str, Weighted] = {"spearman": _spearman, "pearson": _pearson}
_WEIGHTED: dict[str, Weighted] = {
    "mean": lambda items, weights: np.asarray(weights @ items / weights.sum(axis=1)),
    **_CORRELATIONS,
    "f1": partial(_share, factors=(2, 1, 1)),
    "precision": partial(_share, factors=(1, 1, 0)),
    "recall": partial(_share, factors=(1, 0, 1)),
    **{
        f"{name}/{way}": partial(_average_parts, correlation=function, by_size=way == "wmean")
        for name, function in _CORRELATIONS.items()
        for way in ("wmean", "mean")
    },
}


def _count_once(statistic: str, items: NDArray[Any]) -> float:
    return float(weigh(statistic, items, np.ones((1, len(items))))[0])


STATISTICS: dict[str, Callable[[NDArray[Any]], float]] = {name: partial(_count_once, name) for name in _WEIGHTED}
