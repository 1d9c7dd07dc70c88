"""Sentence maps: sentences as points in two dimensions, coloured by language or label, translations joined by lines.

`plot` selects the sentences, encodes them, projects the vectors with `project`, and returns a `SentenceMap`, which is
displayed in a notebook and can be saved as an image or an interactive HTML file.
"""

from __future__ import annotations

import heapq
import importlib
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import NonNegativeInt, PositiveInt, as_python, check_arguments
from isoglot.core.errors import EvaluationError, naming_extras, nearest, require
from isoglot.data.files import atomic_write
from isoglot.data.groups import Group, groups_of
from isoglot.data.languages import UNKNOWN, canonical_list
from isoglot.data.vectors import not_finite, unit
from isoglot.model import load
from isoglot.report import charts
from isoglot.report.charts import Plane, Sentence, data_uri, draw, plain, save, style
from isoglot.report.html import ENVIRONMENT, facts
from isoglot.report.tables import list_names

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Interactive

LIMIT = 2000  # default maximum of sentences; with more, points overlap and t-SNE is slow
ENDINGS = (".html", ".png", ".svg", ".pdf")

_FEWEST = 5  # with fewer points PCA is used, since there are too few neighbours to preserve
_ROUNDING = 1e-9  # sums of squares below are those of equal vectors
_SYMBOLS = (  # in the order of MARKERS
    *("circle", "square", "triangle-up", "diamond", "triangle-down", "cross"),
    *("x", "star", "triangle-left", "triangle-right", "pentagon"),
)
_NOTES = {
    "pca": "PCA of unit vectors.",
    "tsne": "t-SNE of unit vectors: neighbourhoods are meaningful, distances between clusters are not.",
    "umap": "UMAP of unit vectors: neighbourhoods are meaningful, distances between clusters are not.",
}


@check_arguments()
@naming_extras()
def plot(
    model: Any,
    texts: Any,
    *,
    output: str | Path | None = None,
    method: str = "tsne",
    color: str = "language",
    languages: str | Sequence[str] | Mapping[str, str] | None = None,
    labels: Iterable[str] | None = None,
    limit: PositiveInt = LIMIT,
    seed: NonNegativeInt = 0,
    title: str | None = None,
    device: str = "auto",
) -> SentenceMap:
    """Draw a map of sentences.

    model      an encoder, a name or folder for `isoglot.load`, anything else with `encode(texts)`, a function from N
               texts to an array (N, D), or the vectors (N, D) of all sentences, row by row: en[0], de[0],
               en[1] and so on for columns en and de
    texts      sentences, or any data that `isoglot.data.groups_of` accepts: tuples of translations, `Group`s, a
               DataFrame, or a dict from languages to lists of equal length (empty sentences are left out)
    output     a file to write: .html (interactive), .png, .svg or .pdf
    method     projection: pca, tsne or umap
    color      color by language, or by an extra field of the groups
    languages  of sentences: the language of all, or one for each; of tuples: one for each position
    labels     color by these instead, one for each sentence, tuple or group
    limit      maximum number of sentences; of more, whole groups are sampled at random
    seed       random seed for sampling
    title      title of the map
    device     for a model that is loaded by name

    The same arguments give the same map. Raises `EvaluationError` for an unknown method or ending, no sentences, a
    limit smaller than a group, a missing extra or label and vectors that are not finite; `MissingExtraError`, which
    names all that is missing, before the work; `CorpusError` for an unknown language; `ValueError` and `TypeError` for
    other wrong arguments.
    """
    _check_method(method)  # find errors before encoding
    packages = ["umap" if method == "umap" else "sklearn"]
    if output is not None:
        packages.append("plotly" if _check_ending(output).suffix.lower() == ".html" else "matplotlib")
    require(*packages)
    sample = choose(_groups(texts, languages), limit=limit, seed=seed)
    sentences = sample.sentences(color, None if labels is None else [str(label) for label in labels])
    vectors = _vectors(model, sentences, sample, device)
    name = str(model) if isinstance(model, str | Path) else str(getattr(model, "name", "") or "")
    note = f"{sample.words}. {_NOTES['pca' if len(sentences) < _FEWEST else method]}"
    heading = title or f"Sentence map{name and f': {name}'}"
    sentence_map = SentenceMap(tuple(sentences), project(vectors, method), heading, note, name)
    if output is not None:
        sentence_map.save(output)
    return sentence_map


@dataclass(frozen=True, slots=True)
class SentenceMap:
    """Sentences and their `places` (N, 2) between 0 and 1; a notebook shows it as a picture."""

    sentences: tuple[Sentence, ...] = field(repr=False)
    places: Plane = field(repr=False)
    title: str
    note: str = ""
    model: str = ""

    @check_arguments()
    @naming_extras()
    def save(self, path: str | Path) -> None:
        """Write the map, atomically, in the format that the suffix of `path` names.

        .html is one interactive file of some 5 MB that needs no network; .png, .svg and .pdf are pictures. The same map
        gives the same bytes with the same versions of matplotlib and plotly and the same fonts. Raises
        `EvaluationError` for another suffix, and `MissingExtraError` without plotly or matplotlib.
        """
        path = _check_ending(path)
        if path.suffix.lower() == ".html":
            content = self._document()
            with atomic_write(path) as stream:
                stream.write(content)
            return
        with draw(self.sentences, self.places, title=self.title, note=self.note) as (figure, _):
            save(figure, path)

    @naming_extras()
    def figure(self) -> Interactive:
        """An interactive plotly figure: hover to see a sentence and its translations, click the legend to hide a
        language.

        Raises `MissingExtraError` without plotly.
        """
        go: Any = importlib.import_module("plotly.graph_objects")
        drawing, groups = go.Figure(), charts.find_groups(self.sentences)
        centres = charts.find_centres(self.sentences, self.places)
        size = 10 if len(self.sentences) <= 300 else 7 if len(self.sentences) <= 3000 else 5
        for place, members in enumerate(charts.find_kinds(self.sentences).values()):
            name = escape(plain(charts.legend(self.sentences[members[0]]))) or "(none)"
            entry = {"legendgroup": str(place), "name": name}
            rays = [(centres[member], self.places[member]) for member in members if member in centres]
            drawing.add_scatter(
                x=[x for start, end in rays for x in (start[0], end[0], None)],
                y=[y for start, end in rays for y in (start[1], end[1], None)],
                mode="lines", line={"color": "#999999", "width": 1}, opacity=1 if len(centres) <= 300 else 0.35,
                hoverinfo="skip", showlegend=False, **entry,
            )  # fmt: skip
            symbol, edge = _SYMBOLS[place % len(_SYMBOLS)], {"color": "white", "width": 0.5}
            drawing.add_scatter(
                x=self.places[members, 0], y=self.places[members, 1], mode="markers",
                marker={"color": style(place)["color"], "symbol": symbol, "size": size, "line": edge, "opacity": 1},
                hovertext=[_hover(self.sentences, member, groups) for member in members], hoverinfo="text",
                customdata=[plain(self.sentences[member].text) for member in members], **entry,
            )  # fmt: skip
        axis, clear = {"visible": False, "range": [-0.04, 1.04]}, "rgba(0,0,0,0)"
        drawing.update_layout(
            template="plotly_white", paper_bgcolor=clear, plot_bgcolor=clear,  # the page has a light and a dark theme
            dragmode="pan", xaxis=axis, yaxis=axis | {"scaleanchor": "x"}, margin=dict.fromkeys("lrtb", 0),
            hoverlabel={"align": "left", "bgcolor": "white", "font": {"size": 14}},
            legend={"orientation": "h", "yanchor": "top", "y": 0, "font": {"size": 14}},
            modebar={"bgcolor": clear, "color": "#999999", "activecolor": charts.COLOURS[0]},
        )  # fmt: skip
        return drawing

    def _document(self) -> str:
        options = {"scrollZoom": True, "responsive": True, "displaylogo": False}
        drawing = self.figure().to_html(
            full_html=False, include_plotlyjs=True, div_id="map", config=options, default_height="100%"
        )
        codes = dict.fromkeys(one.language for one in self.sentences)
        data = f"{len(self.sentences):,} sentences, {list_names([*map(charts.name_language, codes)])}"
        about = {"title": self.title, "note": self.note, "facts": facts([self.model], data)}
        page = ENVIRONMENT.get_template("map.html").render(about, drawing=drawing)
        return plain(page)

    @naming_extras()
    def _repr_html_(self) -> str:
        """The map as a picture, for a notebook."""
        with draw(self.sentences, self.places, title=self.title, note=self.note) as (figure, _):
            return f'<img alt="{escape(self.title)}" src="{data_uri(figure, "png")}">'


@dataclass(frozen=True, slots=True)
class Chosen:
    """The groups that are shown, in the order of the data, each after its number and that of its first sentence.

    `groups_total` and `total` count the groups and sentences they were sampled from.
    """

    groups: list[tuple[int, int, Group]]
    groups_total: int
    total: int
    seed: int

    @property
    def words(self) -> str:
        """`2,000 of 12,345 sentences, sampled with seed 0`, or `120 sentences` when all are shown."""
        size = sum(len(group.texts) for _, _, group in self.groups)
        if size == self.total:
            return f"{self.total:,} sentence{'' if self.total == 1 else 's'}"
        return f"{size:,} of {self.total:,} sentences, sampled with seed {self.seed}"

    def sentences(self, color: str = "language", labels: Sequence[str] | None = None) -> list[Sentence]:
        """Every sentence, coloured by `language`, by the extra of its group called `color`, or by its group's label.

        Raises `EvaluationError` for a group without such an extra, naming those it has, and unless there is a label
        for each group.
        """
        if labels is not None and len(labels) != self.groups_total:
            raise EvaluationError(f"labels: {len(labels):,} for {self.groups_total:,} groups; pass one for each")
        sentences = []
        for number, _, group in self.groups:
            label = labels[number] if labels is not None else None if color == "language" else _extra(group, color)
            for text, language in zip(group.texts, group.langs, strict=True):
                kind = label if label is not None else "language unknown" if language == UNKNOWN else language
                sentences.append(Sentence(text, language, str(number) if len(group.texts) > 1 else "", kind))
        return sentences


def choose(groups: Iterable[Group], *, limit: int = LIMIT, seed: int = 0) -> Chosen:
    """Groups of at most `limit` sentences altogether: all, or as many as fit of a random order.

    One pass; memory holds only the sample. The same groups, limit and seed give the same choice. Raises
    `EvaluationError` without a sentence, or when the limit is smaller than a group.
    """
    draw_ranks = np.random.default_rng(seed)
    heap: list[tuple[float, int, int, Group]] = []  # a heap with the last of the random order on top
    size = total = count = 0
    bound = float("inf")
    for number, group in enumerate(groups):
        rank = float(draw_ranks.random())
        if rank < bound:
            heapq.heappush(heap, (-rank, number, total, group))
            size += len(group.texts)
        total, count = total + len(group.texts), number + 1
        while size > limit:  # stop at the first group that does not fit, so that large groups are not under-represented
            last, _, _, dropped = heapq.heappop(heap)
            size, bound = size - len(dropped.texts), -last
    if not total:
        raise EvaluationError("no sentences to show; pass files that contain text")
    if not size:
        raise EvaluationError(f"no group fits into {limit} sentences; raise the limit")
    return Chosen(sorted((entry[1:] for entry in heap), key=lambda entry: entry[0]), count, total, seed)


def project(vectors: NDArray[Any], method: str = "tsne") -> Plane:
    """Vectors (N, D) as points of a plane (N, 2) between 0 and 1, the longer side filled, proportions preserved.

    pca   the two directions of greatest variance; the only one whose distances are meaningful
    tsne  t-SNE (van der Maaten and Hinton 2008) from PCA, perplexity 30 or less for few points
    umap  UMAP (McInnes et al. 2018) with 15 neighbours or fewer

    All see unit vectors, so near means a high cosine. Fewer than five points are projected by PCA. The same vectors
    give the same plane: one thread, a fixed seed. Raises `EvaluationError` for an unknown method and vectors that are
    not finite, `MissingExtraError` for one that is not installed.
    """
    _check_method(method)
    points = np.asarray(vectors, np.float64)
    if len(bad := not_finite(points)):
        raise EvaluationError(f"the vector of sentence {bad[0] + 1} is not finite; the model is damaged")
    points = unit(points, np.float64)
    is_small = len(points) < _FEWEST or points.shape[1] < 2
    return np.asarray(charts.frame(plane(points, "pca" if is_small else method)).round(5))


def _pca(points: Plane) -> Plane:
    from sklearn.decomposition import PCA

    width, places = min(2, *points.shape), np.zeros((len(points), 2))
    places[:, :width] = PCA(width, svd_solver="full").fit_transform(points)
    return places


def _tsne(points: Plane) -> Plane:
    from sklearn.manifold import TSNE

    points = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))  # vectors of one value lie on a line
    layout = TSNE(init="pca", perplexity=min(30.0, (len(points) - 1) / 3), random_state=0)
    return np.asarray(layout.fit_transform(points), np.float64)


def _umap(points: Plane) -> Plane:
    with naming_extras():
        module: Any = importlib.import_module("umap")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP warns that a seed implies one thread
        layout = module.UMAP(n_neighbors=min(15, len(points) - 1), random_state=0, n_jobs=1)
        return np.asarray(layout.fit_transform(points), np.float64)


METHODS: dict[str, Callable[[Plane], Plane]] = {"pca": _pca, "tsne": _tsne, "umap": _umap}


def plane(points: Plane, method: str = "tsne") -> Plane:
    """Points (N, D) laid into a plane (N, 2), the same for the same points; all at 0 where none differ."""
    from threadpoolctl import threadpool_limits

    if np.square(points - points.mean(axis=0)).sum() <= _ROUNDING:
        return np.zeros((len(points), 2))
    with threadpool_limits(1):  # threads would add up in the order in which they finish
        return METHODS[method](points)


def _hover(sentences: Sequence[Sentence], place: int, groups: Mapping[str, Sequence[int]]) -> str:
    """A sentence and its translations as plotly shows them; plotly reads some HTML, so everything is escaped."""
    others = [other for other in groups.get(sentences[place].group, []) if other != place]
    lines = []
    for member in [place, *others[:11]]:
        one = sentences[member]
        name = charts.name_language(one.language)
        name += "" if one.kind in (one.language, "language unknown") else f" · {one.kind}"
        words = textwrap.wrap(plain(one.text)[:400], 70) or ['""']
        text = "<br>".join(escape(line) for line in words)
        lines.append(f"<b>{escape(plain(name))}</b> {text}" if member == place else f"{escape(plain(name))} {text}")
    return "<br>".join(lines)


def _groups(texts: Any, languages: str | Sequence[str] | Mapping[str, str] | None) -> Iterable[Group]:
    """The sentences as groups; unlike in `groups_of`, a list of sentences can have a language for each."""
    if languages is None or isinstance(languages, str | Mapping):
        return groups_of(texts, languages)
    codes = canonical_list(languages)
    if isinstance(texts, np.ndarray) or hasattr(texts, "to_list"):  # an array, or a Series
        texts = list(texts)
    if len(codes) < 2 or not (isinstance(texts, Sequence) and texts and all(isinstance(text, str) for text in texts)):
        return groups_of(texts, codes)
    if len(texts) != len(codes):
        raise ValueError(f"{len(codes)} languages for {len(texts)} sentences; pass one for each, or one for all")
    return [Group((text,), (code,)) for text, code in zip(texts, codes, strict=True)]


def _vectors(model: Any, sentences: Sequence[Sentence], sample: Chosen, device: str) -> NDArray[Any]:
    """The vectors (N, D) of the chosen sentences."""
    texts = [sentence.text for sentence in sentences]
    if isinstance(model, np.ndarray):
        if model.ndim != 2 or len(model) != sample.total:
            raise ValueError(f"vectors of shape {model.shape} for {sample.total} sentences; expected (N, D)")
        return model[[start + at for _, start, group in sample.groups for at in range(len(group.texts))]]
    if isinstance(model, str | Path):
        model = load(model, device=device)
    compute = getattr(model, "encode", model)  # an encoder of any library, or a function
    if not callable(compute):
        raise TypeError(f"model is of type {type(model).__name__}; pass an encoder, a name, a function or vectors")
    vectors = np.asarray(as_python(compute(texts), "the model's answer"))
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ValueError(f"the model returned shape {vectors.shape} for {len(texts)} sentences; expected (N, D)")
    return vectors


def _extra(group: Group, name: str) -> str:
    if name not in group.extras:
        extras = ", ".join(group.extras) or "none"
        where = f"cannot colour by {name!r}: the group of {group.texts[0][:40]!r}"
        raise EvaluationError(f"{where} has the extras: {extras}; colour by language, or pass labels")
    value = group.extras[name]
    return f"{value:g}" if isinstance(value, (int, float)) else " ".join(f"{part:g}" for part in value)


def _check_ending(name: str | Path) -> Path:
    if (path := Path(name)).suffix.lower() not in ENDINGS:
        raise EvaluationError(f"{path}: unknown format; use a name that ends in {', '.join(ENDINGS)}")
    return path


def _check_method(method: str) -> None:
    if method not in METHODS:
        raise EvaluationError(f"unknown projection {method!r}; {nearest(method, METHODS)}")
