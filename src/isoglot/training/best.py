"""Selects the encoder that a run keeps: the best by each named choice of dev scores, with early stopping.

One run may keep several: MPCL chooses the encoder it reports on STS17 by STS22 and the other way round, so that no test
score is selected on itself.

A metric has a direction (`evaluation.base.Metric`): an error is minimised. A tie keeps the earlier encoder. A score
that is not a finite number is never the best one, and counts for patience as one that is not better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoglot.core.errors import CheckpointError, RecipeError, nearest, quote
from isoglot.data.corpus import digest_of
from isoglot.data.languages import is_language
from isoglot.encoders.base import Encoder
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Encode, Metric, Score, Task
from isoglot.evaluation.run import data_digest, function, list_subsets, plan, run_tasks
from isoglot.model import Model
from isoglot.training import ranks
from isoglot.training.settings import Recipe
from isoglot.training.together import encode_together


@dataclass(frozen=True, slots=True)
class Dev:
    """A dev score of a choice: one metric of a task on its data.

    subset  the one that decides; "": `mean` if the task has it, else the mean over all subsets
    where   the place to name in errors
    """

    task: Task
    metric: Metric
    data: Path
    languages: tuple[str, ...] = ()
    subset: str = ""
    where: str = "dev"

    def check_data(self) -> None:
        """Raise, before the first step, EvaluationError for missing data and RecipeError for an unknown subset.

        Averages such as `mean` or `xtreme-36` are known only after a task has run, subsets named by languages before.
        """
        subsets = list_subsets(self.task, data=self.data, languages=self.languages)
        codes = self.subset.split("-")
        if self.subset and self.subset not in subsets and len(codes) < 3 and all(map(is_language, codes)):
            raise RecipeError(
                f"{self.where}.subset: {self.task.name} has no subset {quote(self.subset)} in {self.data}; "
                f"{nearest(self.subset, subsets)}"
            )

    def digest(self) -> str:
        """Digest of the data."""
        groups = getattr(self.task, "groups", None)
        return digest_of(groups) if groups else data_digest(self.task, self.data, languages=self.languages)

    def deciding(self, scores: Sequence[Score]) -> float:
        """The value among all scores of the task; RecipeError if it is not there."""
        values = {score.subset: float(score.value) for score in scores if score.metric == self.metric.name}
        if not self.subset and values:
            return values["mean"] if "mean" in values else sum(values.values()) / len(values)
        if self.subset in values:
            return values[self.subset]
        names = sorted({f"{score.subset} {score.metric}" for score in scores})
        raise RecipeError(
            f"{self.where}: {self.task.name} has no score of subset {self.subset!r} and metric {self.metric.name!r}; "
            f"its scores: {', '.join(names[:8])}"
        )


@dataclass(slots=True)
class Choice:
    """The best encoder by the mean of some dev scores.

    every     steps between evaluations; 0: only at the end of a stage
    patience  end the stage after this many evaluations in it without a better one; 0: never
    folder    where the best encoder is saved; set by the `Selector`
    best      its score, None before the first one that is a finite number
    latest    the last score
    since     evaluations of the stage since the best one
    """

    devs: tuple[Dev, ...]
    name: str = ""
    every: int = 0
    patience: int = 0
    folder: Path = Path()
    best: float | None = None
    latest: float = float("nan")
    since: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def lower(self) -> bool:
        """Whether a lower score is better."""
        return self.devs[0].metric.lower_is_better

    @property
    def is_exhausted(self) -> bool:
        """Whether patience has ended."""
        return 0 < self.patience <= self.since

    def cost(self, score: float | None) -> float:
        """The value minimized by the best encoder: the score or its negative; infinite for a missing score."""
        if score is None or not math.isfinite(score):
            return math.inf
        return score if self.lower else -score

    def score(self, encoder: Model) -> tuple[float, list[dict[str, Any]]]:
        """The mean of the scores that decide, and all scores as plain records.

        Rank 0 runs the tasks, and every rank computes its share of the vectors; the other ranks return (0.0, []).
        """
        return encode_together(encoder, self._score) or (0.0, [])

    def _score(self, encode: Encode) -> tuple[float, list[dict[str, Any]]]:
        values, everything = [], []
        vectors = function(encode)
        for dev in self.devs:
            finished = run_tasks(vectors, plan([dev.task], languages=dev.languages), data=Path(dev.data))
            scores = [score for done in finished for score in done.scores]
            records = [{"subset": s.subset, "metric": s.metric, "value": number(s.value), "n": s.n} for s in scores]
            values.append(dev.deciding(scores))
            everything += [{"task": dev.task.name, **r} for r in records] if len(self.devs) > 1 else records
        return sum(values) / len(values), everything


def choices_of(recipe: Recipe) -> list[Choice]:
    """The dev scores that choose, by their names.

    Raises RecipeError for a task or a metric that does not exist, for a task that needs more than vectors, and for a
    choice of metrics with different directions.
    """
    choices: dict[str, Choice] = {}
    for place, settings in enumerate(recipe.evaluation):
        where = "evaluation" if len(recipe.evaluation) == 1 else f"evaluation.{place}"
        if settings.held is None and settings.task not in TASKS:
            raise RecipeError(f"{where}.task: unknown task {quote(settings.task)}; {nearest(settings.task, TASKS)}")
        task: Task = TASKS[settings.task] if settings.held is None else settings.held
        metric = _find_metric(task, settings.metric, where=where)
        dev = Dev(task, metric, recipe.resolve(settings.data), settings.languages, settings.subset, where)
        choice = choices.setdefault(settings.name, Choice((), settings.name, settings.every, settings.patience))
        choice.devs = (*choice.devs, dev)
        if metric.lower_is_better != choice.lower:
            low, high = sorted((choice.devs[0], dev), key=lambda each: not each.metric.lower_is_better)
            raise RecipeError(
                f"{where}: lower is better for {low.task.name} {low.metric.name} and higher for {high.task.name} "
                f"{high.metric.name}, so their mean can't select a model; use different names for the two evaluations"
            )
    return list(choices.values())


def _find_metric(task: Task, metric: str, *, where: str) -> Metric:
    """The metric of a task by its name, or its main one by "".

    Raises RecipeError for a metric that does not exist, and for a task that needs more than vectors.
    """
    metrics = {declared.name: declared for declared in task.metrics}
    if not metric:
        metric = next((declared.name for declared in task.metrics if declared.main), task.metrics[0].name)
    if metric not in metrics:
        hint = f"its metrics: {', '.join(metrics)}"
        raise RecipeError(f"{where}.metric: {task.name} has no metric {quote(metric)}; {hint}")
    if getattr(task, "needs_model", False):
        raise RecipeError(f"{where}.task: {task.name} trains a model of its own; choose a task that needs vectors only")
    return metrics[metric]


def number(value: float) -> float | None:
    """A score for JSON: None if it is not finite."""
    return value if math.isfinite(value) else None


class Selector:
    """Scores encoders and keeps the best by each choice: that of the first in `model/`, of others in `best/NAME/`.

    Raises RecipeError for a choice other than the first whose name cannot be that of a folder, and as `Dev.check_data`
    does.
    """

    def __init__(self, choices: Sequence[Choice], output: Path) -> None:
        self.choices = list(choices)
        for place, choice in enumerate(self.choices):
            if place and (choice.name in ("", ".", "..") or any(letter in choice.name for letter in "/\\\0")):
                raise RecipeError(
                    f"evaluation.name: {quote(choice.name)} cannot be a folder in best/; name every choice but the "
                    "first, for example sts22"
                )
            choice.folder = output / "best" / choice.name if place else output / "model"
            for dev in choice.devs:
                dev.check_data()

    @property
    def best(self) -> float | None:
        """The best score of the first choice."""
        return self.choices[0].best if self.choices else None

    @property
    def lower_is_better(self) -> bool:
        """The direction of the first choice."""
        return bool(self.choices) and self.choices[0].lower

    @property
    def is_exhausted(self) -> bool:
        """Whether the patience of every choice has ended."""
        return bool(self.choices) and all(choice.is_exhausted for choice in self.choices)

    def list_due(self, step: int, *, last: bool) -> list[Choice]:
        """The choices that are due after this many steps of a stage; all of them after the last step."""
        return [choice for choice in self.choices if last or (choice.every and step % choice.every == 0)]

    def judge(self, choices: Sequence[Choice], encoder: Encoder) -> None:
        """Score the encoder's exports on the tasks of `choices`, and save it for each choice where it is the best so
        far.
        """
        for choice in choices:
            candidates = encoder.exports()
            scored = [choice.score(candidate) for candidate in candidates]
            best = min(range(len(scored)), key=lambda n: choice.cost(scored[n][0]))
            choice.records = scored[best][1]
            choice.latest = ranks.from_first(scored[best][0])
            if choice.cost(choice.latest) >= choice.cost(choice.best):
                choice.since += 1
                continue
            choice.best, choice.since = choice.latest, 0
            if ranks.rank() == 0:
                candidates[best].save(choice.folder)

    def snapshot(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {choice.name: {"best": choice.best, "since": choice.since} for choice in self.choices}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint. Raises CheckpointError if the best encoder is not there any more."""
        for choice in self.choices:
            choice.best, choice.since = state[choice.name]["best"], state[choice.name]["since"]
            if choice.best is not None and not choice.folder.exists():
                raise CheckpointError(f"{choice.folder}: the best encoder is missing; remove the run to train again")
