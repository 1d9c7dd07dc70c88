"""Matplotlib figures shared by the page and the sentence maps: heat maps, scatter plots, labels.

Colours are those of Okabe and Ito (2008), distinguishable with any kind of colour vision, and viridis; all information
in colours is repeated by markers or numbers. Nothing depends on the date or on the user's settings of matplotlib, so
the same figure gives the same bytes.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.core.score import Detail
from isoglot.data.files import atomic_write
from isoglot.data.languages import english_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Plane = NDArray[np.float64]

WIDTH = 4.6  # width in inches of a figure in a column of the page
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")

_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NUMBERED = 16  # maximum rows of a heat map with numbers in its cells
_NAMED = 40  # maximum points of a scatter plot with names next to them
_SIDE = 6.4  # inches of the square that contains a sentence map
_LABELLED, _TOGETHER = 20, 0.15  # joined groups up to which those within this share of the side are labelled
_CODED = 1000  # maximum sentences of a map that shows language codes instead of markers
_RULES: dict[Any, Any] = {
    "font.size": 9,
    "font.family": "sans-serif",
    "svg.fonttype": "none",  # keep text as text, drawn with the reader's fonts
    "svg.hashsalt": "isoglot",
    "text.parse_math": False,  # a model may be named `a$b$`
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
}
# matplotlib's own font, then Noto fonts for the scripts it lacks.
_NOTO = ("CJK JP", "Thai", "Devanagari", "Bengali", "Tamil", "Ethiopic")
_FONTS = ["DejaVu Sans", *(f"Noto Sans {script}" for script in _NOTO), "Noto Sans"]
_NO_METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """The position of a model on a subset, or on an average of subsets."""

    model: str
    subset: str
    uniformity: float
    alignment: float
    average: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """A point of a map. Sentences of the same `group` are joined unless it is empty; `kind` chooses the colour."""

    text: str
    language: str
    group: str
    kind: str


def style(place: int) -> dict[str, Any]:
    """The colour and the marker of the series at this place; 88 differ."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def plain(words: str) -> str:
    """The text with forbidden characters, such as control characters, replaced by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", words)


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of the given size in inches; inside the block, the settings of this module apply."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        matplotlib.rcParams["font.sans-serif"] = [name for name in _FONTS if name in installed]
        warnings.filterwarnings("ignore", "Glyph")  # the reader's fonts draw the text of SVG
        yield Figure(figsize=(width, height))


def write(figure: Figure, stream: IO[Any], kind: str) -> None:
    """Write a figure as `svg`, `png` or `pdf`, inside its `canvas` block."""
    figure.savefig(stream, format=kind, dpi=200, metadata=_NO_METADATA[kind])


def image_kind(path: Path) -> str:
    """The format that the ending of an image file names. Raises `EvaluationError` for another."""
    if (kind := path.suffix.lower()[1:]) not in _NO_METADATA:
        raise EvaluationError(f"{path}: unknown ending; use .svg, .png or .pdf")
    return kind


def save(figure: Figure, path: Path) -> None:
    """Write a figure to a file, atomically, inside its `canvas` block."""
    with atomic_write(path, binary=True) as stream:
        write(figure, stream, image_kind(path))


def data_uri(figure: Figure, kind: str = "svg") -> str:
    """The figure as the source of an image, inside its `canvas` block."""
    stream = BytesIO()
    write(figure, stream, kind)
    mime = {"svg": "svg+xml"}.get(kind, kind)
    return f"data:image/{mime};base64,{b64encode(stream.getvalue()).decode()}"


def heat_map(names: Sequence[str], values: NDArray[np.float64], *, limits: tuple[float, float]) -> str:
    """The source of an image: a square table (N, N) in the colours of `limits`, its numbers if N is small.

    NaN is left white.
    """
    names = [plain(name)[:14] for name in names]
    margin, scale = 0.25 + 0.075 * max(map(len, names)), 0.65
    side = max(WIDTH - margin - scale, 0.18 * len(names))
    width, height = margin + side + scale, side + margin + 0.1
    with canvas(width, height) as figure:
        axes = figure.add_axes((margin / width, margin / height, side / width, side / height))
        image = heat_cells(axes, names, values, limits=limits, side=side)
        scale_axes = figure.add_axes(((margin + side + 0.1) / width, margin / height, 0.12 / width, side / height))
        figure.colorbar(image, cax=scale_axes).outline.set_visible(False)
        return data_uri(figure)


def heat_cells(
    axes: Axes, names: Sequence[str], values: NDArray[np.float64], *, limits: tuple[float, float], side: float
) -> AxesImage:
    """Draw the cells of a heat map, `side` inches wide, with its names and, if it is small, its numbers."""
    image = axes.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="none")
    axes.set_xticks(range(len(names)), names, rotation=90)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    middle = limits[0] + 0.42 * (limits[1] - limits[0])  # black can be read on viridis above it, white below
    for row, column in np.argwhere(np.isfinite(values)) if len(names) <= _NUMBERED else ():
        value = values[row, column]
        text = f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.1f}"
        colour = "black" if value > middle else "white"
        axes.text(column, row, text, ha="center", va="center", color=colour, size=min(9, 36 * side / len(names)))
    return image


def alignment_uniformity(spots: Sequence[Spot]) -> str:
    """The source of an image: a marker for each model and subset, averages larger, subsets named if there is room."""
    models = list(dict.fromkeys(spot.model for spot in spots))
    named = len({spot.subset for spot in spots}) > 1 and len(spots) <= _NAMED
    with canvas(WIDTH, 3.6 + 0.2 * len(models)) as figure:
        axes = figure.subplots()
        for place, model in enumerate(models):
            points = [spot for spot in spots if spot.model == model]
            sizes = [90 if spot.average or not named else 30 for spot in points]
            x, y = ([getattr(spot, name) for spot in points] for name in ("uniformity", "alignment"))
            axes.scatter(x, y, sizes, **style(place), label=plain(model))
        axes.margins(0.2)
        axes.grid(visible=True, linewidth=0.6)
        axes.set_xlabel("uniformity (lower is better)")
        axes.set_ylabel("alignment (lower is better)")
        figure.legend(loc="lower left", frameon=False, bbox_to_anchor=(0.1, 0))
        figure.tight_layout(pad=0.5, rect=(0, 0.03 + 0.055 * len(models), 1, 1))
        spans: list[tuple[float, float, float]] = []  # of the drawn names: left, right and baseline in points
        for spot in sorted(spots, key=lambda spot: spot.alignment) if named else ():
            x, y = axes.transData.transform((spot.uniformity, spot.alignment)) * 72 / figure.dpi
            room, line = 5.2 * len(spot.subset), float(y)
            right = x + 5 + room < 72 * WIDTH
            begin = float(x + 5 if right else x - 5 - room)
            while any(begin < end and start < begin + room and abs(line - low) < 9 for start, end, low in spans):
                line += 1  # move it above the names that it would cover
            spans.append((begin, begin + room, line))
            offset, weight = (5 if right else -5, line - y - 3), "bold" if spot.average else "normal"
            placing: dict[str, Any] = {"textcoords": "offset points", "ha": "left" if right else "right"}
            axes.annotate(plain(spot.subset), (spot.uniformity, spot.alignment), offset, weight=weight, **placing)
        return data_uri(figure)


def matrix(detail: Detail, title: str) -> NDArray[np.float64]:
    """The numbers (N, N) of a square table whose rows begin with a name; NaN where a cell is empty.

    Raises `EvaluationError` beginning with `title` for a table of another shape or without a finite number.
    """
    size = len(detail.columns) - 1
    try:
        values = np.array([[np.nan if cell == "" else cell for cell in row[1:]] for row in detail.rows], np.float64)
    except ValueError:
        values = np.zeros((0, 0))
    if values.shape != (size, size) or np.isinf(values).any() or np.isnan(values).all():
        raise EvaluationError(f"{title}: the similarity table is not {size} by {size} finite numbers; evaluate again")
    return values


def similar_adjacent(values: NDArray[np.float64]) -> list[int]:
    """An order of the rows of a square table (N, N) in which similar rows are adjacent.

    The leaves of a tree of average linkage over the rows, ordered so that neighbours are close. A missing number counts
    as the mean of all.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import pdist

    filled = np.where(np.isnan(values), np.nanmean(values), values)
    return [int(place) for place in leaves_list(linkage(pdist(filled), "average", optimal_ordering=True))]


def frame(points: Plane) -> Plane:
    """Points (N, 2) moved and scaled into the square from 0 to 1: the longer side filled, proportions preserved."""
    low, high = points.min(axis=0), points.max(axis=0)
    side = float((high - low).max()) or 1.0  # where all points are equal they lie in the middle
    return np.asarray((points - (low + high) / 2) / side + 0.5)


@contextmanager
def draw(
    sentences: Sequence[Sentence], places: Plane, *, title: str = "", note: str = "", side: float = _SIDE
) -> Iterator[tuple[Figure, Plane]]:
    """A picture of a map, and where its points are in it: shares (N, 2) of its width and height from the lower left.

    Kinds have a colour and a marker, 88 pairs of them. Of more kinds than there are markers whose names are short,
    such as languages, the names stand instead of the markers, in a colour for each group; where the colours are used
    again, the names are bold.
    """
    from matplotlib.collections import LineCollection

    kinds, groups, centres = find_kinds(sentences), find_groups(sentences), find_centres(sentences, places)
    names = {kind: plain(legend(sentences[members[0]]))[:30] or "(none)" for kind, members in kinds.items()}
    shows_codes = len(kinds) > len(MARKERS) and max(map(len, kinds)) <= 8 and len(sentences) <= _CODED
    columns = max(1, min(6, int(9 * side) // (4 + max(map(len, names.values())))))
    columns = -(-len(kinds) // -(-len(kinds) // columns))  # rows of equal length
    side = 1.5 * _SIDE if shows_codes else side
    lines = textwrap.wrap(plain(note), int(16 * side)) or [""]  # about 17 letters of this size to an inch
    top_height = 0.46 + 0.16 * len(lines) if title or note else 0.04
    bottom_height = 0.04 if shows_codes else 0.24 * -(-len(kinds) // columns) + 0.1
    height = side + top_height + bottom_height
    with canvas(side, height) as figure:
        axes = figure.add_axes((0.02, bottom_height / height, 0.96, side / height), xticks=[], yticks=[])
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
        axes.spines[:].set(visible=True, color="#cccccc")
        faint = 1.0 if len(centres) <= 300 else 0.5
        rays = [(centre, places[member]) for member, centre in centres.items()]
        axes.add_collection(LineCollection(rays, colors="#999999", linewidths=0.8 * faint, alpha=faint, zorder=1))
        if shows_codes:
            order = {group: place for place, group in enumerate(groups)}
            for sentence, (x, y) in zip(sentences, places, strict=True):
                place = order.get(sentence.group)
                colour = "#777777" if place is None else style(place)["color"]
                weight = "bold" if place is not None and place // len(COLOURS) % 2 else "normal"
                axes.text(x, y, plain(sentence.kind), ha="center", va="center", size=8, color=colour, weight=weight)
        else:
            size = 6.5 if len(sentences) <= 300 else 4.0 if len(sentences) <= 3000 else 2.5
            for place, (kind, members) in enumerate(kinds.items()):
                edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.4, "markersize": size}
                axes.plot(*places[members].T, linestyle="", zorder=3, label=names[kind], **style(place), **edge)
            figure.legend(loc="lower center", frameon=False, ncols=columns, handletextpad=0.2, columnspacing=1)
        labelled: list[Plane] = []
        for members in groups.values() if len(groups) <= _LABELLED else ():
            middle, low = places[members].mean(axis=0), places[members].min(axis=0)[1]
            at = np.array([middle[0], low])
            free = all(np.abs((at - other) / (1.6 / side, 0.2 / side)).max() > 1 for other in labelled)
            if free and np.abs(places[members] - middle).max() <= _TOGETHER:
                labelled.append(at)
                inside = "left" if at[0] < 0.15 else "right" if at[0] > 0.85 else "center"
                text = plain(sentences[members[0]].text)
                words = text if len(text) <= 24 else f"{text[:23].rstrip()}…"
                box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}
                placing: dict[str, Any] = {"ha": inside, "va": "top", "size": 8, "bbox": box, "zorder": 2}
                axes.annotate(words, tuple(at), (0, -5), textcoords="offset points", **placing)
        figure.text(0.02, 1 - 0.26 / height, plain(title)[:80], size=12, weight="bold")
        figure.text(0.02, 1 - (top_height - 0.12) / height, "\n".join(lines), size=8, color="#55585e")
        yield figure, axes.transData.transform(places) / figure.bbox.size


def find_kinds(sentences: Sequence[Sentence], key: str = "kind") -> dict[str, list[int]]:
    """The places of the sentences of each kind, in the order of first appearance."""
    kinds: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        kinds.setdefault(getattr(sentence, key), []).append(place)
    return kinds


def find_groups(sentences: Sequence[Sentence]) -> dict[str, list[int]]:
    """The places of the sentences of each group that has two or more."""
    return {group: members for group, members in find_kinds(sentences, "group").items() if group and len(members) > 1}


def find_centres(sentences: Sequence[Sentence], places: Plane) -> dict[int, Plane]:
    """The centre of its group for each joined sentence; short lines show that the sentences of a group are close."""
    groups = find_groups(sentences).values()
    return {member: middle for members in groups for middle in [places[members].mean(axis=0)] for member in members}


def name_language(language: str) -> str:
    """A code with the name of its language."""
    return f"{language} {english_name(language)}".rstrip()


def legend(sentence: Sentence) -> str:
    """The kind of a sentence; of a language, with its name."""
    return name_language(sentence.kind) if sentence.kind == sentence.language else sentence.kind
