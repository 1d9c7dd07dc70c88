"""Scores as tables, for people: one model by language, or several side by side; on a terminal or in Markdown.

A table is first made as plain cells (`Grid`), which two small writers turn into either form, so that both show the
same. Shares are percentages with one decimal, distances stand as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.data.languages import is_language
from isoglot.errors import IsoglotError
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score
from isoglot.evaluation.sources import get_command
from isoglot.evaluation.suites import SUITES, Cell, counted, listed
from isoglot.report.comparable import alike
from isoglot.report.metrics import MANY, shown

if TYPE_CHECKING:
    from rich.table import Table

_NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a table. `rows` have as many cells as `header`; `bold` holds (row, column) of the cells to stress.

    `first_average` is the row before which a line is drawn: the languages are above, averages of them below. `notes`
    are lines below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    first_average: int | None = None
    notes: tuple[str, ...] = ()


def by_language(scores: Sequence[Score], *, task: str, most: int = MANY) -> Grid:
    """One model on one task: a row for each subset, a column for each metric, and the number of items.

    Where metrics are over different numbers of items, all of them are given, in the order of the metrics. Of a task
    with more than `most` subsets those that an average is over are left out. The notes
    say of each average what it is over.
    """
    chosen = [score for score in scores if score.task == task]
    averages = [score for score in chosen if score.over]
    plain = {score.subset for score in chosen if not score.over}
    parts = {name for score in averages for name in score.over if name in plain} if len(plain) > most else set()
    told = [score for score in chosen if score.subset not in parts]
    metrics = list(dict.fromkeys(score.metric for score in told))
    values = {(score.subset, score.metric): shown(score.value, score.unit) for score in told}
    items: dict[str, list[str]] = {}
    for score in told:
        items.setdefault(score.subset, []).append(f"{score.n:,}")
    rows = [
        (name, *(values.get((name, metric), _NOTHING) for metric in metrics), " / ".join(dict.fromkeys(counts)))
        for name, counts in items.items()
    ]
    title = f"{task} (without the {len(parts):,} subsets that averages are over)" if parts else task
    first = _first_average(list(items), averages)
    return Grid(title, ("subset", *metrics, "n"), tuple(rows), first_average=first, notes=_over(averages))


def side_by_side(models: Mapping[str, Sequence[Score]], *, task: str, metric: str) -> Grid:
    """Several models on one metric of a task: a row for each subset, a column for each model, the best in bold.

    Values that look equal once rounded are equally best. A model that lacks a subset shows a dash there. Scores of
    other data have no best among them, and where their `n` differ it is shown in brackets.
    """
    tables = {model: _values(scores, task, metric) for model, scores in models.items()}
    averages = [score for table in tables.values() for score in table.values() if score.over]
    known = {score.subset for score in averages}
    names = sorted(dict.fromkeys(name for table in tables.values() for name in table), key=lambda name: name in known)
    cells = {name: [table.get(name) for table in tables.values()] for name in names}
    same = alike(cells)
    bold = {place for row, name in enumerate(names) if name in same for place in _best(cells[name], row)}
    rows = tuple((name, *_cells(row)) for name, row in cells.items())
    return Grid(f"{task} {metric}", ("subset", *models), rows, frozenset(bold), _first_average(names, averages))


def by_suite(models: Mapping[str, Sequence[Score]], *, suite: str) -> Grid:
    """The main table of a paper, on its side: a row for each number of the paper's table, a column for each model.

    A dash stands where a model lacks one of the scores that a number is the mean of; see `lacking`. The notes say of
    each number what it is the mean of. Errors, which good models bring below a tenth of a percent, have two decimals.
    """
    columns, tables = SUITES[suite].columns, [SUITES[suite].table(scores) for scores in models.values()]
    rows = tuple((column.label, *(_number(table[place]) for table in tables)) for place, column in enumerate(columns))
    return Grid(suite, ("", *models), rows, notes=tuple(column.note for column in columns))


def lacking(
    scores: Sequence[Score], *, suite: str, data: Path | None = None, languages: Sequence[str] = ()
) -> list[str]:
    """One line for each column without a value: the scores it would need and does not have.

    With `data`, the folder that was evaluated, also which of them the `languages` left out that are there, and the
    command that gets a set which may have the others, once.
    """
    lines, said = list[str](), set[str]()
    cells = SUITES[suite].table(scores)
    found = {task: _found(task, data, languages) for task in dict.fromkeys(key[0] for c in cells for key in c.lacking)}
    for cell in cells:
        if cell.lacking:
            narrowed = [key for key in cell.lacking if _narrowed(key[1], *found[key[0]])]
            tasks = dict.fromkeys(key[0] for key in cell.lacking if key not in narrowed)
            commands = [get_command(task, data=data) for task in tasks] if data else []
            new = [command for command in dict.fromkeys(filter(None, commands)) if command not in said]
            said.update(new)
            some = f"; of these, --languages left out {listed(narrowed)}" if narrowed else ""
            why = "; left out by --languages" if len(narrowed) == len(cell.lacking) else some
            how = f"; get it with: {' and '.join(new)}" if new else ""
            lines.append(f"{cell.label}: no {listed(cell.lacking)}{why}{how}")
    return lines


def _found(task: str, data: Path | None, languages: Sequence[str]) -> tuple[set[str], set[str]]:
    """The subsets of a task that are there, and those of the languages; without languages nothing is looked for."""
    if data is None or not languages:
        return set(), set()
    try:
        return set(TASKS[task].subsets(data)), set(TASKS[task].subsets(data, languages=languages))
    except IsoglotError:  # the run has told it
        return set(), set()


def _narrowed(subset: str, there: set[str], asked: set[str]) -> bool:
    """Whether the languages asked for are what left out a subset that is there, or part of what an average is over."""
    return subset in there - asked or (asked < there and not any(map(is_language, subset.split("-"))))


def to_markdown(grid: Grid) -> str:
    """The table in Markdown, its notes a list below it, ending in a line feed."""
    lines = ["| " + " | ".join(map(_escaped, grid.header)) + " |", "|---|" + "---:|" * (len(grid.header) - 1)]
    for place, row in enumerate(grid.rows):
        cells = [f"**{_escaped(cell)}**" if (place, at) in grid.bold else _escaped(cell) for at, cell in enumerate(row)]
        lines.append("| " + " | ".join(cells) + " |")
    if grid.notes:
        lines += ["", *(f"- {note}" for note in grid.notes)]
    return "\n".join(lines) + "\n"


def to_rich(grid: Grid, *, broken: bool = False) -> Table:
    """The table for a terminal, to be printed by a `rich` console, without its notes.

    No name of a column is ever cut; with `broken` each begins a new line after a slash, for a narrow terminal.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title, title_justify="left")
    for at, name in enumerate(grid.header):
        head = Text(name.replace("/", "/\n") if broken else name)
        table.add_column(head, justify="left" if at == 0 else "right", no_wrap=at == 0, overflow="fold")
    for place, row in enumerate(grid.rows):
        cells = [Text(cell, style="bold" if (place, at) in grid.bold else "") for at, cell in enumerate(row)]
        table.add_row(*cells, end_section=place + 1 == grid.first_average)
    return table


def _values(scores: Sequence[Score], task: str, metric: str) -> dict[str, Score]:
    return {score.subset: score for score in scores if score.task == task and score.metric == metric}


def _over(averages: Sequence[Score]) -> tuple[str, ...]:
    """Each average with what it is over, once for all metrics that are over the same; named where others are not."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for score in averages:
        found.setdefault((score.subset, score.over), []).append(score.metric)
    times = Counter(subset for subset, _ in found)
    return tuple(
        f"{subset}{' ' + ', '.join(metrics) if times[subset] > 1 else ''}: mean of {counted(over)}"
        for (subset, over), metrics in found.items()
    )


def _number(cell: Cell) -> str:
    return shown(cell.value, cell.unit, digits=2 if cell.unit == "error" else 1)


def _cells(scores: list[Score | None]) -> list[str]:
    differ = len({score.n for score in scores if score}) > 1
    return [
        _NOTHING if score is None else shown(score.value, score.unit) + (f" ({score.n})" if differ else "")
        for score in scores
    ]


def _best(scores: list[Score | None], row: int) -> list[tuple[int, int]]:
    known = [(at, score) for at, score in enumerate(scores, 1) if score]
    if len(known) < 2:
        return []
    values = {at: score.value for at, score in known}
    first = known[0][1]
    best = (min if first.lower_is_better else max)(values.values())
    return [(row, at) for at, value in values.items() if shown(value, first.unit) == shown(best, first.unit)]


def _first_average(names: list[str], averages: Sequence[Score]) -> int | None:
    known = {score.subset for score in averages}
    return next((place for place, name in enumerate(names) if name in known), None)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
