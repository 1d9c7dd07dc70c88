"""The figure of a sweep, of what `sweep.json` contains: a panel for each column of scores."""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isoglot.core.errors import EvaluationError
from isoglot.report.charts import WIDTH, canvas, image_kind, plain, save, style
from isoglot.report.tables import scale

_LETTERS = 36  # of a name of an arm in a line
Lines = dict[str, list[tuple[Any, str]]]  # of each line its points: value of the axis, name of the arm
Words = dict[Any, str]  # of each value of the axis how it is written


def write_value(value: Any) -> str:
    """A value of a setting in the name of an arm: a string as it is, any other as in TOML."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def plot_sweep(folder: str | Path, output: str | Path) -> None:
    """Draw the sweep in a folder: a panel for each column, every seed as a point, means joined, ± one deviation.

    Along the horizontal axis are the values of the setting that was varied (the first one; combinations of the others
    are lines of their own), on a logarithmic scale where all are positive numbers. Values that are words, and arms, are
    below each other instead. `output` ends in .svg, .png or .pdf. Raises `EvaluationError` for a folder without a sweep
    and for another ending.
    """
    path, output = Path(folder) / "sweep.json", Path(output)
    image_kind(output)  # before the work
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        arms, columns, values = record["arms"], record["columns"], record["values"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path}: not a finished sweep ({error}); run isoglot sweep again") from error
    lines, ticks, label = _lines(arms)
    numeric = all(isinstance(tick, int | float) for tick in ticks)
    ticks = sorted(ticks) if numeric else ticks
    words = {tick: "\n".join(textwrap.wrap(plain(str(tick)), _LETTERS)) for tick in ticks}
    down, across = -(-len(columns) // 2), min(2, len(columns))
    title = textwrap.wrap(plain(record["title"]), 2 * _LETTERS * across)
    low, top = 0.25 * len(lines) * (len(lines) > 1), 0.1 + 0.17 * len(title)
    rows = sum(1 + word.count("\n") for word in words.values())
    height = (2.6 if numeric else 0.7 + 0.22 * rows) * down + low + top + 0.25
    with canvas(WIDTH * across, height) as figure:
        grid = figure.subplots(down, across, squeeze=False, sharey=False if numeric else "row")
        for axes in grid.flat[len(columns) :]:
            axes.set_visible(False)
        for axes, (column, about) in zip(grid.flat, columns.items(), strict=False):
            _panel(axes, lines, words, values[column], scale(about["unit"]), numeric=numeric)
            axes.set_title(plain(column) + (" (lower is better)" if about["lower_is_better"] else ""), fontsize=9)
            axes.grid(visible=True, linewidth=0.6)
            if numeric:
                axes.set_xlabel(plain(label))
        if not numeric:
            grid[0, 0].set_ylabel(plain(label))
        if len(lines) > 1:
            figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="lower left", frameon=False)
        figure.suptitle("\n".join(title), fontsize=10, y=1 - 0.08 / height, in_layout=False)
        figure.tight_layout(pad=0.6, w_pad=2, rect=(0.01, low / height, 1, 1 - top / height))
        save(figure, output)


def _panel(
    axes: Any, lines: Lines, ticks: Words, values: Mapping[str, Sequence[float]], factor: float, *, numeric: bool
) -> None:
    """One column: its values times `factor`, at numbers along the horizontal axis, or at words below each other."""
    order = [*ticks]
    for place, (name, points) in enumerate(lines.items()):
        series = sorted((at if numeric else order.index(at), [factor * v for v in values[arm]]) for at, arm in points)
        positions, means = [at for at, _ in series], [statistics.mean(seeds) for _, seeds in series]
        deviations = [statistics.stdev(seeds) if len(seeds) > 1 else 0.0 for _, seeds in series]
        points_drawn = [(at, value) for at, seeds in series for value in seeds]
        if numeric:
            axes.errorbar(positions, means, yerr=deviations, capsize=3, label=plain(name), **style(place))
        else:
            axes.errorbar(means, positions, xerr=deviations, capsize=3, linestyle="", label=plain(name), **style(place))
            points_drawn = [(value, at) for at, value in points_drawn]
        axes.plot(*zip(*points_drawn, strict=True), linestyle="", marker=".", color=style(place)["color"], alpha=0.5)
    if not numeric:
        axes.set_yticks(range(len(ticks)), ticks.values())
        axes.set_ylim(len(ticks) - 0.5, -0.5)
        return
    if min(ticks) > 0 and max(ticks) >= 8 * min(ticks):
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(order, ticks.values())


def _lines(arms: Sequence[Mapping[str, Any]]) -> tuple[Lines, list[Any], str]:
    """The lines; the axis' ticks and its label."""
    varied = [arm for arm in arms if arm["at"]]
    if not varied:
        return {"": [(arm["name"], arm["name"]) for arm in arms]}, [arm["name"] for arm in arms], ""
    axis = next(iter(varied[0]["at"]))
    lines: Lines = {}
    for arm in varied:
        value = arm["at"][axis]
        # Without this setting, by its whole name or its last part. Its value may contain commas, as a list does.
        short, text = axis.rpartition(".")[2], f"={write_value(value)}, "
        name = f", {arm['name']}, ".replace(f", {axis}{text}", ", ").replace(f", {short}{text}", ", ").strip(", ")
        lines.setdefault(name, []).append((value if type(value) in (int, float) else write_value(value), arm["name"]))
    return lines, list(dict.fromkeys(at for points in lines.values() for at, _ in points)), axis
