"""The pictures: what is in them, that they can stand beside others in a page, and that they never change."""

from __future__ import annotations

import re
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from isoglot.report.page.figures import Bar, Spot
from isoglot.report.page.maps import Point
from isoglot.report.page.svg import canvas

from isoglot.errors import EvaluationError
from isoglot.report.page import figures, maps

BARS = [
    Bar("deu-eng", 4.4, "+4.4", seen=True, margin=1.0),
    Bar("tha-eng", 2.0, "+2.0", seen=False),
    Bar("tur-eng", -1.5, "−1.5", seen=False, margin=0.5),
    Bar("agnews", 1.0, "+1.0"),
]
POINTS = [
    Point("1", "eng", 0, 0),
    Point("1", "ara", 1, 1),
    Point("2", "eng", 3, 0),
    Point("", "eng", 5, 5),
    Point("", "ara", 6, 5),
    Point("3", "zho", 2, 2),
    Point("3", "eng", 2, 3),
]

SPOTS = [
    Spot("a-b", "deu", -2.0, 0.3),
    Spot("a-b", "tur", -2.0, 0.3),
    Spot("a-b", "mean", -2.0, 0.3, average=True),
    Spot("other", "deu", -1.5, 0.1),
]


def drawn(name="figure"):
    """One figure of each kind."""
    return {
        "bars": figures.bars(BARS, name=name, label="Bars", axis="change", limits=(-3, 6)),
        "heat": figures.heat_map(["a", "b"], np.array([[1, 0.25], [0.25, 1]]), name=name, label="Heat", limits=(0, 1)),
        "alignment": figures.alignment_uniformity(SPOTS, name=name, label="Plot"),
        "map": maps.sentence_map(POINTS, name=name, label="Map"),
    }


def words(svg):
    return [element.text for element in ElementTree.fromstring(svg).iter("text")]


@pytest.mark.parametrize("kind", ["bars", "heat", "alignment", "map"])
def test_a_figure_fits_into_a_page(kind):
    svg = drawn("name-7")[kind]
    assert min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)) >= 7
    root = ElementTree.fromstring(svg)
    assert root.tag == "svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == root.find("title").text
    assert len(words(svg)) > 1
    assert "://" not in svg
    assert not list(root.iter("style"))
    assert int(root.attrib["width"]) <= 360
    assert all(group.attrib for group in root.iter("g"))
    ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
    links = set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg))
    assert len(ids) == len(set(ids))
    assert set(ids) == links
    assert all(link.startswith("name-7-") for link in links)
    assert len(re.findall(r"url\(", svg)) == len(re.findall(r"url\(#", svg))


def test_the_same_figure_has_the_same_bytes_whatever_the_user_has_set():
    before = drawn()
    size = matplotlib.rcParams["font.size"]
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        assert drawn() == before
        assert matplotlib.rcParams["font.size"] == 30
    assert matplotlib.rcParams["font.size"] == size


def test_unseen_languages_are_hatched_and_coloured():
    svg = drawn()["bars"]
    assert len(re.findall(r"fill: url\(#", svg)) == sum(bar.seen is False for bar in BARS)
    assert svg.upper().count(figures.BLUE) == sum(bar.seen is not False for bar in BARS)
    assert figures.ORANGE.lower() in svg.lower()


def test_bars_have_their_labels_and_numbers():
    found = words(drawn()["bars"])
    for bar in BARS:
        assert bar.label in found
        assert bar.text in found


@pytest.mark.parametrize("size, numbers", [(16, 256), (17, 0)])
def test_a_heat_map_has_numbers_as_far_as_there_is_room(size, numbers):
    codes = [f"l{place}" for place in range(size)]
    svg = figures.heat_map(codes, np.full((size, size), 0.734), name="n", label="l", limits=(0, 1))
    assert words(svg).count(".73") == numbers
    assert set(codes) <= set(words(svg))


def test_only_groups_with_a_name_and_company_are_joined():
    assert list(maps.groups(POINTS)) == ["1", "3"]
    found = words(drawn()["map"])
    assert {"1", "3", "eng", "ara", "zho"} <= set(found)
    assert "2" not in found


def test_many_languages_are_told_apart_by_colour_and_marker():
    points = [Point("1", f"l{place}", place, place) for place in range(maps.MARKED)]
    svg = maps.sentence_map(points, name="n", label="l")
    uses = re.findall(r'<use href="#([^"]+)"[^>]* style="([^"]*)"', svg)
    assert len(set(uses)) == maps.MARKED


def test_of_more_languages_the_codes_stand_in_the_map_in_the_colour_of_their_group():
    points = [Point(str(place % 3), f"l{place}", place, place) for place in range(59)] + [Point("", "eng", 1, 2)]
    svg = maps.sentence_map(points, name="n", label="l")
    assert {point.language for point in points} <= set(words(svg))
    found = {text: colour for colour, text in re.findall(r'<text style="[^"]*?fill: (#\w+)[^"]*"[^>]*>(\w+)<', svg)}
    assert found["l0"] == found["l3"] != found["l1"] != found["l2"] != found["l0"]
    assert found["eng"] == "#777777"


@pytest.mark.slow
def test_a_large_map_has_room_on_a_phone_and_is_small_in_the_file():
    points = [Point(str(group), f"l{place}", place, group) for group in range(15) for place in range(60)]
    svg = maps.sentence_map(points, name="n", label="l")
    assert len(svg) < 160_000
    assert 'style="min-width: 960px"' in svg
    assert min(float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg)) >= 7


def test_groups_of_one_colour_differ_in_weight():
    points = [Point(str(group), f"l{group}x{place}", place, group) for group in range(15) for place in range(2)]
    svg = maps.sentence_map(points, name="n", label="l")
    styles = {text: style for style, text in re.findall(r'<text style="([^"]*)"[^>]*>(l\w+)<', svg)}
    assert len({styles[f"l{group}x0"] for group in range(15)}) == 15
    assert styles["l8x0"] == styles["l8x1"] != styles["l0x0"]


def test_a_heat_map_leaves_what_is_missing_white():
    values = np.array([[1, np.nan], [np.nan, 1]])
    found = words(figures.heat_map(["a", "b"], values, name="n", label="l", limits=(0, 1)))
    assert found.count("1.0") == 3  # two cells and the scale
    assert "nan" not in found


def test_points_of_several_subsets_are_named_and_do_not_cover_each_other():
    svg = figures.alignment_uniformity(SPOTS, name="n", label="l")
    found = words(svg)
    assert found.count("deu") == 2
    assert {"tur", "mean", "a-b"} <= set(found)
    texts = {element.text: element for element in ElementTree.fromstring(svg).iter("text")}
    heights = [_height(texts[name]) for name in ("tur", "mean")]
    assert abs(heights[0] - heights[1]) >= 6
    one = words(figures.alignment_uniformity(SPOTS[:1], name="n", label="l"))
    assert "a-b (−2.000, 0.300)" in one
    assert "deu" not in one


def _height(element):
    return float(element.attrib.get("y") or re.search(r"[ ,](-?[\d.]+)\)", element.attrib["transform"])[1])


def test_names_stay_in_the_figure_and_apart():
    with canvas(3, 2) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1])
        figure.tight_layout()
        names = figures.Names(axes)
        for where in ((0, 0), (0, 0), (1, 1)):
            names.put("spa-eng-4b", where, aside=5)
        names.put("7", (0.5, 0.5))
        names.put("12", (0.5, 0.5))
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in axes.texts]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
        assert not any(one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[:i])
        assert boxes[0].x0 > axes.transData.transform((0, 0))[0]
        assert boxes[2].x1 < axes.transData.transform((1, 1))[0]
        assert boxes[3].y0 < boxes[4].y0


def test_names_are_text_and_not_formulas():
    svg = figures.alignment_uniformity([Spot('a$b$<i> id="x" 模型', "eng", -1, 0.1)], name="n", label="<l>")
    assert any('a$b$<i> id="x" 模型' in word for word in words(svg))


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(EvaluationError, match="pip install matplotlib"), canvas(1, 1):
        pass
