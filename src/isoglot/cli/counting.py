"""What a long encoding looks like on stderr: a counter on a terminal, nothing but the lines of words elsewhere."""

from __future__ import annotations

from time import monotonic
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isoglot.cli.display import clock


class Counting:
    """A listener for `progress` of `encode`, which may be called many times over: it counts on. Use it with `with`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self._live = Live(console=self.console, refresh_per_second=4, transient=True)
        self._before, self._last, self._start = 0, 0, monotonic()

    def __enter__(self) -> Counting:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, done: int, total: int) -> None:
        """So many texts of this call are done."""
        if done < self._last:  # another call has begun
            self._before += self._last
        self._last = done
        seconds = max(monotonic() - self._start, 1e-9)
        count = self._before + done
        left = (total - done) * seconds / count
        self._live.update(Text(f"{count:,} texts encoded, {count / seconds:,.0f}/s, this part {clock(left)} left"))

    def say(self, words: str) -> None:
        """Print a line of words."""
        self.console.print(Text(words), soft_wrap=True)
