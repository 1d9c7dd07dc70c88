"""What a metric means to a reader: which stands for its task, whether less of it is better, how it is written."""

from __future__ import annotations

from collections.abc import Sequence

from isoglot.evaluation.base import Score

# Task, or what its name has before "/" -> its metric, the first of these that its scores have.
MAIN_METRIC: dict[str, tuple[str, ...]] = {
    "tatoeba": ("accuracy/mean",),
    "retrieval": ("accuracy/mean",),
    "xsim": ("error/ratio",),
    "bucc": ("f1",),
    **{f"sts{year}": ("spearman/all",) for year in range(12, 17)},
    "sts-b": ("spearman/all",),
    "sick-r": ("spearman/all",),
    "sts17": ("spearman",),
    "sts22": ("spearman",),
    "sts-b-multi": ("spearman",),
    "sts": ("spearman",),
    "mewsc-16": ("accuracy",),
    "stc": ("accuracy",),
    "clustering": ("accuracy",),
    "tnews": ("accuracy",),
    "mtop": ("accuracy",),
    "sib-200": ("accuracy",),
    "mldoc": ("accuracy",),
    "xnli": ("accuracy",),
    "paws-x": ("accuracy",),
    "language-id": ("accuracy",),
    "alignment": (),  # both of its metrics: either alone is easily perfect
    "nearest": ("cosine/1",),
    "similarity": ("cosine/contrast",),  # encoders differ in where their cosines lie
    "centroids": ("distance",),
    "map": ("variance/meaning",),
}

# Beginnings of metrics, and of tasks, of which less is better.
_LOWER_METRICS = ("error", "alignment", "uniformity", "distance", "variance/language", "cosine/std")
_LOWER_TASKS = ("language-id", "centroids")
# Beginnings of metrics that are no shares, and are shown as they are.
_PLAIN = ("alignment", "uniformity", "distance")

# Subsets of a task up to which each is shown and compared; of more (60 languages have 3540 pairs) the averages are.
MANY = 200

_OLD_AVERAGES = ("mean", "xtreme-14", "xtreme-36", "laser-112")


def main_metrics(task: str, metrics: Sequence[str]) -> list[str]:
    """The metric that stands for a task, among those it has.

    All of them for a task that the table does not know, or whose metrics must be read together.
    """
    known = MAIN_METRIC.get(task, MAIN_METRIC.get(task.partition("/")[0], ()))
    return next(([metric] for metric in known if metric in metrics), list(metrics))


def lower_is_better(task: str, metric: str) -> bool:
    """Whether a smaller value is the better one: errors, distances, and what shows which language a text is in."""
    return metric.startswith(_LOWER_METRICS) or task.startswith(_LOWER_TASKS)


def scale(metric: str) -> float:
    """What values of a metric are multiplied with to be shown: 100 for shares and correlations, 1 for distances."""
    return 1.0 if metric.startswith(_PLAIN) else 100.0


def shown(value: float | None, metric: str, *, sign: bool = False, digits: int = 1) -> str:
    """A value as tables show it: percent with one decimal, a distance with two more; a dash for None."""
    if value is None:
        return "–"
    plain = scale(metric) == 1
    rounded = round(value * scale(metric), digits + 2 * plain) + 0.0  # never "-0.0"
    return f"{rounded:{'+' if sign and rounded else ''}.{digits + 2 * plain}f}"


def is_average(score: Score) -> bool:
    """Whether a score is an average of others. Results of version 0.1 do not say so, and name it by its list."""
    return bool(score.over) or (score.items is None and score.subset in _OLD_AVERAGES)
