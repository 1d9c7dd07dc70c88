"""The interface of tasks. A task sees a function from texts to vectors, never a model.

To add a task, write a subclass of `BaseTask`, one file for each kind, and enter it in `TASKS`
(`evaluation/__init__.py`). Different protocols have different names (`bucc/xtreme`, `bucc/moco`), so numbers with the
same name are comparable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.score import Detail, Metric, Score
from isoglot.data.sets.importers import IMPORTERS

__all__ = ["BaseTask", "Detail", "Encode", "Metric", "Score", "Task", "averages", "item_set_of", "worst"]

Cells = tuple[str | float, ...]
Details = tuple[Detail, ...]
# Vectors (N, D) of N texts, in their order. Dropout is off: the same text always gives the same vector.
Encode = Callable[[Sequence[str]], NDArray[Any]]


class BaseTask:
    """Scores vectors of its own texts: a task declares its data, finds it with `find` and computes scores with `score`.

    name     the name that its scores and the table of tasks have
    metrics  all metrics of its scores; a recipe with another one is rejected before training
    reads    names of the sets (of `isoglot.data.sets.importers`) whose files it reads
    sets     names of the sets to download, the first by preference; default: those that it reads
    lists    averages, each with its subsets; an average is present if all of them were evaluated

    `data` is the user's data folder; a task knows the layouts that its files may have there. `languages` are codes of
    any system; none means all that the data have.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...  # noqa: D102
        @property
        def metrics(self) -> tuple[Metric, ...]: ...  # noqa: D102
        @property
        def reads(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets to download, if not those that it reads."""
        return ()

    @property
    def lists(self) -> Mapping[str, tuple[str, ...]]:
        """The averages besides the mean."""
        return {}

    @property
    def needs(self) -> str:
        """The files it looks for and their sources, for the message that they are missing."""
        return ", or ".join(IMPORTERS[name].needs for name in self.reads)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, Any]:
        """The subsets that are in the folder and of the languages, each with its data."""
        raise NotImplementedError

    def score(self, encode: Encode, subsets: dict[str, Any]) -> Iterator[Score]:
        """The scores of the subsets that were found, of which there is at least one."""
        raise NotImplementedError

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str] | None:  # noqa: ARG002
        """The subsets that the `mean` is over; None for all."""
        return None

    def add_details(self, scores: list[Score], subsets: dict[str, Any]) -> list[Score]:  # noqa: ARG002
        """The scores and averages with tables that need all of them."""
        return scores

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The subsets that `run` would score, in its order; empty when the data are not there.

        A subset is named by the code of its language, or by those of its languages joined with `-`.
        """
        return tuple(self.find(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The scores of each subset, then its averages, then the `mean`.

        Raises `EvaluationError` naming task, language and line.
        """
        if not (subsets := self.find(data, languages)):
            return []
        scores = list(self.score(encode, subsets))
        lists: dict[str, Iterable[str] | None] = {**self.lists, "mean": self.mean_subsets(subsets)}
        means = [average for name, over in lists.items() for average in averages(scores, name, over=over)]
        return self.add_details(scores + means, subsets)


Task = BaseTask


def item_set_of(keys: Iterable[object]) -> str:
    """The id of an item set, from a key for each item: its id, line, text, or gold label.

    Gold labels and gold scores are sufficient: translations of one set have the same sequence of them, and two sets of
    hundreds of texts do not.
    """
    return hashlib.blake2b("\n".join(map(str, keys)).encode(), digest_size=8).hexdigest()


def averages(scores: Sequence[Score], subset: str, *, over: Iterable[str] | None = None) -> list[Score]:
    """The mean of each metric over subsets, `n` being their number; empty unless all of `over` are present."""
    present = {score.subset for score in scores}
    selection = present if over is None else set(over)
    table: dict[str, dict[str, Score]] = {}
    for score in scores if selection <= present else ():
        if score.subset in selection:
            table.setdefault(score.metric, {})[score.subset] = score
    means = []
    for parts in table.values():
        value, first = sum(part.value for part in parts.values()) / len(parts), next(iter(parts.values()))
        bare = replace(first, items=None, statistic="mean", item_set="", details=())
        means.append(replace(bare, subset=subset, value=value, n=len(parts), over=tuple(parts)))
    return means


def worst(columns: Sequence[str], badness: NDArray[Any], row: Callable[[int], Cells]) -> Details:
    """The table of the mistakes numbered 0 to W - 1, at most ten, by their `badness` (W,) and then their number.

    `row` gives the cells of one. Nothing without any.
    """
    order = np.argsort(-badness, kind="stable")[:10].tolist()
    return (Detail("mistakes", tuple(columns), tuple(map(row, order))),) if order else ()
