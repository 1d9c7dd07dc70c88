"""Finds the scores that several systems have on the same data, and the reasons against comparing others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from isoglot.core.errors import EvaluationError, nearest
from isoglot.core.score import Score, main_metrics

Key = tuple[str, str, str]  # task, metric, subset
Runs = list[list[dict[Key, Score]]]  # scores of each system's seeds

# Statistics whose items contain the gold value, and in which column.
_GOLD = {"spearman": 0, "pearson": 0, "f1": 2, "precision": 2, "recall": 2}


def key(score: Score) -> Key:
    """The key of a score."""
    return score.task, score.metric, score.subset


def select(scores: Runs, tasks: Sequence[str], metrics: Sequence[str]) -> list[tuple[str, str]]:
    """Tasks and metrics of any system to compare, in their order. Raises `EvaluationError` for one that all lack."""
    metrics_of: dict[str, list[str]] = {}
    for task, metric, _ in (name for runs in scores for run in runs for name in run):
        if metric not in metrics_of.setdefault(task, []):
            metrics_of[task].append(metric)
    every = {metric for names in metrics_of.values() for metric in names}
    for kind, asked, available in (("task", tasks, set(metrics_of)), ("metric", metrics, every)):
        if unknown := [name for name in asked if name not in available]:
            raise EvaluationError(f"no result has the {kind} {unknown[0]!r}; {nearest(unknown[0], sorted(available))}")
    main = main_metrics(score for runs in scores for run in runs for score in run.values())
    chosen = {task: names for task, names in metrics_of.items() if not tasks or task in tasks}
    return [
        (task, metric)
        for task, names in chosen.items()
        for metric in ([name for name in names if name in metrics] if metrics else main[task])
    ]


def whole_tasks_lacking(tasks: Iterable[str], scores: Runs, names: Sequence[str]) -> dict[str, str]:
    """The tasks of which a result has no score at all, and which system's result that is."""
    lacking: dict[str, str] = {}
    tasks_of = [[{task for task, _, _ in run} for run in runs] for runs in scores]
    for task in tasks:
        for name, runs in zip(names, tasks_of, strict=True):
            count = sum(task in run for run in runs)
            if count < len(runs):
                lacking.setdefault(task, _lacks(name, count, len(runs)))
    return lacking


def subsets(task: str, metric: str, scores: Runs) -> list[str]:
    """Subsets of any system, languages before averages, and an average after those it is over."""
    every = (item for runs in scores for run in runs for item in run.items())
    return _order({name[2]: score for name, score in every if name[:2] == (task, metric)})


def _order(scores: Mapping[str, Score]) -> list[str]:
    def depth(subset: str) -> int:
        over = scores[subset].over
        inner = [depth(name) for name in over if name in scores and name != subset]
        return 1 + max(inner, default=0) if over else 0

    return sorted(scores, key=depth)


def problem(
    scores: list[list[Score]], seeds: list[int], names: list[str], groups: Mapping[str, list[list[Score]]]
) -> str:
    """The reason why a subset cannot be compared; empty if it can. `groups` are the subsets that can."""
    for name, runs, count in zip(names, scores, seeds, strict=True):
        if len(runs) < count:
            return _lacks(name, len(runs), count)
    first, named = scores[0][0], [(name, score) for name, runs in zip(names, scores, strict=True) for score in runs]
    for name, score in named:
        if set(score.over) != set(first.over):
            return f"{names[0]} and {name} average over different subsets"
        if score.n != first.n:
            sizes = f"{names[0]} has n = {first.n} and {name} has {score.n}"
            return f"{sizes}; the two were evaluated on different data"
        if (score.unit, score.lower_is_better) != (first.unit, first.lower_is_better):
            return f"{names[0]} and {name} differ in its unit or in whether lower is better; evaluate again"
        if not _same_gold(first, score):
            return f"the gold of {names[0]} and {name} differs; the two were evaluated on different data"
    item_set = {score.item_set: name for name, score in named if score.item_set}
    if len(item_set) > 1:
        one, other, *_ = item_set.values()
        return f"{one} and {other} have different item sets; the two were evaluated on different data"
    lacking = [name for name in first.over if name not in groups]
    return f"it averages over {lacking[0]}, which cannot be compared" if lacking else ""


def _lacks(name: str, present: int, count: int) -> str:
    return f"{name} lacks it" if count == 1 else f"{name} has it in {present} of {count} results"


def alike(rows: Mapping[str, Sequence[Score | None]]) -> set[str]:
    """The subsets of one task and metric in which the systems that have them were evaluated on the same data.

    `rows` have a score of each system, None where it lacks one. An average is comparable if everything it averages over
    is.
    """
    first = {subset: next(score for score in row if score) for subset, row in rows.items()}
    groups: dict[str, list[list[Score]]] = {}
    for subset in _order(first):
        present = [[score] for score in rows[subset] if score]
        absent = dict.fromkeys(set(first[subset].over) - set(rows), present)
        if not problem(present, [1] * len(present), [""] * len(present), {**absent, **groups}):
            groups[subset] = present
    return set(groups)


def _same_gold(a: Score, b: Score) -> bool:
    if a.items is None or b.items is None:
        return True
    if a.statistic != b.statistic or a.items.shape != b.items.shape:
        return False
    column = _GOLD.get(a.statistic.partition("/")[0])
    return column is None or bool((a.items[:, column] == b.items[:, column]).all())
