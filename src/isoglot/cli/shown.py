"""Tables and lists on stdout, whole: a terminal that is too narrow breaks the lines, and a pipe has no width at all."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
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


def show_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print a list, its first column never cut: wrapped inside the others for a terminal, a row a line for a pipe."""
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
        print("  ".join(cells).rstrip())


def wrapped(text: str, *, indent: str = "") -> str:
    """A text broken between words for a terminal and left whole for a pipe; addresses are never broken."""
    if not sys.stdout.isatty():
        return indent + text
    width = shutil.get_terminal_size().columns
    return textwrap.fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
