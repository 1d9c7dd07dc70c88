"""Which encoder of a run is kept: the best by each named choice of dev scores, until patience ends.

One run may keep several: MPCL chooses the encoder it reports on STS17 by STS22 and the other way round, so that each
test score has a dev task that is not its own.

A metric has a direction (`evaluation.base.Metric`): an error is minimised. A tie keeps the earlier encoder. A score
that is not a finite number is never the best one, and counts for patience as one that is no better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoglot.data.languages import is_language
from isoglot.encoders.base import Encoder, encode
from isoglot.errors import RecipeError, nearest, shown
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score
from isoglot.evaluation.run import announced, function, plan, run_tasks
from isoglot.settings import EvaluationSettings, Recipe
from isoglot.training import ranks


@dataclass(slots=True)
class Choice:
    """The best encoder by the mean of some dev scores, in `folder`.

    lower    whether a lower score is better
    best     its score, None before the first one that is a finite number
    latest   the last score
    since    evaluations since the best one
    """

    name: str
    tasks: tuple[EvaluationSettings, ...]
    folder: Path
    lower: bool = False
    best: float | None = None
    latest: float = float("nan")
    since: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        """Whether patience has ended."""
        return 0 < self.tasks[0].patience <= self.since

    def cost(self, score: float | None) -> float:
        """What the best encoder has the least of: the score or its negative; infinite where there is no number."""
        if score is None or not math.isfinite(score):
            return math.inf
        return score if self.lower else -score

    def due(self, step: int) -> bool:
        """Whether this many steps of a stage call for an evaluation."""
        every = self.tasks[0].every
        return every > 0 and step % every == 0


class Selector:
    """Scores encoders on the recipe's dev tasks and keeps the best ones: in `model/`, and in `best/NAME/`.

    Raises RecipeError for a choice other than the first whose name cannot be that of a folder, and as `check` does;
    EvaluationError for a dev task that lacks its data.
    """

    def __init__(self, recipe: Recipe, output: Path) -> None:
        self.recipe = recipe
        self.choices: list[Choice] = []
        lower = check(recipe)
        for name in dict.fromkeys(evaluation.name for evaluation in recipe.evaluation):
            tasks = tuple(evaluation for evaluation in recipe.evaluation if evaluation.name == name)
            folder = output / "best" / _folder(name) if self.choices else output / "model"
            self.choices.append(Choice(name, tasks, folder, lower=lower[name]))
        for place, settings in enumerate(recipe.evaluation):
            _find_data(recipe, settings, where=_where(recipe, place))

    @property
    def best(self) -> float | None:
        """The best score of the first choice."""
        return self.choices[0].best if self.choices else None

    @property
    def lower_is_better(self) -> bool:
        """The direction of the first choice."""
        return bool(self.choices) and self.choices[0].lower

    @property
    def exhausted(self) -> bool:
        """Whether the patience of every choice has ended."""
        return bool(self.choices) and all(choice.exhausted for choice in self.choices)

    def due(self, step: int, *, last: bool) -> list[Choice]:
        """The choices to be judged after this many steps of a stage; all of them after the last."""
        return [choice for choice in self.choices if last or choice.due(step)]

    def judge(self, choices: Sequence[Choice], encoder: Encoder) -> None:
        """Score what the encoder would leave behind on the tasks of `choices`, and save it where none was better."""
        for choice in choices:
            candidates = encoder.exports()
            tried = [self._score(choice, candidate) if ranks.rank() == 0 else (0.0, []) for candidate in candidates]
            number = min(range(len(tried)), key=lambda n: choice.cost(tried[n][0]))
            choice.records = tried[number][1]
            choice.latest = ranks.from_first(tried[number][0])
            if choice.cost(choice.latest) >= choice.cost(choice.best):
                choice.since += 1
                continue
            choice.best, choice.since = choice.latest, 0
            if ranks.rank() == 0:
                candidates[number].save(choice.folder)

    def snapshot(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {choice.name: {"best": choice.best, "since": choice.since} for choice in self.choices}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the state of a checkpoint."""
        for choice in self.choices:
            best = state[choice.name]["best"]  # NaN in checkpoints of versions that kept one
            choice.best = best if math.isfinite(choice.cost(best)) else None
            choice.since = state[choice.name]["since"]

    def _score(self, choice: Choice, encoder: Encoder) -> tuple[float, list[dict[str, Any]]]:
        """The mean of the scores that decide, and all scores as plain records."""
        values, everything = [], []
        vectors = function(lambda texts: encode(encoder, texts))
        for settings in choice.tasks:
            planned = plan([settings.task], languages=settings.languages)
            finished = run_tasks(vectors, planned, data=self.recipe.resolve(settings.data))
            scores = [score for done in finished for score in done.scores]
            records = [{"subset": s.subset, "metric": s.metric, "value": number(s.value), "n": s.n} for s in scores]
            values.append(_deciding(scores, settings))
            everything += [{"task": settings.task, **r} for r in records] if len(choice.tasks) > 1 else records
        return sum(values) / len(values), everything


def _folder(name: str) -> str:
    """The name of a choice, if it can be that of a folder."""
    if name in ("", ".", "..") or any(letter in name for letter in "/\\\0"):
        raise RecipeError(
            f"evaluation.name: {shown(name)} cannot be a folder in best/; name every choice but the first, "
            "for example sts22"
        )
    return name


def check(recipe: Recipe) -> dict[str, bool]:
    """Whether lower is better, for each choice of a recipe by its name.

    Raises RecipeError for a task or a metric that does not exist, for a task that needs more than vectors, and for a
    choice of metrics with different directions, whose mean would have none.
    """
    chosen: dict[str, dict[bool, str]] = {}
    for place, settings in enumerate(recipe.evaluation):
        where = _where(recipe, place)
        if settings.task not in TASKS:
            raise RecipeError(
                f"{where}.task: no task is called {shown(settings.task)}; {nearest(settings.task, TASKS)}"
            )
        task = TASKS[settings.task]
        metrics = {metric.name: metric for metric in task.metrics}
        if settings.metric not in metrics:
            hint = f"its metrics: {', '.join(metrics)}"
            raise RecipeError(f"{where}.metric: {settings.task} has no metric {shown(settings.metric)}; {hint}")
        if getattr(task, "needs_model", False):
            raise RecipeError(
                f"{where}.task: {settings.task} trains a model of its own; take one that needs vectors only"
            )
        directions = chosen.setdefault(settings.name, {})
        directions[metrics[settings.metric].lower_is_better] = f"{settings.task} {settings.metric}"
        if len(directions) > 1:
            raise RecipeError(
                f"{where}: of {directions[True]} lower is better and of {directions[False]} higher, so their mean "
                "cannot choose; give the two evaluations different names"
            )
    return {name: True in directions for name, directions in chosen.items()}


def number(value: float) -> float | None:
    """A score as JSON can hold it: None where it is not a finite number."""
    return value if math.isfinite(value) else None


def _where(recipe: Recipe, place: int) -> str:
    return "evaluation" if len(recipe.evaluation) == 1 else f"evaluation.{place}"


def _find_data(recipe: Recipe, settings: EvaluationSettings, *, where: str) -> None:
    """Refuse, before the first step, lacking data and a subset that cannot come of it.

    Averages such as `mean` or `xtreme-36` are known only once a task has run; subsets named by languages are known.
    """
    subsets = announced(settings.task, data=recipe.resolve(settings.data), languages=settings.languages)
    codes = settings.subset.split("-")
    if settings.subset not in subsets and len(codes) < 3 and all(map(is_language, codes)):
        raise RecipeError(
            f"{where}.subset: {settings.task} has no subset {shown(settings.subset)} in {settings.data}; "
            f"{nearest(settings.subset, subsets)}"
        )


def _deciding(scores: Sequence[Score], settings: EvaluationSettings) -> float:
    for score in scores:
        if score.subset == settings.subset and score.metric == settings.metric:
            return float(score.value)
    known = sorted({f"{score.subset} {score.metric}" for score in scores})
    raise RecipeError(
        f"evaluation: {settings.task} gives no score of subset {settings.subset!r} and metric {settings.metric!r}; "
        f"it gives {', '.join(known[:8])}"
    )
