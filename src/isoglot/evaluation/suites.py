"""Suites: the main table of each paper as columns over scores, so that one command gives it for any model.

A column is the mean of the scores it lists. Where one of them is not there the column has no value, and what it lacks
is named: a mean over fewer languages would look like the paper's number and not be it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isoglot.evaluation.base import Score

Key = tuple[str, str, str]  # task, subset, metric


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a table: a label and the scores whose plain mean it is."""

    label: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A column's value, or None with the scores it lacks."""

    label: str
    value: float | None
    lacking: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """A table: what it is, its columns, and the languages of a task where it is not run on all."""

    about: str
    columns: tuple[Column, ...]
    languages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that its columns need, in their order."""
        return tuple(dict.fromkeys(key[0] for column in self.columns for key in column.keys))

    def table(self, scores: Sequence[Score]) -> list[Cell]:
        """The value of each column."""
        values = {(score.task, score.subset, score.metric): score.value for score in scores}
        return [_cell(column, values) for column in self.columns]


def _cell(column: Column, values: Mapping[Key, float]) -> Cell:
    lacking = tuple(key for key in column.keys if key not in values)
    mean = None if lacking else sum(values[key] for key in column.keys) / len(column.keys)
    return Cell(column.label, mean, lacking)


def _one(label: str, task: str, subset: str, metric: str) -> Column:
    return Column(label, ((task, subset, metric),))


def _many(label: str, task: str, subsets: str, metric: str) -> Column:
    return Column(label, tuple((task, subset, metric) for subset in subsets.split()))


SUITES: dict[str, Suite] = {}
