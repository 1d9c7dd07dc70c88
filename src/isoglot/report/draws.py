"""Bootstrap and permutation draws of a task's subsets and of the averages over them, for all systems at once."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isoglot.evaluation.base import Score
from isoglot.evaluation.resampling import bootstrap, interval, p_value, permutation
from isoglot.evaluation.statistics import Doubles

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws of one subset or average: `values` (systems, resamples) and `null` (systems - 1, permutations).

    `null` are differences from the first system when the two are swapped at random.
    """

    values: Doubles
    null: Doubles

    def interval(self, place: int) -> Interval:
        """The 95 % interval of a system's value."""
        return interval(self.values[place])

    def change(self, place: int) -> Interval:
        """The 95 % interval of a system's difference from the first."""
        return interval(self.values[place] - self.values[0])

    def p_value(self, place: int, observed: float) -> float:
        """The p-value of a system's difference from the first."""
        return p_value(observed, self.null[place - 1])


def draw(
    groups: Mapping[str, Sequence[Sequence[Score]]], *, resamples: int, permutations: int, seed: int
) -> dict[str, Draws]:
    """Draws of each subset whose items are there, and of each average that is the plain mean of such subsets.

    `groups` has, for each subset, the scores of each system's seeds; an average stands after what it is over. Draws of
    a subset depend on the seed and on the names of task and subset, not on what else is compared.
    """
    drawn: dict[str, Draws] = {}
    for subset, group in groups.items():
        first = group[0][0]
        if first.over:
            if _is_plain_mean(subset, groups) and all(name in drawn for name in first.over):
                parts = [drawn[name] for name in first.over]
                drawn[subset] = Draws(_mean([part.values for part in parts]), _mean([part.null for part in parts]))
        elif all(score.items is not None for runs in group for score in runs) and first.n:
            stream = [seed, zlib.crc32(f"{first.task}\n{subset}".encode())]
            drawn[subset] = _of_items(group, resamples=resamples, permutations=permutations, stream=stream)
    return drawn


def _of_items(group: Sequence[Sequence[Score]], *, resamples: int, permutations: int, stream: Sequence[int]) -> Draws:
    statistic = group[0][0].statistic
    tables = [[score.items for score in runs if score.items is not None] for runs in group]
    values = bootstrap([table for side in tables for table in side], statistic, resamples=resamples, seed=stream)
    cuts = np.cumsum([len(side) for side in tables])[:-1]
    means = [part.mean(axis=0) for part in np.split(values, cuts)]
    null = [permutation(tables[0], other, statistic, permutations=permutations, seed=stream) for other in tables[1:]]
    return Draws(np.stack(means), np.stack(null))


def _is_plain_mean(subset: str, groups: Mapping[str, Sequence[Sequence[Score]]]) -> bool:
    """Whether the score is what the mean of its subsets is; a weighted mean has draws of its own, not these."""
    for place, runs in enumerate(groups[subset]):
        for at, score in enumerate(runs):
            parts = [groups[name][place][at].value for name in score.over if name in groups]
            if len(parts) != len(score.over) or abs(sum(parts) / len(parts) - score.value) > 1e-6:
                return False
    return True


def _mean(tables: Sequence[Doubles]) -> Doubles:
    return np.asarray(sum(tables[1:], start=tables[0]) / len(tables))
