"""Scores: numbers that a task gives a model, with what is needed to show, compare and resample them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Setting = str | int | float | bool | None

# Units of values: a share from 0 to 1 (`fraction`), a share of errors (`error`), `correlation` and `cosine` from
# -1 to 1, or any other number, such as a distance (`plain`). All but `plain` are shown multiplied by 100.
Unit = Literal["fraction", "error", "correlation", "cosine", "plain"]


@dataclass(frozen=True, slots=True)
class Detail:
    """A table that belongs to a score and is shown on the page; no statistic uses it.

    `kind` is how it is shown: "mistakes" (worst first), "similarity" (a square table, the first cell of a row its
    name), "map" (points of a plane), "hits" (a query and what was found); any other kind as the table it is. Cells are
    strings and finite numbers.
    """

    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]


@dataclass(frozen=True, slots=True)
class Score:
    """One number, identified by `task`, `subset` and `metric`.

    value            in its `unit`, never a percentage
    n                number of items: pairs for a language, subsets for an average
    over             the subsets that an average is the plain mean of; a comparison resamples it as that
    items            (n,) or (n, columns), the outcome of each item in the order of the data, if there is one: two
                     encoders can be compared item by item
    statistic        name in `STATISTICS` of the function that computes the value from the items
    item_set         id of the item set (see `item_set_of`). Scores with the same id have the same item in row i, such
                     as one sentence in many languages, and are resampled together
    details          tables for people
    lower_is_better  direction of the metric
    main             whether it is the main number of its task (several of one task must be read together)

    A task sets unit, direction and main by its `Metric`s; tables, comparisons and the choice of the best checkpoint
    read them. Items, item_set and details take no part in equality.
    """

    task: str
    subset: str
    metric: str
    value: float
    n: int
    over: tuple[str, ...] = ()
    items: NDArray[np.float32] | None = field(default=None, compare=False, repr=False)
    statistic: str = "mean"
    item_set: str = field(default="", compare=False)
    details: tuple[Detail, ...] = field(default=(), compare=False, repr=False)
    unit: Unit = "fraction"
    lower_is_better: bool = False
    main: bool = False


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a task: the properties that all its scores share (see `Score`)."""

    name: str
    unit: Unit = "fraction"
    lower_is_better: bool = False
    main: bool = False

    def score(self, task: str, subset: str, value: float, n: int, **more: Any) -> Score:
        """A score of this metric; `more` are the fields items, statistic, item_set and details."""
        return self.describe(Score(task, subset, self.name, value, n, **more))

    def mean_of(self, task: str, subset: str, items: NDArray[Any], **more: Any) -> Score:
        """A score of this metric whose value is the mean of its items (n,), which are kept in float32."""
        mean = float(np.mean(items, dtype=np.float64))
        return self.score(task, subset, mean, len(items), items=items.astype(np.float32, copy=False), **more)

    def describe(self, score: Score) -> Score:
        """The same score with the unit, the direction and the place in its task that this metric has."""
        return replace(score, unit=self.unit, lower_is_better=self.lower_is_better, main=self.main)


class Results(Protocol):
    """The scores of one model: its name or folder, and the settings of the evaluation."""

    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> Mapping[str, Setting]: ...  # noqa: D102
    def __iter__(self) -> Iterator[Score]: ...


def main_metrics(scores: Iterable[Score]) -> dict[str, list[str]]:
    """The metrics that stand for each task, in the order of the scores; all of a task that marks none of them."""
    every: dict[str, dict[str, bool]] = {}
    for score in scores:
        metrics = every.setdefault(score.task, {})
        metrics[score.metric] = metrics.get(score.metric, False) or score.main
    return {task: [name for name, main in metrics.items() if main] or list(metrics) for task, metrics in every.items()}
