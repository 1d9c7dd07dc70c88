"""Scores as tables: one model by language, several models side by side, or the main table of a paper.

Each function makes a `Grid` of plain cells, which a terminal, Markdown, LaTeX and HTML all show. Shares are
percentages with one decimal, of errors with two; distances are shown unscaled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from isoglot.core.score import Score, Unit
from isoglot.data.files import atomic_write
from isoglot.report.comparable import alike

if TYPE_CHECKING:
    from rich.table import Table

# Maximum subsets of a task that are shown and compared; with more (60 languages have 3540 pairs), only the averages.
MANY = 200
NOTHING = "–"  # shown for a missing value
_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}
    | {"▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "↓": r"$\downarrow$", "≤": r"$\leq$"}
    | {"–": "--", "<": "$<$", ">": "$>$", "|": "$|$", "\n": " "}
)  # triangles are in the package amssymb


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of a table. `rows` have as many cells as `header`; `bold` holds (row, column) of the best values.

    A line is drawn above the row `first_average`: subsets are above it, averages below. `notes` are lines printed
    below the table.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    bold: frozenset[tuple[int, int]] = frozenset()
    first_average: int | None = None
    notes: tuple[str, ...] = ()


def by_language(scores: Iterable[Score], *, task: str, most: int = MANY) -> Grid:
    """One model on one task: a row for each subset, a column for each metric, and the number of test items.

    ↓ marks metrics of which lower is better. Where metrics have different numbers of items, all of them are given, in
    the order of the metrics. Of a task with more than `most` subsets, those that an average covers are left out. The
    notes list what each average is over.
    """
    visible, title = _choose([score for score in scores if score.task == task], task, most)
    metrics = list(dict.fromkeys(score.metric for score in visible))
    values = {(score.subset, score.metric): spell(score.value, score.unit) for score in visible}
    first = {score.metric: score for score in reversed(visible)}
    items: dict[str, list[str]] = {}
    for score in visible:
        items.setdefault(score.subset, []).append(spell_n(score.n, score.over))
    rows = [
        (name, *(values.get((name, metric), NOTHING) for metric in metrics), " / ".join(dict.fromkeys(counts)))
        for name, counts in items.items()
    ]
    header = ("subset", *(to_label(first[metric]) for metric in metrics), "n")
    return Grid(title, header, tuple(rows), first_average=_first(items, visible), notes=_list_averages(visible))


def side_by_side(
    models: Mapping[str, Iterable[Score]], *, task: str, metric: str, changes: bool = False, most: int | None = None
) -> Grid:
    """Several models on one metric of a task: a row for each subset, a column for each model, the best in bold.

    Values that are equal after rounding are all bold. A dash marks a subset that a model lacks. Where models were
    evaluated on different data nothing is bold, and `n` is given in brackets where it differs. With `changes`, each
    value is followed by its change from the first model, a last column has the number of test items, and the notes list
    what averages are over. `most` is that of `by_language`; None shows all subsets.
    """
    matching = [[one for one in scores if (one.task, one.metric) == (task, metric)] for scores in models.values()]
    all_scores = [score for scores in matching for score in scores]
    visible, title = _choose(all_scores, f"{task} {to_label(all_scores[0]) if all_scores else metric}", most)
    averages, subsets = {score.subset for score in visible if score.over}, {score.subset for score in visible}
    tables = [{score.subset: score for score in scores if score.subset in subsets} for scores in matching]
    names = sorted(dict.fromkeys(name for table in tables for name in table), key=lambda name: name in averages)
    cells = {name: [table.get(name) for table in tables] for name in names}
    same, bold, rows = alike(cells), set(), []
    unit = all_scores[0].unit if all_scores else "fraction"
    for row, (name, scores) in enumerate(cells.items()):
        values = {at: score.value for at, score in enumerate(scores, 1) if score}
        if name in same and len(values) > 1:
            best = (min if all_scores[0].lower_is_better else max)(values.values())
            bold |= {(row, at) for at, value in values.items() if spell(value, unit) == spell(best, unit)}
        sizes = {score.n for score in scores if score}
        texts = []
        for at, score in enumerate(scores, 1):
            text = spell(score.value if score else None, unit)
            text += f" ({score.n})" if score and len(sizes) > 1 else ""
            if changes and at > 1 and 1 in values and at in values and name in same:
                text += f" {spell(values[at] - values[1], unit, sign=True)}"
            texts.append(text)
        if changes:
            any_score = next(score for score in scores if score)
            total = spell_n(any_score.n, any_score.over) if len(sizes) == 1 else "differs"
            texts.append(total if name in same or total == "differs" else f"{total} (other data)")
        rows.append((name, *texts))
    header = ("subset", *models, *(["n"] if changes else []))
    notes = _list_averages(visible) if changes else ()
    return Grid(title, header, tuple(rows), frozenset(bold), _first(names, visible), notes)


def scale(unit: Unit) -> float:
    """What values of a unit are multiplied by to be shown: 1 for plain numbers such as distances, else 100."""
    return 1.0 if unit == "plain" else 100.0


def spell(value: float | None, unit: Unit, *, sign: bool = False) -> str:
    """A value as tables show it, a dash for None: percent with one decimal, a plain number with three. Errors have two,
    since good models are below 0.1 percent.
    """
    if value is None:
        return NOTHING
    digits = {"plain": 3, "error": 2}.get(unit, 1)
    rounded = round(value * scale(unit), digits) + 0.0  # avoid "-0.0"
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f}"


def spell_n(n: int, over: Sequence[str]) -> str:
    """The number of test items; of an average `3 subsets`, because a column must not mix the two."""
    return f"{n:,} subset{'' if n == 1 else 's'}" if over else f"{n:,}"


def to_label(score: Score) -> str:
    """The name of a score's metric, with ↓ if lower is better."""
    return f"{score.metric} ↓" if score.lower_is_better else score.metric


def list_names(names: Sequence[str], *, most: int = 16, between: str = ", ") -> str:
    """Names in one line; of more than `most`, the first, the last and their number."""
    return between.join(names) if len(names) <= most else f"{names[0]} … {names[-1]} ({len(names)})"


def to_markdown(grid: Grid) -> str:
    """The table in Markdown, its notes as a list below it; ends in a line feed."""
    lines = ["| " + " | ".join(map(in_markdown, grid.header)) + " |", "|---|" + "---:|" * (len(grid.header) - 1)]
    for place, row in enumerate(grid.rows):
        marks = ["**" * ((place, at) in grid.bold) for at in range(len(row))]
        cells = [f"{mark}{in_markdown(cell)}{mark}" for mark, cell in zip(marks, row, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    if grid.notes:
        lines += ["", *(f"- {in_markdown(note)}" for note in grid.notes)]
    return "\n".join(lines) + "\n"


def in_markdown(text: str) -> str:
    """Text in Markdown, where a tag would disappear, and stars and low lines around a word would make it italic."""
    return re.sub(r"[|*`]|<(?=[A-Za-z/!?])|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text).replace("\n", " ")


def to_latex(grid: Grid) -> str:
    """The table in LaTeX, for the package booktabs, its title as caption, its notes below; ends in a line feed."""

    def cell(text: str, bold: bool = False) -> str:
        escaped = text.translate(_LATEX)
        return f"\\textbf{{{escaped}}}" if bold else escaped

    lines = [r"\begin{table}", r"\centering", f"\\caption{{{cell(grid.title)}}}"]
    lines += [f"\\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}", r"\toprule"]
    lines += [" & ".join(map(cell, grid.header)) + r" \\", r"\midrule"]
    for place, row in enumerate(grid.rows):
        lines += [r"\midrule"] if place and place == grid.first_average else []
        lines.append(" & ".join(cell(text, (place, at) in grid.bold) for at, text in enumerate(row)) + r" \\")
    notes = [f"\\par\\footnotesize {cell(note)}" for note in grid.notes]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", *notes, r"\end{table}"]) + "\n"


def to_rich(grid: Grid, *, broken: bool = False) -> Table:
    """The table for a `rich` console, without its notes.

    Column names are never truncated; with `broken` they are split after each slash, for a narrow terminal.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(grid.title), title_justify="left")
    for at, name in enumerate(grid.header):
        head = Text(name.replace("/", "/\n") if broken else name)
        table.add_column(head, justify="left" if at == 0 else "right", no_wrap=at == 0, overflow="fold")
    for place, row in enumerate(grid.rows):
        cells = [Text(cell, style="bold" if (place, at) in grid.bold else "") for at, cell in enumerate(row)]
        table.add_row(*cells, end_section=place + 1 == grid.first_average)
    return table


def to_text(grids: Iterable[Grid], *lines: str) -> str:
    """Tables as plain text with lines around their cells, as wide as they need to be, and notes; then `lines`."""
    from rich.console import Console

    parts = []
    for grid in grids:
        stream = StringIO()
        Console(file=stream, width=100_000, color_system=None).print(to_rich(grid))
        rows = [*(line.rstrip() for line in stream.getvalue().splitlines()), *grid.notes]
        parts.append("".join(f"{row}\n" for row in rows))
    return "\n".join([*parts, *lines])


def to_document(grids: Iterable[Grid], *, title: str = "", method: str = "", skipped: Sequence[str] = ()) -> str:
    """Tables in Markdown, each below its title; with a `title` of them all, how they were made, and what is missing."""
    head = f"# {in_markdown(title)}\n\n{in_markdown(method)}\n\n" if title else ""
    lines = "".join(f"- {in_markdown(line)}\n" for line in skipped)
    tables = "\n".join(f"## {in_markdown(grid.title)}\n\n{to_markdown(grid)}" for grid in grids)
    return head + tables + (f"\n## Skipped\n\n{lines}" if lines else "")


def latex_document(grids: Iterable[Grid], comment: str = "") -> str:
    """Tables in LaTeX, for the packages booktabs and amssymb, below a comment."""
    return "\n".join([*(f"% {line}" for line in comment.splitlines()), *map(to_latex, grids)])


def save_tables(path: str | Path, grids: Sequence[Grid], *, markdown: str | None = None, comment: str = "") -> None:
    """Write tables as `path`.md (`markdown`, or the tables alone) and as `path`.tex."""
    texts = {"md": to_document(grids) if markdown is None else markdown, "tex": latex_document(grids, comment)}
    for ending, text in texts.items():
        with atomic_write(f"{path}.{ending}") as file:
            file.write(text)


def _choose(scores: Sequence[Score], title: str, most: int | None) -> tuple[Sequence[Score], str]:
    """The scores of a task that a table has rows for, and its title: of too many subsets, those without an average."""
    plain = {score.subset for score in scores if not score.over}
    parts = {name for score in scores for name in score.over if name in plain}
    if most is None or len(plain) <= most or not parts:
        return scores, title
    visible = [score for score in scores if score.subset not in parts]
    return visible, f"{title} (averages only; {len(parts):,} subsets not shown)"


def _list_averages(scores: Sequence[Score]) -> tuple[str, ...]:
    """What each average is over; metrics are named where they differ in it."""
    averages: dict[tuple[str, tuple[str, ...]], dict[str, None]] = {}
    for score in scores:
        if score.over:
            averages.setdefault((score.subset, score.over), {})[score.metric] = None
    times = Counter(subset for subset, _ in averages)
    return tuple(
        f"{subset}{' ' + ', '.join(metrics) if times[subset] > 1 else ''}: mean over {list_names(over)}"
        for (subset, over), metrics in averages.items()
    )


def _first(names: Mapping[str, object] | Sequence[str], scores: Sequence[Score]) -> int | None:
    averages = {score.subset for score in scores if score.over}
    return next((place for place, name in enumerate(names) if name in averages), None)
