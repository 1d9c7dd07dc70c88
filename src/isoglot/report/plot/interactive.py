"""A map as one HTML file: hover for the sentence, switch kinds off, zoom, look for words. Nothing is fetched.

The picture is inline SVG with the sentences as titles, so that hovering works without the script too; `map.js` adds
the rest. It needs no library and adds some 6 KB, where a plotting library inlined would add 4 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from isoglot.report.page import markup
from isoglot.report.page.facts import plain
from isoglot.report.page.markup import Html, element, join, tag, text
from isoglot.report.plot.layouts import Plane
from isoglot.report.plot.marks import SHAPES, Mark, marks
from isoglot.report.plot.picture import joined
from isoglot.report.plot.sentences import Sentence

_SIDE, _EDGE = 1000, 40  # units of the picture, and the empty edge around the points
_HELP = "Hover or tap a point for its sentence; drag to move, turn the wheel to zoom, double-click to start over."


def document(sentences: Sequence[Sentence], places: Plane, *, title: str, note: str = "") -> str:
    """The HTML document of a map of the sentences at their places (N, 2) between 0 and 1.

    The same input gives the same text. Whatever the sentences hold is shown as text, each in the direction of its
    script and in the reader's fonts.
    """
    kinds = marks(sentence.kind for sentence in sentences)
    body = [
        element("h1", text(plain(title))),
        element("p", text(plain(note))),
        _legend(kinds),
        element("div", _svg(sentences, places, kinds, title), id="box"),
        element("div", id="shown", aria_live="polite"),
        element("p", text(_HELP), id="help", hidden=""),
        element("script", _packaged("map.js")),
    ]
    return markup.document(plain(title), body, style=_packaged("map.css"))


def _legend(kinds: dict[str, Mark]) -> Html:
    """Every kind with its mark; the boxes to switch it off and the search are shown by the script."""
    items = [
        element(
            "label",
            Html(f'<input type="checkbox" checked="" data-kind="{place}" hidden="">'),
            element(
                "svg",
                element("path", d=SHAPES[mark.shape], fill=mark.colour),
                viewBox="-1.6 -1.6 3.2 3.2",
                aria_hidden="true",
            ),
            element("bdi", text(plain(kind) or "(none)")),
            element("small", text(f"{mark.count:,}")),
        )
        for place, (kind, mark) in enumerate(kinds.items())
    ]
    find = Html('<input type="search" id="find" placeholder="words in sentences" aria-label="Find" hidden="">')
    buttons = [
        element("button", text(sign), type="button", id=name, title=words, hidden="")
        for sign, name, words in (("all", "all", "Show all"), ("none", "none", "Hide all"))
    ]
    return element("div", *items, *(buttons if len(kinds) > 2 else []), find, id="legend")


def _svg(sentences: Sequence[Sentence], places: Plane, kinds: dict[str, Mark], title: str) -> Html:
    at = [(_EDGE + x * (_SIDE - 2 * _EDGE), _EDGE + (1 - y) * (_SIDE - 2 * _EDGE)) for x, y in places.tolist()]
    numbers = {kind: place for place, kind in enumerate(kinds)}
    shapes = [
        element("path", id=f"m{place}", d=SHAPES[mark.shape], fill=mark.colour)
        for place, mark in enumerate(kinds.values())
    ]
    groups = joined(sentences)
    rays = [
        _ray(at[member], _middle([at[other] for other in members]), group, numbers[sentences[member].kind])
        for group, members in groups.items()
        for member in members
    ]
    points = [
        _point(sentence, place, group=sentence.group if sentence.group in groups else None, kind=numbers[sentence.kind])
        for sentence, place in zip(sentences, at, strict=True)
    ]
    label = f"{plain(title)}: {len(sentences)} sentences of {len(kinds)} kinds, {len(groups)} groups joined"
    size = 9.0 if len(sentences) <= 300 else 6.0 if len(sentences) <= 3000 else 4.0
    style = f"--size: {size:g}; --faint: {1 if len(rays) <= 300 else 0.35:g}"
    parts = [element("defs", *shapes), element("g", join(rays), id="rays"), element("g", join(points), id="points")]
    return element("svg", *parts, id="map", viewBox=f"0 0 {_SIDE} {_SIDE}", role="img", aria_label=label, style=style)


def _ray(end: tuple[float, float], start: tuple[float, float], group: int, kind: int) -> Html:
    (x1, y1), (x2, y2) = start, end
    places = {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"}
    return element("line", **places, data_group=str(group), data_kind=str(kind))


def _point(sentence: Sentence, place: tuple[float, float], *, group: int | None, kind: int) -> Html:
    words = element("title", text(plain(sentence.text)), lang=tag(sentence.language))
    mark = Html(f'<use href="#m{kind}"/>')
    where = f"translate({place[0]:.1f} {place[1]:.1f})"
    own = sentence.language if sentence.kind == sentence.language else f"{sentence.language} · {plain(sentence.kind)}"
    known = {"data_group": None if group is None else str(group), "data_kind": str(kind), "data_name": own}
    return element("g", words, mark, transform=where, **known)


def _middle(members: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(x for x, _ in members) / len(members), sum(y for _, y in members) / len(members)


def _packaged(name: str) -> Html:
    return Html(files(__package__).joinpath(name).read_text(encoding="utf-8"))
