"""What a verb prints: messages and progress on stderr, tables and lists on stdout.

Messages go through the logger `isoglot`, which writes to stderr; `--quiet` and `--log-level` set its level. Progress is
a bar on a terminal and a plain line every few seconds elsewhere; it is hidden if the log level is above `info`. Tables
and lists are never truncated: on a narrow terminal lines are wrapped, in a pipe they are not.
"""

from __future__ import annotations

import json
import logging
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isoglot.core import environment
from isoglot.core.errors import IsoglotError, OutputError
from isoglot.core.progress import Bar

if TYPE_CHECKING:
    from rich.console import Console

    from isoglot.report.tables import Grid

LEVELS = ("debug", "info", "warning", "error")
LOG = logging.getLogger("isoglot")


FORMATS = ("text", "json")


class _Stderr(logging.Handler):
    """Write to the current `sys.stderr`, which a progress bar or a test may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        if environment.log_format() == "json":
            fields = record.args if isinstance(record.args, Mapping) else {}
            time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
            facts = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": text}
            text = json.dumps({**facts, **fields}, ensure_ascii=False, default=str)
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")


LOG.addHandler(_Stderr())
LOG.setLevel(logging.INFO)


def say(line: str) -> None:
    """Print a message on stderr, unless `--quiet` was given."""
    LOG.info("%s", line)


@dataclass
class Call:
    """State of this invocation of the command line.

    debug   show the traceback of an error
    resume  how the work can be resumed after Ctrl-C or SIGTERM
    """

    debug: bool = False
    resume: str = ""


CALL = Call()


def on_interrupt(note: str) -> None:
    """Set the message that is printed after Ctrl-C or SIGTERM: how to resume the work."""
    CALL.resume = note


class Progress(Bar):
    """Progress of long work on stderr, from its beginning, unless `--quiet` was given."""

    def __init__(self, work: str, *, unit: str = "texts", console: Console | None = None) -> None:
        from rich.console import Console

        console = console or Console(stderr=True, highlight=False)
        is_drawn = console.is_terminal and LOG.isEnabledFor(logging.INFO)
        super().__init__(work, unit, is_drawn, console, say)

    def __enter__(self) -> Progress:
        self.show(0, None, "")
        return self


@contextmanager
def from_stdin(*paths: Path, suffix: str = "") -> Iterator[list[Path]]:
    """The paths to read: unchanged, except that `-` becomes a temporary file with the text of stdin."""
    if Path("-") not in paths:
        yield [*paths]
        return
    if paths.count(Path("-")) > 1:
        raise IsoglotError("-: stdin can be read once; pass a file instead")
    with tempfile.TemporaryDirectory(prefix="isoglot-") as folder:
        text = Path(folder) / f"stdin{suffix}"
        with text.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        try:
            yield [text if path == Path("-") else path for path in paths]
        except IsoglotError as error:
            raise type(error)(str(error).replace(str(text), "stdin")) from error


@contextmanager
def to_stdout(output: Path, form: str) -> Iterator[Path]:
    """The path to write to: the output itself, or for `-` a temporary file that is then copied to stdout."""
    if str(output) != "-":
        yield output
        return
    if form == "moses":
        raise OutputError("-: moses is several files, and stdout is one; pass --output, such as x.de-en")
    with tempfile.TemporaryDirectory(prefix="isoglot-") as folder:
        path = Path(folder) / f"output.{form}"
        yield path
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)


def show_json(value: Any) -> None:
    """Print a result as one line of JSON; numbers that are not finite become null."""
    import math

    def finite(part: Any) -> Any:
        if isinstance(part, dict):
            return {str(key): finite(inner) for key, inner in part.items()}
        if isinstance(part, list | tuple):
            return [finite(inner) for inner in part]
        if hasattr(part, "item"):  # a number of NumPy
            part = part.item()
        return None if isinstance(part, float) and not math.isfinite(part) else part

    typer.echo(json.dumps(finite(value), ensure_ascii=False, default=str))


def show_grid(grid: Grid, console: Console | None = None) -> None:
    """Print a table at the terminal's width, or wider where a cell would be truncated; then its notes."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.measure import Measurement
    from rich.text import Text

    from isoglot.report.tables import to_rich

    console, table = console or Console(), to_rich(grid)
    whole = Measurement.get(console, console.options.update(max_width=100_000), table).maximum
    if not console.is_terminal:
        console.width = max(console.width, whole)
    elif whole > console.width:
        table = to_rich(grid, broken=True)
        longest = [max((cell_len(row[at]) for row in grid.rows), default=0) for at in range(len(grid.header))]
        console.width = max(console.width, sum(longest) + 3 * len(longest) + 1)  # a border and two spaces per column
    console.print(table)
    for note in grid.notes:
        console.print(Text(wrap(note, indent="  "), style="dim"), soft_wrap=True)


def show_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print a list: on a terminal all columns but the first are wrapped, in a pipe each row is one line."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    if sys.stdout.isatty():
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
        for at in range(len(rows[0])):
            table.add_column(no_wrap=at == 0, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        console = Console()
        wide = console.options.update(max_width=100_000)
        console.width = max(console.width, Measurement.get(console, wide, table).minimum)  # no word is broken
        console.print(table)
        return
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        typer.echo("  ".join(cells).rstrip())


def wrap(text: str, *, indent: str = "") -> str:
    """The text, wrapped between words on a terminal, unchanged in a pipe; URLs are never broken."""
    if not sys.stdout.isatty():
        return indent + text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
