"""A map as a picture: PNG, or SVG whose text stays text in the reader's fonts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoglot.data.files import atomic_write
from isoglot.report.page.facts import plain
from isoglot.report.page.svg import canvas
from isoglot.report.plot.layouts import Plane
from isoglot.report.plot.marks import Mark, marks
from isoglot.report.plot.sentences import Sentence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 6.4  # inches of the square the points lie in
_DOTS = 200  # per inch, in PNG
_COLUMNS, _LETTERS = 6, 72  # of the legend, and of its lines
_NAMED = 20  # up to so many joined groups, those whose sentences lie together are named by their first words
_TOGETHER = 0.15  # of the side of the picture, from the middle of a group
_LINE, _HEAD = 0.2, 0.62  # inches of a line of the legend, and of the title with the note
_NO_METADATA: dict[str, dict[str, None]] = {
    ".svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
    ".png": {"Software": None},
}
# The font that comes with matplotlib, then those of Noto for what it lacks.
_FONTS = ["DejaVu Sans"]
_FONTS += [
    f"Noto Sans{script}" for script in (" CJK JP", " Thai", " Devanagari", " Bengali", " Tamil", " Ethiopic", "")
]


def write_picture(path: Path, sentences: Sequence[Sentence], places: Plane, *, title: str, note: str = "") -> None:
    """Write a map as PNG or SVG, by the ending of `path`, atomically. Raises `EvaluationError` without matplotlib."""
    kinds = marks(sentence.kind for sentence in sentences)
    labels = {kind: plain(kind)[:30] or "(none)" for kind in kinds}
    columns = max(1, min(_COLUMNS, _LETTERS // (4 + max(map(len, labels.values())))))
    below = _LINE * -(-len(kinds) // columns) + 0.15
    width, height = SIDE, SIDE + _HEAD + below
    with canvas(width, height) as figure:
        _use_fonts()
        axes = figure.add_axes((0.02, below / height, 0.96, (SIDE - 0.04) / height))
        _join(axes, sentences, places)
        _points(axes, sentences, places, kinds, labels)
        _frame(axes)
        _words(figure, plain(title), plain(note))
        figure.legend(loc="lower center", frameon=False, ncols=columns, handletextpad=0.2, columnspacing=1)
        kind = path.suffix.lower()
        with atomic_write(path, binary=True) as stream:
            figure.savefig(stream, format=kind[1:], dpi=_DOTS, metadata=_NO_METADATA[kind])


def joined(sentences: Sequence[Sentence]) -> dict[int, list[int]]:
    """The sentences of every group that has two or more, as places in the sequence."""
    table: dict[int, list[int]] = {}
    for place, sentence in enumerate(sentences):
        table.setdefault(sentence.group, []).append(place)
    return {group: members for group, members in table.items() if len(members) > 1}


def _join(axes: Axes, sentences: Sequence[Sentence], places: Plane) -> None:
    """Lines from the middle of a group to each of its sentences: short ones say that they lie together."""
    from matplotlib.collections import LineCollection

    groups = joined(sentences)
    rays = [(places[members].mean(axis=0), places[member]) for members in groups.values() for member in members]
    faint = 1.0 if len(rays) <= 300 else 0.5
    axes.add_collection(LineCollection(rays, colors="#999999", linewidths=0.8 * faint, alpha=faint, zorder=1))
    if len(groups) > _NAMED:
        return
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    for members in groups.values():
        middle, low = places[members].mean(axis=0), places[members].min(axis=0)[1]
        if np.abs(places[members] - middle).max() <= _TOGETHER:
            side = "left" if middle[0] < 0.12 else "right" if middle[0] > 0.88 else "center"  # inside the frame
            style: dict[str, Any] = {"ha": side, "va": "top", "size": 6.5, "bbox": box, "zorder": 2}
            words = _short(sentences[members[0]].text)
            axes.annotate(words, (middle[0], low), (0, -5), textcoords="offset points", **style)


def _points(
    axes: Axes, sentences: Sequence[Sentence], places: Plane, kinds: dict[str, Mark], labels: dict[str, str]
) -> None:
    size = 6.0 if len(sentences) <= 300 else 4.0 if len(sentences) <= 3000 else 2.5
    own = np.array([sentence.kind for sentence in sentences], dtype=object)
    for kind, mark in kinds.items():
        x, y = places[own == kind].T
        style: dict[str, Any] = {"color": mark.colour, "markersize": size, "markeredgecolor": "white"}
        axes.plot(x, y, mark.shape, markeredgewidth=0.4, label=labels[kind], zorder=3, **style)


def _frame(axes: Axes) -> None:
    axes.set_xlim(-0.04, 1.04)
    axes.set_ylim(-0.04, 1.04)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_visible(True)
    axes.spines[:].set_color("#cccccc")


def _words(figure: Figure, title: str, note: str) -> None:
    height = figure.get_size_inches()[1]
    figure.text(0.02, 1 - 0.26 / height, title[:80], size=11, weight="bold")
    figure.text(0.02, 1 - 0.48 / height, note[:130], size=7.5, color="#55585e")


def _short(text: str) -> str:
    words = plain(text)
    return words if len(words) <= 24 else words[:23].rstrip() + "…"


def _use_fonts() -> None:
    import matplotlib
    from matplotlib.font_manager import fontManager

    there = {font.name for font in fontManager.ttflist}
    matplotlib.rcParams["font.family"] = [name for name in _FONTS if name in there]
