"""Maps of sentences: points of a plane, those that mean the same joined.

A few languages are told apart by colour and marker. Of many, which no legend could tell apart, the codes themselves
stand in the map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.report.page.figures import COLOURS, MARKERS, WIDTH, Names
from isoglot.report.page.svg import canvas, inline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKED = len(MARKERS)  # languages that a map tells apart by markers; of more, their codes stand in the map
_LEGEND = 5  # languages in a line of the legend
_SIDE = 10  # inches of a map of codes


@dataclass(frozen=True, slots=True)
class Point:
    """A sentence in the plane; sentences of one `group` mean the same."""

    group: str
    language: str
    x: float
    y: float


def sentence_map(points: Sequence[Point], *, name: str, label: str) -> str:
    """Sentences in the plane, a marker for each language; those of a group joined, its name at their middle.

    A group without a name, or with one sentence, is not joined. Of more than `MARKED` languages, the codes stand where
    the sentences lie, in a colour for each group; where the colours come again, the codes are bold.
    """
    languages = list(dict.fromkeys(point.language for point in points))
    if len(languages) > MARKED:
        return _coded_map(points, name=name, label=label)
    rows = -(-len(languages) // _LEGEND)
    with canvas(WIDTH, WIDTH + 0.2 * rows) as figure:
        axes = figure.subplots()
        joined = groups(points)
        for members in joined.values():
            _star(axes, members)
        size = 5.5 if len(points) <= 200 else 3
        for place, language in enumerate(languages):
            where = [(point.x, point.y) for point in points if point.language == language]
            colour, marker = COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)]
            style: dict[str, Any] = {
                "color": colour,
                "markersize": size,
                "markeredgecolor": "white",
                "markeredgewidth": 0.4,
            }
            axes.plot(*np.array(where).T, marker, label=language, **style)
        _frame(axes)
        figure.legend(
            loc="lower center", frameon=False, ncols=_LEGEND, columnspacing=1, handletextpad=0.2, handlelength=1
        )
        figure.tight_layout(pad=0.4, rect=(0, 0.05 * rows, 1, 1))
        _name(axes, joined)
        return inline(figure, name=name, label=label)


def groups(points: Sequence[Point]) -> dict[str, list[Point]]:
    """The points of each group that is shown joined."""
    table: dict[str, list[Point]] = {}
    for point in points:
        table.setdefault(point.group, []).append(point)
    return {group: members for group, members in table.items() if group and len(members) > 1}


def _coded_map(points: Sequence[Point], *, name: str, label: str) -> str:
    joined = groups(points)
    colours = {group: COLOURS[place % len(COLOURS)] for place, group in enumerate(joined)}
    again = {group for place, group in enumerate(joined) if place // len(COLOURS) % 2}
    with canvas(_SIDE, _SIDE) as figure:
        axes = figure.add_axes((0.005, 0.005, 0.99, 0.99))
        axes.update_datalim([(point.x, point.y) for point in points])
        axes.autoscale_view()
        for group, members in joined.items():
            _star(axes, members, color=colours[group])
        for point in points:
            style: dict[str, Any] = {"size": 7, "color": colours.get(point.group, "#777777")}
            style["weight"] = "bold" if point.group in again else "normal"
            axes.text(point.x, point.y, point.language[:8], ha="center", va="center", **style)
        _frame(axes)
        _name(axes, joined)
        return inline(figure, name=name, label=label)


def _middle(members: Sequence[Point]) -> tuple[float, float]:
    return float(np.mean([point.x for point in members])), float(np.mean([point.y for point in members]))


def _star(axes: Axes, members: Sequence[Point], *, color: str = "#999999") -> None:
    """Lines from the middle of a group to each of its sentences: short ones say that they lie together."""
    x, y = _middle(members)
    ends = np.repeat([[x], [y]], 2 * len(members), axis=1)
    ends[:, 1::2] = [[point.x for point in members], [point.y for point in members]]
    few = len(members) <= MARKED
    axes.plot(*ends, color=color, linewidth=0.8 if few else 0.4, alpha=None if few else 0.3)  # there and back


def _name(axes: Axes, joined: Mapping[str, Sequence[Point]]) -> None:
    """The name of each group at its middle, or above the name of another that lies there."""
    names = Names(axes)
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    for group, members in joined.items():
        names.put(group[:8], _middle(members), bbox=box, zorder=4)


def _frame(axes: Axes) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#cccccc")
