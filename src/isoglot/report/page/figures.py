"""The pictures of the page but its maps: bars by language, heat maps, alignment against uniformity.

Colours are those of Okabe and Ito (2008), told apart with any kind of colour vision, and viridis; whatever a colour
says is said again by a hatch, a marker or a number. Figures are as wide as a phone unless there is more to show, and
no letters are smaller than 7 points, which are 9 pixels.
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

WIDTH = 3.75  # inches, 360 pixels
BLUE, ORANGE, INK = "#0072B2", "#E69F00", "#222222"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
_UNSEEN: dict[str, Any] = {"color": ORANGE, "hatch": "/////", "edgecolor": "#7A4B00"}
_SCALE = 0.65  # inches to the right of a heat map, for its scale
_LABELLED = 40  # points up to which a plot names their subsets
_LETTER, _LINE = 3.9, 8  # the room of a letter of such a name, and of its line, in points
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
class Spot:
    """Where a model lies on a subset, or on an average of subsets."""

    model: str
    subset: str
    uniformity: float
    alignment: float
    average: bool = False


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
    """A square table (N, N) in colours of `limits`, with its numbers as far as there is room; NaN is left white."""
    margin = 0.2 + 0.06 * max(map(len, names))
    side = max(WIDTH - margin - _SCALE, 0.16 * len(names))
    width, height = margin + side + _SCALE, side + margin + 0.08
    with canvas(width, height) as figure:
        axes = figure.add_axes((margin / width, margin / height, side / width, side / height))
        image = axes.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="none")
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        if len(names) <= _NUMBERED:
            _cells(axes, values, limits)
        beside = figure.add_axes(((margin + side + 0.1) / width, margin / height, 0.12 / width, side / height))
        figure.colorbar(image, cax=beside).outline.set_visible(False)
        return inline(figure, name=name, label=label)


def alignment_uniformity(spots: Sequence[Spot], *, name: str, label: str) -> str:
    """A marker for each model, averages larger; subsets are named where there are several. Lower is better on both."""
    models = list(dict.fromkeys(spot.model for spot in spots))
    named = len({spot.subset for spot in spots}) > 1 and len(spots) <= _LABELLED
    with canvas(WIDTH, 3.1 + 0.17 * len(models)) as figure:
        axes = figure.subplots()
        for place, model in enumerate(models):
            own = [spot for spot in spots if spot.model == model]
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            for spot in own:
                size = 9 if spot.average or not named else 5
                style: dict[str, Any] = {"markersize": size, "markeredgecolor": "white", "markeredgewidth": 0.6}
                axes.plot(spot.uniformity, spot.alignment, marker, color=colour, **style)
            axes.plot([], [], marker, color=colour, label=_named(own))
        axes.margins(0.2)
        axes.grid(visible=True, linewidth=0.6)
        axes.set_xlabel("uniformity (lower is better)")
        axes.set_ylabel("alignment (lower is better)")
        figure.legend(loc="lower left", frameon=False, ncols=1, bbox_to_anchor=(0.1, 0))
        figure.tight_layout(pad=0.5, rect=(0, 0.05 + 0.045 * len(models), 1, 1))
        if named:
            _subsets(axes, spots)
        return inline(figure, name=name, label=label)


def _named(own: Sequence[Spot]) -> str:
    """A model in the legend: with its numbers if it has one point."""
    spot = own[0]
    numbers = f" ({spot.uniformity:.3f}, {spot.alignment:.3f})".replace("-", "−")
    return spot.model + (numbers if len(own) == 1 else "")


def _subsets(axes: Axes, spots: Sequence[Spot]) -> None:
    """Names beside their markers."""
    names = Names(axes)
    for spot in sorted(spots, key=lambda spot: spot.alignment):
        style: dict[str, Any] = {"weight": "bold" if spot.average else "normal"}
        names.put(spot.subset, (spot.uniformity, spot.alignment), aside=5, **style)


class Names:
    """Small words at points of finished axes, each above those before it that it would cover."""

    def __init__(self, axes: Axes) -> None:
        figure: Any = axes.get_figure(root=True)
        axes.autoscale_view()  # of what was drawn last
        self._axes, self._scale, self._width = axes, 72 / figure.dpi, 72 * figure.get_figwidth()
        self._taken: list[tuple[float, float, float]] = []  # left, right and line of each, in points

    def put(self, name: str, where: tuple[float, float], *, aside: float = 0, **style: Any) -> None:
        """Write a name so many points to the right of `where`, or else to the left; without `aside`, at its middle."""
        x, y = (float(axis) * self._scale for axis in self._axes.transData.transform(where))
        room = _LETTER * len(name)
        side, shift, left = "center", 0.0, x - room / 2
        if aside and x + aside + room < self._width:
            side, shift, left = "left", aside, x + aside
        elif aside:
            side, shift, left = "right", -aside, x - aside - room
        at = y - 2
        while any(left < end and start < left + room and abs(at - low) < _LINE for start, end, low in self._taken):
            at += 1
        self._taken.append((left, left + room, at))
        known: dict[str, Any] = {"size": 7, "color": INK, "ha": side, **style}
        self._axes.annotate(name, where, (shift, at - y), textcoords="offset points", **known)


def _number(axes: Axes, row: Bar, place: int) -> None:
    outward = 1 if row.value >= 0 else -1
    end = row.value + outward * (row.margin or 0)
    side = "left" if outward > 0 else "right"
    axes.annotate(row.text, (end, place), (3 * outward, 0), textcoords="offset points", ha=side, va="center", size=7)


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
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.1f}"
        colour = "black" if value > middle else "white"
        axes.text(column, row, text, ha="center", va="center", color=colour, size=7)
