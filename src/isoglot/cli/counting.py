"""How far a long work is, on stderr: a live line on a terminal; elsewhere nothing, or a plain line now and then."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isoglot.training.progress import EVERY, clock

Line = Callable[[int, int], str]


class Counting:
    """A listener for `progress`, called with (done, in all). Use it with `with`.

    line   what is told of these two; None: the number of texts encoded, over as many calls of `encode` as there are
    every  seconds between plain lines, where there is no terminal; infinite: none
    """

    def __init__(self, console: Console | None = None, *, line: Line | None = None, every: float = math.inf) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._line, self._every, self._told = line or _texts(), every, monotonic()

    def __enter__(self) -> Counting:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """So much is done."""
        line = self._line(done, done if total is None else total)
        if self.console.is_terminal:
            self._live.update(Text(line))
        elif monotonic() - self._told > self._every:
            self._told = monotonic()
            self.say(line)

    def say(self, words: str) -> None:
        """Print a line of words."""
        self.console.print(Text(words), soft_wrap=True)


def timed(what: str, console: Console | None = None) -> Counting:
    """A listener that reports the share that is done and the time left, also in plain lines.

    The time left is computed from this run's own share, because what an earlier run did took no time now. A new step
    begins where the total changes or less is done than before.
    """
    first: tuple[int, float] = 0, 0.0
    last: tuple[int, int | None] = 0, None

    def line(done: int, total: int) -> str:
        nonlocal first, last
        now = monotonic()
        if total != last[1] or done < last[0]:
            first = done, now
        last = done, total
        before, began = first
        left = f", {clock((total - done) * (now - began) / (done - before))} left" if done > before else ""
        return f"{what}: {done / max(total, 1):.0%}{left}"

    return Counting(console, line=line, every=EVERY)


def _texts() -> Line:
    """The speed is that of encoding alone where 0 is told before each call, not of what is computed between calls."""
    before, last, then, timed, seconds = 0, 0, monotonic(), 0, 0.0

    def line(done: int, total: int) -> str:
        nonlocal before, last, then, timed, seconds
        now = monotonic()
        if done < last or not done:  # another call has begun
            before, last = before + last, 0
        if done:
            timed, seconds = timed + done - last, seconds + now - then
        last, then = done, now
        told = f"{before + done:,} texts encoded"
        if not timed:
            return told
        rate = timed / max(seconds, 1e-9)
        return f"{told}, {rate:,.0f}/s" + (f", this part {clock((total - done) / rate)} left" if done < total else "")

    return line
