"""Pairs of a similarity task, with their sentences, that one system ranks better or worse than another.

The rank error of a pair is its rank by cosine minus its rank by gold, as a share of the pairs; of a system with several
seeds, the mean over them. Table 8 of EASE (Nishikawa et al. 2022) shows such pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError, nearest
from isoglot.evaluation.base import Score
from isoglot.evaluation.tasks.sts import STS, rank_errors, read_pairs
from isoglot.report.tables import Grid


def examples(
    base: Sequence[Iterable[Score]],
    other: Sequence[Iterable[Score]],
    task: str,
    *,
    data: str | Path,
    count: int = 5,
    names: tuple[str, str] = ("base", "other"),
) -> tuple[Grid, Grid]:
    """The `count` pairs whose rank error falls most from base to other, and those whose rank error rises most.

    base, other  scores of the seeds of each system
    task         an STS task, such as `sts-b`
    data         the folder of its data, which must be those of the evaluation

    The pairs are those of the first subset that all results have. Raises `EvaluationError` for another task, results
    without items of a common subset, and data that differ.
    """
    if task not in STS:
        raise EvaluationError(f"examples are shown for similarity tasks, not {task!r}; {nearest(task, STS)}")
    items_of_runs = [[_items(scores, task) for scores in runs] for runs in (base, other)]
    common = set.intersection(*(set(items) for runs in items_of_runs for items in runs))
    if not common:
        raise EvaluationError(f"{task}: the results have no subset with items in common; evaluate again")
    subset = next(name for name in items_of_runs[0][0] if name in common)
    tables = [[items[subset] for items in runs] for runs in items_of_runs]
    pairs = read_pairs(STS[task], Path(data), subset)
    gold = tables[0][0][:, 0]
    for items in (table for runs in tables for table in runs):
        if len(items) != len(pairs) or not np.allclose(items[:, 0], np.asarray(pairs.labels, np.float32)):
            raise EvaluationError(f"{task} {subset}: the pairs in {data} are not those of the results; pass their data")
    errors = [np.mean([rank_errors(items) for items in runs], axis=0) for runs in tables]
    cosines = [np.mean([items[:, 1] for items in runs], axis=0) for runs in tables]
    change = np.abs(errors[1]) - np.abs(errors[0])
    order = np.argsort(change, kind="stable")

    def grid(title: str, places: Iterable[int]) -> Grid:
        rows = []
        for at in places:
            numbers = [f"{gold[at]:.1f}", *(f"{c[at]:.2f}" for c in cosines), *(f"{e[at]:+.2f}" for e in errors)]
            rows.append((*pairs[at].texts[:2], *numbers))
        header = ("sentence 1", "sentence 2", "gold", *names, *(f"rank error, {name}" for name in names))
        return Grid(f"{task} {subset}: {title}", header, tuple(rows))

    better = [int(at) for at in order[:count] if change[at] < 0]
    worse = [int(at) for at in order[::-1][:count] if change[at] > 0]
    return grid(f"{names[1]} is better than {names[0]}", better), grid(f"{names[1]} is worse", worse)


def _items(scores: Iterable[Score], task: str) -> dict[str, NDArray[np.float32]]:
    """The gold and cosine of each pair, by subset."""
    spearman = (score for score in scores if score.task == task and score.metric in ("spearman", "spearman/all"))
    return {score.subset: score.items for score in spearman if score.items is not None}
