"""What a run tells whoever watches it: rates, losses, padding, negatives, and the time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from isoglot.training.step import StepReport

WINDOW = 10.0  # seconds over which rates are taken


@dataclass(frozen=True, slots=True)
class Progress:
    """What a display may show after a step; rates are over the last seconds, `left` is seconds to the end."""

    stage: str
    step: int
    total: int
    losses: dict[str, float]
    lr: float
    norm: float
    groups_per_second: float
    tokens_per_second: float
    padding: float
    negatives: float
    left: float


Watch: TypeAlias = Callable[[Progress | str], None]  # a step, or a line of words


class Meter:
    """Turns step reports into rates over the last few seconds."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.moments: list[tuple[float, int, int]] = [(time.monotonic(), 0, 0)]  # time, groups, tokens so far

    def read(self, reports: dict[str, StepReport], *, stage: str, step: int, lr: float, norm: float) -> Progress:
        """The state after one more step."""
        now, groups, tokens = time.monotonic(), self.moments[-1][1], self.moments[-1][2]
        real, padded = sum(r.tokens for r in reports.values()), sum(r.padded for r in reports.values())
        groups, tokens = groups + sum(r.groups for r in reports.values()), tokens + real
        recent = [moment for moment in self.moments[:-1] if now - moment[0] < WINDOW]
        self.moments = [*recent, self.moments[-1], (now, groups, tokens)]
        then, steps = self.moments[0], len(self.moments) - 1
        span = max(now - then[0], 1e-9)
        losses = {
            name if len(reports) == 1 else f"{stream}/{name}": float(loss)
            for stream, report in reports.items()
            for name, loss in report.losses.items()
        }
        return Progress(
            stage=stage,
            step=step,
            total=self.total,
            losses=losses,
            lr=lr,
            norm=norm,
            groups_per_second=(groups - then[1]) / span,
            tokens_per_second=(tokens - then[2]) / span,
            padding=1 - real / max(padded, 1),
            negatives=max((report.negatives for report in reports.values()), default=0.0),
            left=(self.total - step) * span / steps,
        )


def silent(_event: Progress | str) -> None:
    """The watcher that shows nothing."""
