"""Display and log of a run: a progress bar, and `log.jsonl`."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from isoglot.core.progress import Bar, Progress, clock, is_interactive
from isoglot.data.files import atomic_write, writing
from isoglot.training import ranks
from isoglot.training.step import StepReport
from isoglot.training.trackers import Trackers, flatten

WINDOW = 10.0  # seconds over which rates are taken


@dataclass(frozen=True, slots=True)
class Status:
    """What is known after a step of a stage; rates are over the last seconds, `left` is seconds to the stage's end."""

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

    @property
    def details(self) -> str:
        """Losses, rates, padding, negatives and the time that is left, for one line."""
        losses = " ".join(f"{name} {value:.3f}" for name, value in self.losses.items())
        return (
            f"{losses}  {self.groups_per_second:,.0f} groups/s  {self.tokens_per_second:,.0f} tokens/s  "
            f"padding {self.padding:.0%}  negatives {self.negatives:,.0f}  ETA {clock(self.left)}"
        )


class Meter:
    """Turns step reports into rates over the last few seconds."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.moments: list[tuple[float, int, int]] = [(time.monotonic(), 0, 0)]  # time, groups, tokens so far

    def read(self, reports: dict[str, StepReport], *, stage: str, step: int, lr: float, norm: float) -> Status:
        """The status after one more step."""
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
        return Status(
            stage=stage, step=step, total=self.total, losses=losses, lr=lr, norm=norm,
            groups_per_second=(groups - then[1]) / span, tokens_per_second=(tokens - then[2]) / span,
            padding=1 - real / max(padded, 1), left=(self.total - step) * span / steps,
            negatives=max((report.negatives for report in reports.values()), default=0.0),
        )  # fmt: skip


class Display(Bar):
    """Shows a run on stderr, inside `with`: a bar on a terminal or in a notebook, elsewhere a line now and then.

    quiet     show nothing, as ranks other than the first do
    progress  also called, with (steps done, steps in all)
    """

    def __init__(
        self, console: Console | None = None, *, quiet: bool = False, progress: Progress | None = None
    ) -> None:
        self.progress = progress
        quiet = quiet or logging.getLogger("isoglot").level > logging.INFO  # `isoglot --quiet`
        console = console or Console(stderr=True, highlight=False, quiet=quiet)
        is_drawn = not quiet and (console.is_terminal or is_interactive())
        write = None if quiet else partial(print, file=sys.stderr, flush=True)
        super().__init__(is_drawn=is_drawn, console=console, write=write)
        self.shown = 0.0  # the first step is a line too

    def report(self, message: str) -> None:
        """Print a message; above the bar, if there is one."""
        self.console.print(Text(message), soft_wrap=True)

    def update(self, status: Status) -> None:
        """Show a step."""
        if status.step == status.total:
            self.shown = 0.0  # and the last one
        self.work = status.stage
        self.show(status.step, status.total, f"{status.step}/{status.total}  {status.details}")
        if self.progress is not None:
            self.progress(status.step, status.total)


class RunLog:
    """Appends records to `log.jsonl` of a run's folder, and passes their numbers to `trackers`, with its `settings`.

    Each record has the step of the whole run. Only rank 0 writes. A resumed run first drops the
    lines of the steps it is about to repeat, so that the log of an interrupted run is that of an uninterrupted one.
    """

    def __init__(self, folder: Path, *, resumed_at: int, trackers: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._stream: IO[str] | None = None
        if ranks.rank() > 0:
            return
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "log.jsonl"
        if path.exists():
            lines = [line for line in path.read_bytes().split(b"\n") if _step(line) <= resumed_at]
            with atomic_write(path, binary=True) as stream:
                stream.write(b"".join(line + b"\n" for line in lines))
        with writing(path):
            self._stream = path.open("a", encoding="utf-8")
        self._trackers = Trackers(trackers, folder, settings, resumed=bool(resumed_at))

    def write(self, kind: str, step: int, **values: Any) -> None:
        """Append a record of a kind: `step`, `evaluation` or `warning`."""
        if self._stream is None:
            return
        line = json.dumps({"kind": kind, "step": step, **values}, allow_nan=False) + "\n"
        with writing(self._stream.name):
            self._stream.write(line)
            self._stream.flush()
        part = f"{kind}/{values['name']}" if "name" in values else kind  # of several evaluations, each its own
        flat = flatten({name: value for name, value in values.items() if not isinstance(value, list)}, "/", f"{part}/")
        numbers = {name: float(one) for name, one in flat if isinstance(one, int | float) and not isinstance(one, bool)}
        self._trackers.log(numbers, step)

    def close(self) -> None:
        """Flush and close the files."""
        if self._stream is not None:
            with suppress(OSError):  # errors have been reported when the line was written
                self._stream.close()
            self._trackers.close()


def _step(line: bytes) -> float:
    """The step of a line; None for a truncated or damaged line."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")
