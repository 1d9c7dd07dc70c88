"""Finds the scores that several systems have on the same data, and the reasons against comparing others."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from isoglot.core.errors import EvaluationError, nearest
from isoglot.core.score import Score, main_metrics

Key = tuple[str, str, str]  # task, subset, metric
Runs = list[list[dict[Key, Score]]]  # scores of each system's seeds

# Statistics whose items contain the gold value, and in which column.
_GOLD = {"spearman": 0, "pearson": 0, "f1": 2, "precision": 2, "recall": 2}


def make_key(score: Score) -> Key:
    """The key of a score."""
    return score.task, score.subset, score.metric


def list_parts(average: Score) -> list[Key]:
    """The keys of the scores that an average is over; none of another score."""
    return [(average.task, subset, average.metric) for subset in average.over]


def select(scores: Runs, tasks: Sequence[str], metrics: Sequence[str]) -> list[tuple[str, str]]:
    """Tasks and metrics of any system to compare, in their order. Raises `EvaluationError` for one that all lack."""
    every = [score for runs in scores for run in runs for score in run.values()]
    main, present = main_metrics(every), dict.fromkeys((score.task, score.metric) for score in every)
    for kind, asked, names in (("task", tasks, set(main)), ("metric", metrics, {metric for _, metric in present})):
        if unknown := [name for name in asked if name not in names]:
            raise EvaluationError(f"no result has the {kind} {unknown[0]!r}; {nearest(unknown[0], sorted(names))}")
    places = {task: place for place, task in enumerate(main)}  # another system may add metrics to an earlier task
    return [
        (task, metric)
        for task, metric in sorted(present, key=lambda name: places[name[0]])
        if (not tasks or task in tasks) and metric in (metrics or main[task])
    ]


def list_keys(task: str, metric: str, scores: Runs) -> list[Key]:
    """The keys that any system has of a metric, subsets before averages, and an average after those it is over."""
    every = (score for runs in scores for run in runs for score in run.values())
    return _order({make_key(score): score for score in every if (score.task, score.metric) == (task, metric)})


def _order(scores: Mapping[Key, Score]) -> list[Key]:
    def depth(name: Key) -> int:
        parts = [depth(part) for part in list_parts(scores[name]) if part in scores and part != name]
        return 1 + max(parts, default=0) if scores[name].over else 0

    return sorted(scores, key=depth)


def problem(scores: list[list[Score]], seeds: list[int], names: list[str], comparable: Container[Key]) -> str:
    """The reason why a subset cannot be compared; empty if it can. `comparable` are the keys of those that can."""
    for name, runs, count in zip(names, scores, seeds, strict=True):
        if len(runs) < count:
            return f"{name} lacks it" if count == 1 else f"{name} has it in {len(runs)} of {count} results"
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
    bad = next((part for part in list_parts(first) if part not in comparable), None)
    return "" if bad is None else f"it averages over {bad[1]}, which cannot be compared"


def alike(rows: Mapping[str, Sequence[Score | None]]) -> set[str]:
    """The subsets of one task and metric in which the systems that have them were evaluated on the same data.

    `rows` have a score of each system, None where it lacks one. An average is comparable if everything it averages over
    is.
    """
    first = {make_key(score): score for row in rows.values() for score in row[::-1] if score}
    comparable: set[Key] = set()
    for name in _order(first):
        scores = [[score] for score in rows[name[1]] if score]
        absent = set(list_parts(first[name])) - first.keys()  # results may hold an average without its subsets
        if not problem(scores, [1] * len(scores), [""] * len(scores), comparable | absent):
            comparable.add(name)
    return {subset for _, subset, _ in comparable}


def _same_gold(a: Score, b: Score) -> bool:
    if a.items is None or b.items is None:
        return True
    if a.statistic != b.statistic or a.items.shape != b.items.shape:
        return False
    column = _GOLD.get(a.statistic.partition("/")[0])
    return column is None or bool((a.items[:, column] == b.items[:, column]).all())
