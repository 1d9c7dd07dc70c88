"""Tables and lists on stdout, whole: a terminal that is too narrow breaks the lines, and a pipe has no width at all."""

from __future__ import annotations

import shutil
import sys
import textwrap

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from isoglot.report.tables import Grid, to_rich


def show_grid(grid: Grid) -> None:
    """Print a table at the terminal's width, or at the least width at which no cell of a row is cut; then its notes."""
    console, table = Console(), to_rich(grid)
    whole = Measurement.get(console, console.options.update(max_width=100_000), table).maximum
    if not console.is_terminal:
        console.width = max(console.width, whole)
    elif whole > console.width:
        table = to_rich(grid, broken=True)
        longest = [max((cell_len(row[at]) for row in grid.rows), default=0) for at in range(len(grid.header))]
        console.width = max(console.width, sum(longest) + 3 * len(longest) + 1)  # a line and two spaces a column
    console.print(table)
    for note in grid.notes:
        console.print(Text(wrapped(note, indent="  "), style="dim"), soft_wrap=True)


def wrapped(text: str, *, indent: str = "") -> str:
    """A text broken between words for a terminal and left whole for a pipe; addresses are never broken."""
    if not sys.stdout.isatty():
        return indent + text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
