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
from isoglot.evaluation.tasks.sts import ENGLISH, MULTILINGUAL, Sts, rank_errors, read_pairs
from isoglot.report.tables import Grid


def examples(
    base: Sequence[Iterable[Score]],
    other: Sequence[Iterable[Score]],
    task: str,
    *,
    data: str | Path,
    subset: str = "",
    count: int = 5,
    names: tuple[str, str] = ("base", "other"),
) -> tuple[Grid, Grid]:
    """The `count` pairs whose rank error falls most from base to other, and those whose rank error rises most.

    base, other  scores of the seeds of each system
    task         an STS task, such as `sts-b`
    data         the folder of its data, which must be those of the evaluation
    subset       such as `deu-eng`; default: the first that both systems have

    Raises `EvaluationError` for another task, scores without items, a subset that is not there, and data that differ.
    """
    tasks: dict[str, Sts] = {**ENGLISH, **MULTILINGUAL}
    if task not in tasks:
        raise EvaluationError(f"examples are shown for similarity tasks, not {task!r}; {nearest(task, tasks)}")
    runs_items = [[_items(scores, task, subset) for scores in runs] for runs in (base, other)]
    subset = subset or runs_items[0][0][0]
    tables = [[items for name, items in runs if name == subset] for runs in runs_items]
    if not all(tables):
        raise EvaluationError(f"{task}: no system has items of {subset}; evaluate again")
    pairs = read_pairs(tasks[task], Path(data), subset)
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


def _items(scores: Iterable[Score], task: str, subset: str) -> tuple[str, NDArray[np.float32]]:
    """The gold and cosine of each pair, and the subset."""
    for score in scores:
        is_spearman = score.task == task and score.metric in ("spearman", "spearman/all") and not score.over
        if is_spearman and subset in ("", score.subset) and score.items is not None:
            return score.subset, score.items
    raise EvaluationError(f"{task} {subset}: a result has no items; pass folders of results, and evaluate again")
