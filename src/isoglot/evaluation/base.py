"""The interface of tasks. A task sees a function from texts to vectors, never a model.

To add a task, write a class with the members of `Task`, one file for each kind, and enter it in `TASKS`
(`evaluation/__init__.py`). Different protocols have different names (`bucc/xtreme`, `bucc/moco`), so numbers with the
same name are comparable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

# Vectors (N, D) of N texts, in their order. Dropout is off: the same text always gives the same vector.
Encode = Callable[[Sequence[str]], NDArray[Any]]

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
    over             the subsets that an average is over
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

    def score(
        self,
        task: str,
        subset: str,
        value: float,
        n: int,
        *,
        items: NDArray[np.float32] | None = None,
        statistic: str = "mean",
        item_set: str = "",
        details: tuple[Detail, ...] = (),
    ) -> Score:
        """A score of this metric."""
        known = (), items, statistic, item_set, details
        return self.describe(Score(task, subset, self.name, value, n, *known))

    def mean_of(
        self, task: str, subset: str, items: NDArray[Any], *, item_set: str = "", details: tuple[Detail, ...] = ()
    ) -> Score:
        """A score of this metric whose value is the mean of its items (n,), which are kept in float32."""
        kept, value = items.astype(np.float32, copy=False), float(np.mean(items, dtype=np.float64))
        return self.score(task, subset, value, len(items), items=kept, item_set=item_set, details=details)

    def describe(self, score: Score) -> Score:
        """The same score with the unit, the direction and the place in its task that this metric has."""
        return replace(score, unit=self.unit, lower_is_better=self.lower_is_better, main=self.main)


class Task(Protocol):
    """Scores vectors of its own texts. `data` is the user's data folder; a task knows the layouts that its files may
    have there. `languages` are codes of any system; none means all that the data have.
    """

    @property
    def name(self) -> str:
        """The name that its scores and the table of tasks have."""
        ...

    # A task on published sets also has `sets`, their names, which are suggested for download where data are missing.

    @property
    def needs(self) -> str:
        """The files it looks for and their sources, for the message that they are missing."""
        ...

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics of its scores; a recipe with another one is rejected before training."""
        ...

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The subsets `run` would score, in its order; empty when the data are not there.

        A subset is named by the code of its language, or by those of its languages joined with `-`.
        """
        ...

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Scores of each subset, then averages. Raises `EvaluationError` naming task, language and line."""
        ...


def item_set_of(keys: Iterable[object]) -> str:
    """The id of an item set, from a key for each item: its id, line, text, or gold label.

    Gold labels and gold scores are sufficient: translations of one set have the same sequence of them, and two sets of
    hundreds of texts do not.
    """
    return hashlib.blake2b("\n".join(map(str, keys)).encode(), digest_size=8).hexdigest()


def averages(scores: Sequence[Score], subset: str, *, over: Iterable[str] | None = None) -> list[Score]:
    """The mean of each metric over subsets, `n` being their number; empty unless all of `over` are present."""
    chosen = set(over) if over is not None else {score.subset for score in scores}
    if not chosen or not chosen <= {score.subset for score in scores}:
        return []
    table: dict[str, dict[str, Score]] = {}
    for score in scores:
        if score.subset in chosen:
            table.setdefault(score.metric, {})[score.subset] = score
    means = []
    for metric, parts in table.items():
        value, first = sum(part.value for part in parts.values()) / len(parts), next(iter(parts.values()))
        kind = Metric(metric, first.unit, first.lower_is_better, first.main)
        means.append(kind.describe(Score(first.task, subset, metric, value, len(parts), tuple(parts))))
    return means


def main_metrics(scores: Iterable[Score]) -> dict[str, list[str]]:
    """The metrics that stand for each task, in the order of the scores; all of a task that marks none of them."""
    every: dict[str, dict[str, bool]] = {}
    for score in scores:
        known = every.setdefault(score.task, {})
        known[score.metric] = known.get(score.metric, False) or score.main
    return {task: [name for name, main in known.items() if main] or list(known) for task, known in every.items()}
