"""Which encoder of a run is kept: the best on a named dev score, until patience ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isoglot.encoders.base import Encoder
from isoglot.encoders.inference import encode
from isoglot.errors import RecipeError
from isoglot.evaluation.run import evaluate
from isoglot.settings import Recipe
from isoglot.training import ranks


class Selector:
    """Scores encoders on the recipe's dev task and keeps the best one in `folder`."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe, self.folder = recipe, folder
        self.best: float | None = None
        self.latest = float("nan")
        self.since = 0  # evaluations since the best one

    @property
    def exhausted(self) -> bool:
        """Whether patience has ended."""
        evaluation = self.recipe.evaluation
        return evaluation is not None and 0 < evaluation.patience <= self.since

    def judge(self, encoder: Encoder) -> list[dict[str, Any]]:
        """Score the encoder; save it if no earlier one was better. Returns all scores as plain records."""
        records: list[dict[str, Any]] = self._scores(encoder) if ranks.rank() == 0 else []
        self.latest = ranks.from_first(self._chosen(records) if ranks.rank() == 0 else 0.0)
        if self.best is None or self.latest > self.best:
            self.best, self.since = self.latest, 0
            if ranks.rank() == 0:
                encoder.save(self.folder)
        else:
            self.since += 1
        return records

    def snapshot(self) -> dict[str, Any]:
        """The state, for a checkpoint."""
        return {"best": self.best, "since": self.since}

    def restore(self, state: dict[str, Any]) -> None:
        """Take the state of a checkpoint."""
        self.best, self.since = state["best"], state["since"]

    def _scores(self, encoder: Encoder) -> list[dict[str, Any]]:
        settings = self.recipe.evaluation
        assert settings is not None
        scores = evaluate(
            lambda texts: encode(encoder, texts),
            [settings.task],
            data=self.recipe.resolve(settings.data),
            languages=settings.languages,
        )
        return [{"subset": s.subset, "metric": s.metric, "value": s.value, "n": s.n} for s in scores]

    def _chosen(self, records: list[dict[str, Any]]) -> float:
        settings = self.recipe.evaluation
        assert settings is not None
        for record in records:
            if record["subset"] == settings.subset and record["metric"] == settings.metric:
                return float(record["value"])
        known = sorted({f"{record['subset']} {record['metric']}" for record in records})
        raise RecipeError(
            f"evaluation: {settings.task} gives no score of subset {settings.subset!r} and metric {settings.metric!r}; "
            f"it gives {', '.join(known[:8])}"
        )
