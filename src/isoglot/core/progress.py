"""Progress of long work: the signature of progress callbacks, and what is shown of them, a bar or lines."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

Progress = Callable[[int, int | None], None]
"""Called with (done, total) during the work; `total` is None while it is unknown."""
Report = Callable[[str], None]
"""Called with messages during the work."""

LONG = 2.0  # seconds of work before a bar appears by default
EVERY = 5.0  # seconds between two lines if there is no bar

_drawing = threading.Lock()  # only one bar at a time, over all threads
_Bar = TypeVar("_Bar", bound="Bar")


class Bar:
    """Shows work that is counted, inside `with`: a bar of rich or, where none is drawn, a line now and then.

    draw    makes the bar, at the first call of `show` after `wait` seconds
    write   prints a line, at most one in `every` seconds, if there is no `draw`; None: nothing is shown
    """

    def __init__(
        self,
        draw: Callable[[], Any] | None,
        write: Callable[[str], None] | None = None,
        *,
        wait: float = 0.0,
        every: float = EVERY,
    ) -> None:
        self.draw, self.write, self.wait, self.every = draw, write, wait, every
        self.drawing: Any = None
        self.shown = monotonic()

    def __enter__(self: _Bar) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.drawing is not None:
            self.drawing.stop()

    def show(self, work: str, done: int, total: int | None, *, line: str, **fields: str) -> None:
        """Show that `done` of `total` of the work of that name are done; the bar has `fields`, a log has the line."""
        now = monotonic()
        if self.draw is None:
            if self.write is not None and now - self.shown > self.every:
                self.shown = now
                self.write(line)
            return
        if self.drawing is None and now - self.shown >= self.wait:
            self.drawing = self.draw()
            self.drawing.add_task(work, total=total, completed=done, **fields)
            self.drawing.start()
        if self.drawing is not None:
            self.drawing.update(self.drawing.task_ids[0], description=work, completed=done, total=total, **fields)


@contextmanager
def bar(work: str, *, show: bool | None = None, progress: Progress | None = None) -> Iterator[Progress | None]:
    """A callback that draws a bar for the work of that name on stderr and calls `progress`; None if there is neither.

    show  True, False, or None: only if there is no `progress`, on a terminal or in a notebook, once the work has taken
          `LONG` seconds
    """
    wanted = (progress is None and is_interactive()) if show is None else show
    if not wanted or not _drawing.acquire(blocking=False):
        yield progress
        return
    try:
        with Bar(_make_bar, wait=LONG if show is None else 0.0) as drawn:

            def show_and_call(done: int, total: int | None) -> None:
                drawn.show(work, done, total, line="")
                if progress is not None:
                    progress(done, total)

            yield show_and_call
    finally:
        _drawing.release()


def lines(work: str, report: Callable[[str], None], *, every: float = EVERY) -> Progress:
    """A callback that reports a line every few seconds: the progress of the work of that name."""
    shown = Bar(None, report, every=every)

    def show(done: int, total: int | None) -> None:
        line = f"{work}: {done / total:.0%} of {total:,}" if total else f"{work}: {done:,}"
        shown.show(work, done, total, line=line)

    return show


@contextmanager
def report_time(work: str, report: Callable[[str], None], *, every: float = EVERY) -> Iterator[None]:
    """Report the time since the start every few seconds in the block: for work that cannot be counted."""
    began, ended = monotonic(), threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            report(f"{work}: {clock(monotonic() - began)} so far")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def is_interactive() -> bool:
    """Whether a bar is visible: stderr is a terminal, or this is a notebook that can show rich's bars."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if hasattr(shell, "kernel"):
        return importlib.util.find_spec("ipywidgets") is not None
    return sys.stderr is not None and sys.stderr.isatty()


def _make_bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawing

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Drawing(*columns, console=Console(stderr=True))
