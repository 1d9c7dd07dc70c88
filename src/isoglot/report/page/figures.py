"""The pictures of the page: bars by language, heat maps, alignment against uniformity, maps of sentences.

Colours are those of Okabe and Ito (2008), told apart with any kind of colour vision, and viridis; whatever a colour
says is said again by a hatch, a marker or a number. Figures are 4.2 inches wide unless there is more to show, so that
their letters can be read on a phone, where they take the whole width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoglot.report.page.svg import canvas, inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 4.2
BLUE, ORANGE, INK = "#0072B2", "#E69F00", "#222222"
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
_UNSEEN: dict[str, Any] = {"color": ORANGE, "hatch": "/////", "edgecolor": "#7A4B00"}
_NUMBERED = 16  # up to so many rows, a heat map has its numbers in its cells


@dataclass(frozen=True, slots=True)
class Bar:
    """A language's bar: its length, the number beside it, whether the language was trained on (None: not told).

    `margin` is half the width of its confidence interval, in the unit of `value`, where there is one.
    """

    label: str
    value: float
    text: str
    seen: bool | None = None
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A sentence in the plane; sentences of one `group` mean the same."""

    group: str
    language: str
    x: float
    y: float


def bars(rows: Sequence[Bar], *, name: str, label: str, axis: str, limits: tuple[float, float]) -> str:
    """Horizontal bars, the first on top; unseen languages are orange and hatched. `axis` is written below."""
    left = min(1.9, 0.25 + 0.068 * max(len(row.label) for row in rows))
    height = 0.165 * len(rows) + 0.52
    with canvas(WIDTH, height) as figure:
        axes = figure.add_axes((left / WIDTH, 0.42 / height, 1 - (left + 0.12) / WIDTH, 1 - 0.52 / height))
        for place, row in enumerate(rows):
            style = _UNSEEN if row.seen is False else {"color": BLUE}
            axes.barh(place, row.value, height=0.74, linewidth=0.5, **style)
            if row.margin is not None:
                ends = (row.value - row.margin, row.value + row.margin)
                axes.plot(ends, (place, place), color=INK, linewidth=0.8, solid_capstyle="butt")
            _number(axes, row, place)
        _finish_bars(axes, rows, axis=axis, limits=limits)
        return inline(figure, name=name, label=label)


def heat_map(
    names: Sequence[str], values: NDArray[np.float64], *, name: str, label: str, limits: tuple[float, float]
) -> str:
    """A square table (N, N) in colours of `limits`, with its numbers as far as there is room for them."""
    size = max(WIDTH, 0.16 * len(names) + 1.4)
    with canvas(size, size - 0.45) as figure:
        axes = figure.subplots()
        image = axes.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="none")
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if len(names) <= _NUMBERED:
            _cells(axes, values, limits)
        figure.colorbar(image, shrink=0.8, pad=0.03).outline.set_visible(False)
        figure.tight_layout(pad=0.5)
        return inline(figure, name=name, label=label)


def alignment_uniformity(points: Sequence[tuple[str, float, float]], *, name: str, label: str) -> str:
    """(model, alignment, uniformity), each a marker of its own; lower is better on both axes."""
    with canvas(WIDTH, 3.1 + 0.17 * len(points)) as figure:
        axes = figure.subplots()
        for place, (model, alignment, uniformity) in enumerate(points):
            colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
            words = f"{model} ({uniformity:.3f}, {alignment:.3f})".replace("-", "−")
            style: dict[str, Any] = {"color": colour, "markersize": 8, "markeredgecolor": "white", "label": words}
            axes.plot(uniformity, alignment, marker, **style)
        axes.margins(0.2)
        axes.grid(visible=True, linewidth=0.6)
        axes.set_xlabel("uniformity (lower is better)")
        axes.set_ylabel("alignment (lower is better)")
        figure.legend(loc="lower left", frameon=False, ncols=1, bbox_to_anchor=(0.1, 0))
        figure.tight_layout(pad=0.5, rect=(0, 0.05 + 0.045 * len(points), 1, 1))
        return inline(figure, name=name, label=label)


def sentence_map(points: Sequence[Point], *, name: str, label: str) -> str:
    """Sentences in the plane, a marker for each language; those of a group joined, its name at their middle.

    A group without a name, or with one sentence, is not joined.
    """
    languages = list(dict.fromkeys(point.language for point in points))
    rows = -(-len(languages) // 6)
    with canvas(WIDTH, WIDTH + 0.2 * rows) as figure:
        axes = figure.subplots()
        for group, members in groups(points).items():
            _star(axes, group, members)
        size = 5.5 if len(points) <= 200 else 3
        for place, language in enumerate(languages):
            where = [(point.x, point.y) for point in points if point.language == language]
            colour, marker = _COLOURS[place % len(_COLOURS)], _MARKERS[place % len(_MARKERS)]
            style: dict[str, Any] = {
                "color": colour,
                "markersize": size,
                "markeredgecolor": "white",
                "markeredgewidth": 0.4,
            }
            axes.plot(*np.array(where).T, marker, label=language, **style)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(True)
        axes.spines[:].set_color("#cccccc")
        figure.legend(loc="lower center", frameon=False, ncols=6, columnspacing=1, handletextpad=0.2)
        figure.tight_layout(pad=0.4, rect=(0, 0.05 * rows, 1, 1))
        return inline(figure, name=name, label=label)


def groups(points: Sequence[Point]) -> dict[str, list[Point]]:
    """The points of each group that is shown joined."""
    table: dict[str, list[Point]] = {}
    for point in points:
        table.setdefault(point.group, []).append(point)
    return {group: members for group, members in table.items() if group and len(members) > 1}


def _number(axes: Axes, row: Bar, place: int) -> None:
    outward = 1 if row.value >= 0 else -1
    end = row.value + outward * (row.margin or 0)
    side = "left" if outward > 0 else "right"
    axes.annotate(row.text, (end, place), (3 * outward, 0), textcoords="offset points", ha=side, va="center", size=6.5)


def _finish_bars(axes: Axes, rows: Sequence[Bar], *, axis: str, limits: tuple[float, float]) -> None:
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(*limits)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.grid(visible=True, axis="x", linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(axis)


def _cells(axes: Axes, values: NDArray[np.float64], limits: tuple[float, float]) -> None:
    middle = limits[0] + 0.42 * (limits[1] - limits[0])
    for (row, column), value in np.ndenumerate(values):
        text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.1f}"
        colour = "black" if value > middle else "white"
        axes.text(column, row, text, ha="center", va="center", color=colour, size=5.5)


def _star(axes: Axes, group: str, members: Sequence[Point]) -> None:
    """Lines from the middle of a group to each of its sentences: short ones say that they lie together."""
    x, y = (float(np.mean(axis)) for axis in zip(*((point.x, point.y) for point in members), strict=True))
    for point in members:
        axes.plot((x, point.x), (y, point.y), color="#999999", linewidth=0.8)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    axes.text(x, y, group[:8], ha="center", va="center", size=6.5, color=INK, bbox=box, zorder=4)
