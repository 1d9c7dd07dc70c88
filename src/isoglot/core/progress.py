"""Progress of long work: the signature of progress callbacks, and what is shown of them, a bar or lines."""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
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


@dataclass(eq=False)
class Bar:
    """Shows work that is counted, inside `with`: a bar of rich or, where none is drawn, a line now and then.

    It is called with (done, total); a smaller count than before starts a new piece of work.

    work      name of the work, at the start of the line
    unit      what is counted; "bytes" are shown in megabytes
    is_drawn  draw a bar on `console`; None: a new one on stderr
    write     prints a line, at most one in `every` seconds, if there is no bar; None: nothing is shown
    wait      seconds of work before the bar appears
    """

    work: str = ""
    unit: str = ""
    is_drawn: bool = False
    console: Any = None
    write: Report | None = None
    wait: float = 0.0
    every: float = EVERY

    def __post_init__(self) -> None:
        self.drawing: Any = None
        self.shown = monotonic()
        self.first: tuple[float, int] | None = None  # time and count from which the speed is measured
        self.last = 0

    def __enter__(self: _Bar) -> _Bar:
        return self

    def __exit__(self, *error: object) -> None:
        if self.drawing is not None:
            self.drawing.stop()

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that `done` of `total` are done, with the speed and the time that is left."""
        now = monotonic()
        if self.first is None or done < self.last or not done:
            self.first = now, done  # what an earlier run finished does not count for the speed
        self.last = done
        began, before = self.first
        rate = (done - before) / max(now - began, 1e-9) if done > before else 0.0
        self.show(done, total, state_line(done, total, rate=rate, unit=self.unit))

    def part(self, work: str, done: int, total: int | None = None) -> None:
        """The same for work in several parts; a plain line names each part when it starts."""
        if work != self.work:
            self.work, self.first = work, None
            if self.write is not None and not self.is_drawn:
                self.write(work)
        self(done, total or None)

    def show(self, done: int, total: int | None, state: str) -> None:
        """Show the state of the work, of which `done` of `total` are done."""
        now = monotonic()
        if not self.is_drawn:
            if self.write is not None and now - self.shown > self.every:
                self.shown = now
                self.write(f"{self.work}: {state}")
            return
        if self.drawing is None and now - self.shown >= self.wait:
            self.drawing = _draw(self.console)
            self.drawing.add_task(self.work, total=total, completed=done, state=state)
            self.drawing.start()
        if self.drawing is not None:
            task = self.drawing.task_ids[0]
            self.drawing.update(task, description=self.work, completed=done, total=total, state=state)


def state_line(done: int, total: int | None, *, rate: float, unit: str) -> str:
    """The amount done, the speed, and the estimated remaining time."""
    is_size = unit == "bytes"

    def spell(count: float) -> str:
        return f"{count / 1e6:.1f} MB" if is_size else f"{count:,.0f}"

    amount = f"{spell(done)} of {spell(total)}" if total else spell(done)
    amount += f" {unit}" if unit and not is_size else ""
    speed = f", {spell(rate)}/s" if rate else ""
    eta = f", ETA {clock((total - done) / rate)}" if total and rate and done < total else ""
    return amount + speed + eta


@contextmanager
def bar(work: str, *, show: bool | None = None, progress: Progress | None = None) -> Iterator[Progress | None]:
    """A callback that draws a bar for the work of that name on stderr and calls `progress`; None if there is neither.

    show  True: where no bar is visible, as in a log, a line now and then; False; or None: only if there is no
          `progress`, on a terminal or in a notebook, once the work has taken `LONG` seconds
    """
    wanted = (progress is None and is_interactive()) if show is None else show
    if not wanted or not _drawing.acquire(blocking=False):
        yield progress
        return
    try:
        lines = partial(print, file=sys.stderr)
        with Bar(work, is_drawn=is_interactive(), write=lines, wait=LONG if show is None else 0.0) as drawn:

            def show_and_call(done: int, total: int | None) -> None:
                drawn(done, total)
                if progress is not None:
                    progress(done, total)

            yield show_and_call
    finally:
        _drawing.release()


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


def _draw(console: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn
    from rich.table import Column

    state = TextColumn("{task.fields[state]}", markup=False, table_column=Column(ratio=1, no_wrap=True))
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=24), state
    console = console or Console(stderr=True, highlight=False)
    return Progress(*columns, console=console, transient=True, expand=True)
