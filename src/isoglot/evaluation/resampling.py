"""Uncertainty of scores and differences: paired bootstrap, paired permutation test, correction for many languages.

Both tests work on the distinct rows of the items and their counts. A bootstrap sample of n items is then a multinomial
sample, and swapping two systems in c equal rows a binomial one; for hits of 0 and 1 that is four rows instead of
thousands, and for distinct rows nothing is lost. All systems share one sample, which makes the tests paired.

Where subsets have the same item set, such as one sentence in many languages, an item must be sampled in all of them or
in none. Then rows are sampled one by one (`shared`), and the sample depends only on their number and the seed.

Efron and Tibshirani (1993), "An Introduction to the Bootstrap", chapters 13 and 16; Phipson and Smyth (2010),
"Permutation P-values Should Never Be Zero"; Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.evaluation.statistics import Doubles, rank, weigh

Tables = Sequence[NDArray[Any]]  # of several systems or seeds

_CELLS = 1 << 21  # weights per block: 16 MiB
# Smaller than the effect of one item, larger than the rounding of items to float32.
_TIE = 1e-7


def bootstrap(tables: Tables, statistic: str, *, resamples: int, seed: Sequence[int], shared: bool = False) -> Doubles:
    """Values (tables, resamples) of a statistic over bootstrap samples of the items.

    `tables` are the items of several systems, each (n,) or (n, columns), row i of all being the same item; a bootstrap
    sample has the same items for all. With `shared`, calls with as many items and the same seed use the same samples.
    """
    distinct, counts = _distinct(tables, shared=shared)
    generator, total = np.random.default_rng(list(seed)), int(counts.sum())
    values = np.empty((len(tables), resamples))
    for start, stop in _blocks(resamples, len(counts)):
        weights = generator.multinomial(total, counts / total, size=stop - start).astype(np.float64)
        for place, table in enumerate(distinct):
            values[place, start:stop] = weigh(statistic, table, weights)
    return values


def permutation(
    base: Tables, other: Tables, statistic: str, *, permutations: int, seed: Sequence[int], shared: bool = False
) -> Doubles:
    """Differences (permutations,) of a statistic, other less base, when each item's outcomes are swapped at random.

    Both are the tables of one system, one for each of its seeds; a draw swaps the same items in all of them, and seeds
    are paired so that each weighs the same. Of a correlation, the predictions are swapped as their ranks among the
    system's own: two encoders' cosines lie on different scales, and only their ranks can be exchanged. (For `pearson`
    they are standardised instead.) `shared` is that of `bootstrap`.
    """
    systems = [[_exchangeable(table, statistic) for table in side] for side in (base, other)]
    distinct, counts = _distinct([*systems[0], *systems[1]], shared=shared)
    firsts, seconds = distinct[: len(base)], distinct[len(base) :]
    pairs = [(firsts[place % len(base)], seconds[place % len(other)]) for place in range(lcm(len(base), len(other)))]
    generator, differences = np.random.default_rng([*seed, 1]), np.zeros(permutations)
    for start, stop in _blocks(permutations, 2 * len(counts)):
        moved = generator.binomial(counts, 0.5, size=(stop - start, len(counts))).astype(np.float64)
        swapped, unswapped = np.hstack([moved, counts - moved]), np.hstack([counts - moved, moved])
        for pair in pairs:
            both = np.concatenate(pair)
            differences[start:stop] += weigh(statistic, both, swapped) - weigh(statistic, both, unswapped)
    return differences / len(pairs)


def p_value(observed: float, null: Doubles) -> float:
    """The two-sided p-value of a difference among differences drawn under the null hypothesis.

    (b + 1) / (m + 1), where b of the m are at least as large: the difference seen is itself one of the possible ones,
    so it is never 0.
    """
    # Values that equal the difference up to rounding must count: the identity permutation does, and for items of tenths
    # or thirds many others do.
    reached = np.count_nonzero(np.abs(null) >= abs(observed) - _TIE)
    return (int(reached) + 1) / (len(null) + 1)


def interval(values: Doubles, *, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap values (resamples,): the quantiles that leave out the same share each."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """p-values corrected for their number, in their order (Holm 1979); None, of what was not tested, stays None.

    The probability that any true null hypothesis is rejected at 0.05 is at most 0.05 under any dependence: languages
    share one model, and often one English side. It is never weaker than Bonferroni's correction.
    """
    values = np.array([p for p in p_values if p is not None], np.float64)
    order = np.argsort(values, kind="stable")
    corrected = np.empty(len(values))
    corrected[order] = np.maximum.accumulate(np.minimum(1, np.arange(len(values), 0, -1) * values[order]))
    remaining = iter(corrected.tolist())
    return [None if p is None else next(remaining) for p in p_values]


def _exchangeable(table: NDArray[Any], statistic: str) -> Doubles:
    """Items whose predictions may be swapped with another system's."""
    items = np.array(table, np.float64)
    kind, _, way = statistic.partition("/")
    if kind in _SCALES:
        parts = items[:, 2] if way else np.zeros(len(items))
        for part in np.unique(parts):
            items[parts == part, 1] = _SCALES[kind](items[parts == part, 1])
    return items


_SCALES: dict[str, Callable[[Doubles], Doubles]] = {
    "spearman": lambda values: rank(values, np.ones((1, len(values))))[0],
    "pearson": lambda values: (values - values.mean()) / ((values - values.mean()).std() or 1.0),
}


def _distinct(tables: Tables, *, shared: bool) -> tuple[list[Doubles], NDArray[np.int64]]:
    """The distinct rows of tables side by side, split into the tables again, and the count of each.

    With `shared`, all rows unchanged: another language would have other distinct rows.
    """
    if shared:
        return [np.asarray(table, np.float64) for table in tables], np.ones(len(tables[0]), np.int64)
    columns = [np.asarray(table, np.float64).reshape(len(table), -1) for table in tables]
    rows, counts = np.unique(np.concatenate(columns, axis=1), axis=0, return_counts=True)
    cuts = np.cumsum([part.shape[1] for part in columns])[:-1]
    parts = np.split(rows, cuts, axis=1)
    return [part.reshape(len(rows), *table.shape[1:]) for part, table in zip(parts, tables, strict=True)], counts


def _blocks(draws: int, rows: int) -> list[tuple[int, int]]:
    step = max(1, _CELLS // rows)
    return [(start, min(start + step, draws)) for start in range(0, draws, step)]
