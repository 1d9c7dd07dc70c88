"""Progress of long work: the signature of progress callbacks, and the progress bar."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

Progress = Callable[[int, int | None], None]
"""Called with (done, total) during the work; `total` is None while it is unknown."""

LONG = 2.0  # seconds of work before a bar appears by default

_drawing = threading.Lock()  # only one bar at a time, over all threads


@contextmanager
def bar(what: str, *, show: bool | None = None, progress: Progress | None = None) -> Iterator[Progress | None]:
    """A callback that draws a bar for the work named `what` on stderr and calls `progress`; None if there is neither.

    show  True, False, or None: only if there is no `progress`, on a terminal or in a notebook, once the work has taken
          `LONG` seconds
    """
    wanted = (progress is None and is_interactive()) if show is None else show
    if not wanted or not _drawing.acquire(blocking=False):
        yield progress
        return
    try:
        with _draw_bar(what, wait=LONG if show is None else 0.0) as draw:

            def both(done: int, total: int | None) -> None:
                draw(done, total)
                if progress is not None:
                    progress(done, total)

            yield both
    finally:
        _drawing.release()


def lines(what: str, report: Callable[[str], None], *, every: float = 5.0) -> Progress:
    """A callback that reports a line every few seconds: the progress of the work named `what`."""
    last = monotonic()

    def line(done: int, total: int | None) -> None:
        nonlocal last
        if monotonic() - last >= every:
            last = monotonic()
            report(f"{what}: {done / total:.0%} of {total:,}" if total else f"{what}: {done:,}")

    return line


@contextmanager
def report_time(what: str, report: Callable[[str], None], *, every: float = 5.0) -> Iterator[None]:
    """Report the time since the start every few seconds in the block: for work that cannot be counted."""
    began, ended = monotonic(), threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            report(f"{what}: {clock(monotonic() - began)} so far")

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


@contextmanager
def _draw_bar(what: str, *, wait: float) -> Iterator[Progress]:
    drawing: Any = None
    began = monotonic()

    def draw(done: int, total: int | None) -> None:
        nonlocal drawing
        if drawing is None and monotonic() - began >= wait:
            drawing = _bar()
            drawing.start()
            drawing.add_task(what, total=None)
        if drawing is not None:
            drawing.update(drawing.task_ids[0], completed=done, total=total)

    try:
        yield draw
    finally:
        if drawing is not None:
            drawing.stop()


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Bar(*columns, console=Console(stderr=True))
