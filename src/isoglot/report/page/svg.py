"""A matplotlib figure as SVG that can stand inside a page, beside others.

What is special here: text stays text, in the reader's fonts; identifiers are dropped, or carry the figure's name where
something refers to them; nothing depends on the day or on the user's settings of matplotlib, so that the same figure
gives the same bytes.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from isoglot.errors import EvaluationError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 72  # a figure's inch
_PIXELS = 96  # a page's inch
_PHONE = 360  # pixels that a figure has on a phone; a wider one is not made smaller, so that its letters can be read
_RULES: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "isoglot",
    "text.parse_math": False,  # a model may be named `a$b$`
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "hatch.linewidth": 0.7,
}
_LINKING = ("href", "style", "clip-path")  # attributes that refer to identifiers
_LINK = re.compile(r"(url\(#|^#)([\w-]+)")
_FAMILY = re.compile(r"font-family: [^;]*(; )?")
_DECIMALS = re.compile(r"(\.\d\d)\d+")  # behind them comes less than anybody sees
_PLACES = {"path": ("d",), "use": ("x", "y"), "text": ("x", "y", "transform")}
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


@contextmanager
def canvas(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of so many inches, with the page's settings in force inside the block.

    Raises `EvaluationError` when matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvaluationError("the page draws with matplotlib: pip install matplotlib") from error
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RULES)
        warnings.filterwarnings("ignore", "Glyph")  # the reader's fonts draw the text, not ours
        yield Figure(figsize=(width, height))


def inline(figure: Figure, *, name: str, label: str) -> str:
    """The figure as an `<svg>` element. `name` is unique in the page; `label` says in words what is to be seen."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    root = ElementTree.fromstring(buffer.getvalue())
    _simplify(root, name)
    title = ElementTree.Element("title")
    title.text = label
    root.insert(0, title)
    width, height = (round(float(size) * _PIXELS / _POINTS) for size in root.attrib["viewBox"].split()[2:])
    large = {"style": f"min-width: {width}px"} if width > _PHONE else {}  # it scrolls in its box
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "width": str(width),
        "height": str(height),
        "font-family": "sans-serif",
        **large,
        "role": "img",
        "aria-label": label,
    }
    return ElementTree.tostring(root, encoding="unicode")


def _simplify(root: ElementTree.Element, name: str) -> None:
    """Names without namespaces, identifiers only where they are used, one font, and no group without a purpose."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        element.attrib = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        element.tail = None
        if element.tag != "text":
            element.text = None
    for parent in list(root.iter()):
        for style in parent.findall("style"):  # it would apply to the whole page
            parent.remove(style)
    used = {link for element in root.iter() for link in _links(element)}
    for element in root.iter():
        _rename(element, name, used)
        _shorten(element)
    _ungroup(root)


def _links(element: ElementTree.Element) -> list[str]:
    """Identifiers that an element refers to, as a fill, a clip or a copy."""
    return [found[2] for key in _LINKING for found in _LINK.finditer(element.attrib.get(key, ""))]


def _rename(element: ElementTree.Element, name: str, used: set[str]) -> None:
    if element.attrib.get("id") not in used:
        element.attrib.pop("id", None)
    for key in element.attrib.keys() & set(_LINKING):
        element.attrib[key] = _LINK.sub(rf"\g<1>{name}-\2", element.attrib[key])
    if "id" in element.attrib:
        element.attrib["id"] = f"{name}-{element.attrib['id']}"
    if element.attrib.get("href", "").startswith("data:"):
        element.attrib["href"] = "".join(element.attrib["href"].split())


def _shorten(element: ElementTree.Element) -> None:
    if element.tag == "text":
        element.attrib["style"] = _FAMILY.sub("", element.attrib.get("style", "")).rstrip("; ")
        if element.attrib.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
    for key in element.attrib.keys() & set(_PLACES.get(element.tag, ())):
        element.attrib[key] = _DECIMALS.sub(r"\1", " ".join(element.attrib[key].split()))


def _ungroup(parent: ElementTree.Element) -> None:
    for child in parent:
        _ungroup(child)
    parent[:] = [part for child in parent for part in (child if child.tag == "g" and not child.attrib else [child])]
