"""Bootstrap and permutation draws of a task's subsets and of the averages over them, for all systems at once.

What is special here: subsets that ask about the same units, such as one sentence in many languages, are drawn together,
unit by unit. Drawn apart, the errors of forty languages would cancel in their average as those of forty samples do, and
they do not: a hard sentence is hard in most of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isoglot.evaluation.base import Score
from isoglot.evaluation.resampling import bootstrap, interval, p_value, permutation
from isoglot.evaluation.statistics import Doubles

Interval = tuple[float, float]
Group = Sequence[Sequence[Score]]  # one subset: the scores of each system's seeds


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
    groups: Mapping[str, Group], wanted: Sequence[str], *, resamples: int, permutations: int, seed: int
) -> dict[str, Draws]:
    """Draws of each wanted subset whose items are there, and of each average that is the plain mean of such subsets.

    In `groups` an average stands after what it is over, and all systems' units of a subset are the same where they are
    told. Draws depend on the seed, on the task and on the name of the subset or of its units.
    """
    complete: dict[str, Group] = {}
    for subset, group in groups.items():
        complete[subset] = _joined(group, complete) if group[0][0].over else group
    drawn: dict[str, Draws | None] = {}

    def found(subset: str) -> Draws | None:
        if subset not in drawn:
            group = complete[subset]
            if _has_items(group):
                drawn[subset] = _of_items(group, resamples=resamples, permutations=permutations, seed=seed)
            else:
                drawn[subset] = _mean([found(name) for name in _parts(group, groups)])
        return drawn[subset]

    return {subset: draws for subset in wanted if (draws := found(subset)) is not None}


def _has_items(group: Group) -> bool:
    return bool(group[0][0].n) and all(score.items is not None for runs in group for score in runs)


def _joined(group: Group, complete: Mapping[str, Group]) -> Group:
    """An average with items, where it is over means of the same units: the mean outcome of each unit."""
    parts = [complete[name] for name in _parts(group, complete)]
    statistics = {score.statistic for part in parts for runs in part for score in runs if score.items is not None}
    named = {_units(part) for part in parts}
    if statistics != {"mean"} or len(named) != 1 or "" in named or not all(map(_has_items, parts)):
        return group
    (units,) = named

    def filled(score: Score, place: int, at: int) -> Score:
        outcomes = [items for part in parts if (items := part[place][at].items) is not None]
        mean = np.asarray(np.mean(outcomes, axis=0, dtype=np.float64), np.float32)
        return replace(score, items=mean, units=units)

    return [[filled(score, place, at) for at, score in enumerate(runs)] for place, runs in enumerate(group)]


def _units(group: Group) -> str:
    """What a subset's items are of; nothing where no system says.

    One that says, says it for all: results of version 0.1 do not, and change nothing for the others.
    """
    return max(score.units for runs in group for score in runs)


def _of_items(group: Group, *, resamples: int, permutations: int, seed: int) -> Draws:
    first, units = group[0][0], _units(group)
    shared = bool(units)
    stream = [seed, zlib.crc32(f"{first.task}\n{units or first.subset}".encode())]
    tables = [[score.items for score in runs if score.items is not None] for runs in group]
    every = [table for side in tables for table in side]
    values = bootstrap(every, first.statistic, resamples=resamples, seed=stream, shared=shared)
    means = [part.mean(axis=0) for part in np.split(values, np.cumsum([len(side) for side in tables])[:-1])]
    null = [
        permutation(tables[0], other, first.statistic, permutations=permutations, seed=stream, shared=shared)
        for other in tables[1:]
    ]
    return Draws(np.stack(means), np.stack(null) if null else np.empty((0, permutations)))


def _parts(group: Group, groups: Mapping[str, Group]) -> tuple[str, ...]:
    """What an average is the plain mean of; nothing for a weighted mean, which has draws of its own, not these."""
    for place, runs in enumerate(group):
        for at, score in enumerate(runs):
            parts = [groups[name][place][at].value for name in score.over if name in groups]
            if not parts or len(parts) != len(score.over) or abs(sum(parts) / len(parts) - score.value) > 1e-6:
                return ()
    return group[0][0].over


def _mean(parts: Sequence[Draws | None]) -> Draws | None:
    there = [part for part in parts if part is not None]
    if not there or len(there) < len(parts):
        return None
    return Draws(
        np.mean([part.values for part in there], axis=0),
        np.mean([part.null for part in there], axis=0),
    )
