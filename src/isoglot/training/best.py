"""Which encoder of a run is kept: the best by each named choice of dev scores, until patience ends.

One run may keep several: MPCL chooses the encoder it reports on STS17 by STS22 and the other way round, so that each
test score has a dev task that is not its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoglot.encoders.base import Encoder
from isoglot.encoders.inference import encode
from isoglot.errors import RecipeError
from isoglot.evaluation.run import evaluate
from isoglot.settings import EvaluationSettings, Recipe
from isoglot.training import ranks


@dataclass(slots=True)
class Choice:
    """The best encoder by the mean of some dev scores, in `folder`.

    best     its score, None before the first evaluation
    latest   the last score
    since    evaluations since the best one
    """

    name: str
    tasks: tuple[EvaluationSettings, ...]
    folder: Path
    best: float | None = None
    latest: float = float("nan")
    since: int = 0
    records: list[dict[str, Any]] = field(default_factory=list)

    @property
    def exhausted(self) -> bool:
        """Whether patience has ended."""
        return 0 < self.tasks[0].patience <= self.since

    def due(self, step: int) -> bool:
        """Whether this many steps of a stage call for an evaluation."""
        every = self.tasks[0].every
        return every > 0 and step % every == 0


class Selector:
    """Scores encoders on the recipe's dev tasks and keeps the best ones: in `model/`, and in `best/NAME/`.

    Raises RecipeError for a choice other than the first whose name cannot be that of a folder.
    """

    def __init__(self, recipe: Recipe, output: Path) -> None:
        self.recipe = recipe
        self.choices: list[Choice] = []
        for name in dict.fromkeys(evaluation.name for evaluation in recipe.evaluation):
            tasks = tuple(evaluation for evaluation in recipe.evaluation if evaluation.name == name)
            folder = output / "best" / _folder(name) if self.choices else output / "model"
            self.choices.append(Choice(name, tasks, folder))

    @property
    def best(self) -> float | None:
        """The best score of the first choice."""
        return self.choices[0].best if self.choices else None

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
            number = max(range(len(tried)), key=lambda n: tried[n][0])
            choice.records = tried[number][1]
            choice.latest = ranks.from_first(tried[number][0])
            if choice.best is not None and choice.latest <= choice.best:
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
            choice.best, choice.since = state[choice.name]["best"], state[choice.name]["since"]

    def _score(self, choice: Choice, encoder: Encoder) -> tuple[float, list[dict[str, Any]]]:
        """The mean of the scores that decide, and all scores as plain records."""
        values, everything = [], []
        for settings in choice.tasks:
            scores = evaluate(
                lambda texts: encode(encoder, texts),
                [settings.task],
                data=self.recipe.resolve(settings.data),
                languages=settings.languages,
            )
            records = [{"subset": s.subset, "metric": s.metric, "value": s.value, "n": s.n} for s in scores]
            values.append(_deciding(records, settings))
            everything += [{"task": settings.task, **r} for r in records] if len(choice.tasks) > 1 else records
        return sum(values) / len(values), everything


def _folder(name: str) -> str:
    """The name of a choice, if it can be that of a folder."""
    if name in ("", ".", "..") or any(letter in name for letter in "/\\\0"):
        raise RecipeError(
            f"evaluation.name: {name!r} cannot be a folder in best/; name every choice but the first, for example sts22"
        )
    return name


def _deciding(records: list[dict[str, Any]], settings: EvaluationSettings) -> float:
    for record in records:
        if record["subset"] == settings.subset and record["metric"] == settings.metric:
            return float(record["value"])
    known = sorted({f"{record['subset']} {record['metric']}" for record in records})
    raise RecipeError(
        f"evaluation: {settings.task} gives no score of subset {settings.subset!r} and metric {settings.metric!r}; "
        f"it gives {', '.join(known[:8])}"
    )
