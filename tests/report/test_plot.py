"""Maps: what is chosen, where it is put, and that a file holds it, whatever the sentences are."""

from __future__ import annotations

import html
import json
import re
import sys
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from isoglot.data.groups import Group
from isoglot.errors import EvaluationError
from isoglot.report.plot import LAYOUTS, Sentence, choose, document, lay_out, write_map
from isoglot.report.plot.marks import SHAPES, marks

TEXTS = {
    "eng": "The cat sits <script>alert(1)</script> & waits.",
    "ara": "القطة تجلس على السجادة",
    "zho_Hans": "我不喜欢吃苹果",
    "tha": "แมวนั่งอยู่บนเสื่อ\x00",
}
GROUPS = [Group(tuple(f"{text} {number}" for text in TEXTS.values()), tuple(TEXTS)) for number in range(15)]
SENTENCES = choose(GROUPS).sentences()
VECTORS = np.random.default_rng(0).standard_normal((60, 8)) + np.repeat(np.eye(15, 8) * 9, 4, axis=0)
PLACES = lay_out(VECTORS, "pca")
VOID = {"meta", "input"}


def test_all_groups_when_they_fit():
    chosen = choose(GROUPS, limit=60)
    assert chosen.groups == tuple(GROUPS)
    assert chosen.words == "60 sentences"


def test_a_sample_keeps_groups_whole_and_in_order_and_says_so():
    chosen = choose(iter(GROUPS), limit=21, seed=3)
    places = [GROUPS.index(group) for group in chosen.groups]
    assert len(places) == 5
    assert places == sorted(places)
    assert chosen.words == "20 of 60 sentences, drawn with seed 3"
    assert choose(GROUPS, limit=21, seed=3) == chosen
    assert choose(GROUPS, limit=21, seed=4).groups != chosen.groups


def test_a_sample_is_the_beginning_of_a_random_order():
    """The oracle sorts all groups by their random number, and takes them until one does not fit."""
    sizes = np.random.default_rng(1).integers(1, 6, 200)
    groups = [Group(("x",) * size, ("eng",) * size, str(place)) for place, size in enumerate(sizes)]
    ranks = np.random.default_rng(7).random(200)
    taken, room = [], 90
    for place in np.argsort(ranks):
        if sizes[place] > room:
            break
        taken.append(place)
        room -= sizes[place]
    assert [int(group.key) for group in choose(groups, limit=90, seed=7).groups] == sorted(taken)


def test_choosing_is_refused():
    with pytest.raises(ValueError, match="limit is 0"):
        choose(GROUPS, limit=0)
    with pytest.raises(EvaluationError, match="no sentences to show"):
        choose([])
    with pytest.raises(EvaluationError, match="not one group fits into 3 sentences"):
        choose(GROUPS, limit=3)


def test_colours_are_languages_or_extras():
    groups = [Group(("a", "b"), ("eng", "deu"), extras={"label": 2.0, "span": (1.0, 2.5)})]
    assert [one.kind for one in choose(groups).sentences()] == ["eng", "deu"]
    assert [one.kind for one in choose(groups).sentences("label")] == ["2", "2"]
    assert [one.kind for one in choose(groups).sentences("span")] == ["1 2.5", "1 2.5"]
    with pytest.raises(EvaluationError, match=r"no such extra \(it has: label, span\)"):
        choose(groups).sentences("topic")


@pytest.mark.parametrize("layout", ["pca", "tsne"])
def test_layouts_are_framed_repeatable_and_keep_clusters(layout):
    laid = lay_out(VECTORS, layout)
    assert laid.shape == (60, 2)
    assert laid.min() >= 0
    assert np.ptp(laid, axis=0).max() == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(lay_out(VECTORS.copy(), layout), laid)
    # The seven groups behind the eighth have no direction of their own.
    distances = np.linalg.norm(laid[:32, None] - laid[None, :32], axis=2)
    own = np.equal.outer(np.arange(32) // 4, np.arange(32) // 4)
    assert distances[own].mean() < 0.5 * distances[~own].mean()


@pytest.mark.slow
def test_umap():
    pytest.importorskip("umap")
    laid = lay_out(VECTORS, "umap")
    np.testing.assert_array_equal(lay_out(VECTORS, "umap"), laid)


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(
    "vectors",
    [np.ones((1, 3)), np.eye(2), np.zeros((7, 3)), np.ones((4, 1)), np.eye(3, 1), np.arange(8.0)[:, None]],
    ids=["one", "two", "zeros", "equal", "narrow", "line"],
)
def test_small_and_degenerate_input_is_laid_out(layout, vectors):
    laid = lay_out(vectors, layout)
    assert laid.shape == (len(vectors), 2)
    assert np.isfinite(laid).all()


def test_layouts_are_refused(monkeypatch):
    with pytest.raises(EvaluationError, match="unknown layout 'mds'; choose one of pca, tsne, umap"):
        lay_out(VECTORS, "mds")
    with pytest.raises(EvaluationError, match="sentence 2 is not finite"):
        lay_out(np.array([[1.0, 0], [np.nan, 1]]), "pca")
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(EvaluationError, match=r"isoglot\[umap\]"):
        lay_out(VECTORS, "umap")


def test_kinds_differ_in_colour_and_shape_as_long_as_there_are_any():
    table = marks([str(number) for number in range(88)] * 2)
    assert len({(mark.colour, mark.shape) for mark in table.values()}) == 88
    assert all(mark.count == 2 for mark in table.values())
    for one, other in combinations(list(table.values())[:8], 2):
        assert one.colour != other.colour
        assert one.shape != other.shape
    assert set(SHAPES) >= {mark.shape for mark in table.values()}


@pytest.mark.parametrize("ending", [".png", ".svg", ".html", ".HTML"])
def test_files_are_the_same_on_rerun(tmp_path, ending):
    paths = [tmp_path / f"{name}{ending}" for name in "ab"]
    for path in paths:
        write_map(path, SENTENCES, PLACES, title="A $map$ of <b>", note="60 sentences")
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size > 3000
    assert sorted(tmp_path.iterdir()) == paths


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(EvaluationError, match=r"map\.pdf: a map is written as \.png, \.svg, \.html"):
        write_map(tmp_path / "map.pdf", SENTENCES, PLACES, title="")


def test_svg_is_well_formed_and_keeps_text(tmp_path):
    write_map(tmp_path / "map.svg", SENTENCES, PLACES, title="A $map$ of <b>", note="60 sentences")
    root = ElementTree.parse(tmp_path / "map.svg").getroot()
    words = "".join(root.itertext())
    assert "A $map$ of <b>" in words
    assert all(code in words for code in TEXTS)
    assert "date" not in words.lower()


class Structure(HTMLParser):
    """Balanced tags, unique identifiers, and no reference that leads out of the file."""

    def __init__(self):
        super().__init__()
        self.open, self.ids, self.scripts, self.titles = [], [], 0, []

    def handle_starttag(self, name, attributes):
        given = dict(attributes)
        self.ids += [given["id"]] if "id" in given else []
        self.scripts += name == "script"
        assert "src" not in given
        assert given.get("href", "#").startswith("#")
        assert not any(key.startswith("on") for key in given)
        if name not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.handle_starttag(name, attributes)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] == "title":
            self.titles.append(data)


def test_html_is_whole_and_sentences_stay_text():
    page = document(SENTENCES, PLACES, title="</title><script>", note="<b>")
    found = Structure()
    found.feed(page)
    assert found.open == []
    assert len(set(found.ids)) == len(found.ids)
    assert found.scripts == 1
    assert "url(" not in page
    assert "\x00" not in page
    assert [text.replace("\ufffd", "\x00") for text in found.titles[1:]] == [one.text for one in SENTENCES]
    assert page.count("<line ") == 60
    assert 'lang="zh-Hans"' in page


def test_html_of_one_sentence_has_no_lines():
    page = document([Sentence("x", "und", 0, "")], np.full((1, 2), 0.5), title="one")
    assert "<line " not in page
    assert "(none)" in page


PROBE = """<script>{
const points = [...document.querySelectorAll("#points > g")], at = (item) => item.getBoundingClientRect();
const send = (item, kind, more) => item.dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerType: "mouse",
  clientX: at(item).x + at(item).width / 2, clientY: at(item).y + at(item).height / 2, ...more }));
send(points[1], "pointermove");
const shown = document.getElementById("shown"), hover = shown.textContent, box = shown.getBoundingClientRect();
const near = document.querySelectorAll("#points .near").length;
send(document.querySelector("h1"), "pointermove");
const gone = shown.textContent;
const check = document.querySelector("input[type=checkbox]");
check.click();
const visible = points.filter((point) => getComputedStyle(point).display !== "none").length;
const map = document.getElementById("map"), before = at(points[1]);
map.dispatchEvent(new WheelEvent("wheel", { deltaY: -500, clientX: before.x, clientY: before.y, cancelable: true }));
const zoomed = map.getAttribute("viewBox"), grown = at(points[1]).width / before.width;
const moved = Math.hypot(at(points[1]).x - before.x, at(points[1]).y - before.y);
const find = document.getElementById("find");
find.value = "苹果 7";
find.dispatchEvent(new Event("input"));
const hits = document.querySelectorAll("#points .near").length;
const wide = document.documentElement.scrollWidth, width = document.documentElement.clientWidth;
parent.document.documentElement.innerHTML = "<pre>" + JSON.stringify({ hover, near, gone, visible, zoomed, grown, moved,
  hits, wide, width, inside: box.left >= 0 && box.right <= width && box.top >= 0 }).replaceAll("<", "&lt;") + "</pre>";
}</script>"""


@pytest.mark.slow
def test_in_a_browser_it_shows_filters_zooms_and_fits_a_phone(tmp_path, browser):
    page = document(SENTENCES, PLACES, title="A map", note="60 sentences")
    inner = html.escape(page.replace("</body>", f"{PROBE}</body>"))
    path = tmp_path / "map.html"
    frame = f'<iframe width="390" height="800" srcdoc="{inner}">'
    path.write_text(f'<!DOCTYPE html><meta charset="utf-8">{frame}', encoding="utf-8")
    shown = browser(path.as_uri())
    found = json.loads(html.unescape(re.search(r"<pre>(.*)</pre>", shown)[1]))
    assert found["hover"].startswith("ara" + TEXTS["ara"])
    assert "<script>alert(1)</script>" in found["hover"]
    assert found["near"] == 4
    assert found["gone"] == ""
    assert found["visible"] == 45
    assert found["zoomed"] != "0 0 1000 1000"
    assert found["grown"] == pytest.approx(1, abs=0.1)  # points keep their size
    assert found["moved"] < 8  # what is under the pointer stays there
    assert found["hits"] == 1
    assert found["inside"]
    assert 360 < found["width"] <= 390
    assert found["wide"] == found["width"]
