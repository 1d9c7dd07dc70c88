"""What a training run looks like: a live line on a terminal, a plain line now and then elsewhere; all on stderr."""

from __future__ import annotations

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from isoglot.training.progress import Progress

EVERY = 5.0  # seconds between plain lines


class Display:
    """A watcher for `train`: hand it every event, inside `with`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False)
        self.live = (
            Live(console=self.console, refresh_per_second=4, transient=True) if self.console.is_terminal else None
        )
        self.told = 0.0

    def __enter__(self) -> Display:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def __call__(self, event: Progress | str) -> None:
        """Show a step, or print a line of words."""
        if isinstance(event, str):
            self.console.print(Text(event), soft_wrap=True)
            return
        if self.live:
            self.live.update(Text(line(event)))
        elif time.monotonic() - self.told > EVERY or event.step == event.total:
            self.told = time.monotonic()
            sys.stderr.write(line(event) + "\n")
            sys.stderr.flush()


def line(event: Progress) -> str:
    """One step as a line of words."""
    losses = " ".join(f"{name} {value:.3f}" for name, value in event.losses.items())
    return (
        f"{event.stage} {event.step}/{event.total}  {losses}  "
        f"{event.groups_per_second:,.0f} groups/s  {event.tokens_per_second:,.0f} tokens/s  "
        f"padding {event.padding:.0%}  negatives {event.negatives:,.0f}  left {clock(event.left)}"
    )


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
