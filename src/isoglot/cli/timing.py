"""How far a long computation is and how long it will take: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isoglot.cli.display import EVERY, clock


class Timing:
    """A listener for `progress`, called with (done, in all). Use it with `with`; `what` names the work.

    The time left is told from this run's own share: what was done before it began took no time now.
    """

    def __init__(self, what: str, console: Console | None = None) -> None:
        self.what = what
        self.console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._first: tuple[int, float] | None = None
        self._told = time.monotonic()

    def __enter__(self) -> Timing:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, done: int, total: int) -> None:
        """So much is done."""
        now = time.monotonic()
        if self._first is None:
            self._first = (done, now)
        before, began = self._first
        left = f", {clock((total - done) * (now - began) / (done - before))} left" if done > before else ""
        line = f"{self.what}: {done / total:.0%}{left}"
        if self.console.is_terminal:
            self._live.update(Text(line))
        elif now - self._told > EVERY:
            self._told = now
            self.console.print(Text(line), soft_wrap=True)
