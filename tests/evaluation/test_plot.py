"""Sentence maps: which sentences are chosen, where they are put, and that every format holds them."""

import html
import json
import re
import sys

import numpy as np
import pytest
from page_results import words

import isoglot
from isoglot.core.errors import CorpusError, EvaluationError, MissingExtraError
from isoglot.data.groups import Group
from isoglot.evaluation.plot import METHODS, Sentence, choose, draw, project

TEXTS = {
    "eng": "The cat sits <script>alert(1)</script> & waits.",
    "ara": "القطة تجلس على السجادة",
    "zho_Hans": "我不喜欢吃苹果",
    "tha": "แมวนั่งอยู่บนเสื่อ\x00",
}
GROUPS = [Group(tuple(f"{text} {number}" for text in TEXTS.values()), tuple(TEXTS)) for number in range(15)]
VECTORS = np.random.default_rng(0).standard_normal((60, 8)) + np.repeat(np.eye(15, 8) * 9, 4, axis=0)


def numbers(texts):
    """A function from texts to vectors."""
    return np.array([[len(text), text.count("a"), hash(text) % 7] for text in texts], float)


def made(texts, **settings):
    return isoglot.plot(numbers, texts, method="pca", **settings)


def test_what_is_accepted_as_texts():
    pair = Group(("a cat", "eine Katze"), ("eng", "deu"))
    columns = {"en": ["a cat", "b"], "de": ["eine Katze", ""]}
    for joined in (pair, ("a cat", "eine Katze")):
        assert [one.group for one in made([joined]).sentences] == ["0", "0"]
    sentences = [("eng", "a cat"), ("deu", "eine Katze"), ("eng", "b")]
    assert [(one.language, one.text) for one in made(columns).sentences] == sentences
    for texts, languages, kinds in (
        (["a", "b"], "fr", ["fra", "fra"]),
        (["a", "b"], ["fr", "kor"], ["fra", "kor"]),
        ([("a", "b")], ["fr", "kor"], ["fra", "kor"]),
        (["a", "b"], None, ["language unknown"] * 2),
    ):
        assert [one.kind for one in made(texts, languages=languages).sentences] == kinds
    found = made(["a", "b"], languages=["fr", "kor"], labels=[0, 1]).sentences
    assert [(one.language, one.kind) for one in found] == [("fra", "0"), ("kor", "1")]
    assert {one.group for one in made(["a", "b"]).sentences} == {""}
    groups = [Group(("a", "b"), ("eng", "deu"), extras={"label": 2.0, "span": (1.0, 2.5)})]
    for color, kinds in (("language", ["eng", "deu"]), ("label", ["2", "2"]), ("span", ["1 2.5", "1 2.5"])):
        assert [one.kind for one in made(groups, color=color).sentences] == kinds
    with pytest.raises(EvaluationError, match="label, span"):
        made(groups, color="topic")


@pytest.mark.parametrize(
    ("texts", "settings", "error"),
    [
        ("a sentence", {}, TypeError),
        ([("a", 3)], {}, TypeError),
        ({"en": ["a"], "de": []}, {}, ValueError),
        (["a", "b", "c"], {"languages": ["en", "de"]}, ValueError),
        ([("a", "b")], {"languages": ["en", "de", "fr"]}, CorpusError),
        (["a"], {"languages": "english"}, CorpusError),
        (["a"], {"labels": ["x", "y"]}, EvaluationError),
        (["a"], {"output": "map.gif"}, EvaluationError),
        ([], {}, EvaluationError),
        (["a"], {"limit": 0}, ValueError),
        ([("a", "b")], {"limit": 1}, EvaluationError),
    ],
)
def test_wrong_texts_are_refused(texts, settings, error):
    with pytest.raises(error):
        made(texts, **settings)


def test_what_is_accepted_as_a_model(toy_static, tmp_path):
    class Other:
        encode = staticmethod(numbers)

    texts = ["one", "banana", "three", "four"]
    expected = made(texts).places
    np.testing.assert_array_equal(isoglot.plot(Other(), texts, method="pca").places, expected)
    np.testing.assert_array_equal(isoglot.plot(numbers(texts), texts, method="pca").places, expected)
    toy_static.save(tmp_path / "model")
    by_name = isoglot.plot(tmp_path / "model", texts, method="pca")
    np.testing.assert_array_equal(by_name.places, isoglot.plot(toy_static, texts, method="pca").places)
    assert by_name.title == f"Sentence map: {tmp_path / 'model'}"
    with pytest.raises(TypeError):
        isoglot.plot(3, texts)
    for wrong in (numbers(texts[:2]), lambda texts: np.zeros(3)):
        with pytest.raises(ValueError, match="shape"):
            isoglot.plot(wrong, texts)


def test_given_vectors_are_sampled_with_their_sentences():
    texts = [(f"a{number}",) * (1 + number % 3) for number in range(30)]
    flat = [text for entry in texts for text in entry]
    every = np.array([[float(text[1:]), 1.0] for text in flat])
    encode = lambda some: np.array([[float(t[1:]), 1.0] for t in some])  # noqa: E731
    by_function = isoglot.plot(encode, texts, method="pca", limit=20)
    given = isoglot.plot(every, texts, method="pca", limit=20)
    np.testing.assert_array_equal(given.places, by_function.places)
    assert given.sentences == by_function.sentences
    assert "sampled with seed 0" in given.note


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
    chosen = choose(iter(groups), limit=90, seed=7)
    assert [(number, int(group.key)) for number, _, group in chosen.groups] == [(at, at) for at in sorted(taken)]
    assert chosen.words == f"{90 - room} of {sizes.sum()} sentences, sampled with seed 7"
    assert choose(groups, limit=90, seed=8).groups != chosen.groups
    assert choose(GROUPS).words == "60 sentences"


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_projections_are_framed_repeatable_and_keep_clusters(method):
    laid = project(VECTORS, method)
    assert laid.shape == (60, 2)
    assert laid.min() >= 0
    assert np.ptp(laid, axis=0).max() == pytest.approx(1, abs=1e-4)
    np.testing.assert_array_equal(project(VECTORS.copy(), method), laid)
    # The seven groups after the eighth have no direction of their own.
    distances = np.linalg.norm(laid[:32, None] - laid[None, :32], axis=2)
    own = np.equal.outer(np.arange(32) // 4, np.arange(32) // 4)
    assert distances[own].mean() < 0.5 * distances[~own].mean()


@pytest.mark.slow
def test_umap():
    pytest.importorskip("umap")
    np.testing.assert_array_equal(project(VECTORS, "umap"), project(VECTORS, "umap"))


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(
    "vectors",
    [np.ones((1, 3)), np.eye(2), np.zeros((7, 3)), np.ones((4, 1)), np.eye(3, 1), np.arange(8.0)[:, None]],
    ids=["one", "two", "zeros", "equal", "narrow", "line"],
)
def test_small_and_degenerate_input_is_projected(method, vectors):
    laid = project(vectors, method)
    assert laid.shape == (len(vectors), 2)
    assert np.isfinite(laid).all()


def test_projections_are_refused(monkeypatch):
    with pytest.raises(EvaluationError, match="'tsn'; did you mean 'tsne'"):
        project(VECTORS, "tsn")
    with pytest.raises(EvaluationError, match="sentence 2"):
        project(np.array([[1.0, 0], [np.nan, 1]]), "pca")
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"isoglot\[umap\]"):
        project(VECTORS, "umap")


SLOW = [pytest.param(ending, marks=pytest.mark.slow) for ending in (".png", ".pdf", ".HTML")]


@pytest.mark.parametrize("ending", [".svg", ".html", *SLOW])
def test_files_are_the_same_on_rerun(tmp_path, ending):
    paths = [tmp_path / f"{name}{ending}" for name in "ab"]
    for path in paths:
        isoglot.plot(VECTORS, GROUPS, method="pca", title="A $map$ of <b>", output=path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].stat().st_size > 3000
    assert sorted(tmp_path.iterdir()) == paths


def test_a_long_note_stays_in_the_picture():
    sentences = made(["a", "b", "c"]).sentences
    with draw(sentences, np.eye(3, 2), title="A map", note="Neighbourhoods are meaningful. " * 5) as (figure, _):
        figure.draw_without_rendering()
        title, note = (text.get_window_extent() for text in figure.texts)
        assert note.x1 <= figure.bbox.x1
        assert figure.axes[0].bbox.y1 < note.y0 < note.y1 < title.y0


def test_a_notebook_shows_the_map():
    shown = isoglot.plot(VECTORS[:8], GROUPS[:2], method="pca", title='"<b>')._repr_html_()
    assert re.fullmatch(r'<img alt="&quot;&lt;b&gt;" src="data:image/png;base64,[\w+/=]+">', shown)


def test_svg_is_well_formed_and_keeps_text(tmp_path):
    isoglot.plot(VECTORS, GROUPS, method="pca", title="A $map$ of <b>", output=tmp_path / "map.svg")
    found = words((tmp_path / "map.svg").read_bytes())
    assert "A $map$ of <b>" in found
    assert {"eng English", "ara Arabic", "zho_Hans Chinese (Simplified)", "tha Thai"} <= {*found}


@pytest.mark.parametrize("count", [11, 12])
def test_of_many_languages_the_codes_are_in_the_map(count):
    """Up to as many as there are markers each has its own; of more, each group has its own colour or weight."""
    codes = [f"l{place:02}" for place in range(count)]
    sentences = [Sentence("x", code, str(group), code) for group in range(9) for code in codes]
    places = np.random.default_rng(0).random((len(sentences), 2))
    with draw(sentences, places) as (figure, shares):
        texts = [text for text in figure.axes[0].texts if text.get_text() in codes]
        markers = {(line.get_marker(), line.get_color()) for line in figure.axes[0].lines}
        assert (len(texts), len(markers)) == ((0, 11) if count == 11 else (9 * 12, 0))
        styles = {(text.get_color(), text.get_weight()) for text in texts}
        assert len(styles) == (0 if count == 11 else 9)
        assert shares.min() > 0
        assert shares.max() < 1
        np.testing.assert_array_equal(np.argsort(shares[:, 0]), np.argsort(places[:, 0]))


def test_the_interactive_figure_holds_every_sentence_and_joins_groups():
    figure = isoglot.plot(VECTORS, GROUPS, method="pca").figure()
    marks = [trace for trace in figure.data if trace.mode == "markers"]
    rays = [trace for trace in figure.data if trace.mode == "lines"]
    assert [trace.name for trace in marks] == ["eng English", "ara Arabic", "zho_Hans Chinese (Simplified)", "tha Thai"]
    assert sum(len(trace.x) for trace in marks) == 60
    assert sum(len(trace.x) for trace in rays) == 3 * 60
    assert [trace.legendgroup for trace in marks] == [trace.legendgroup for trace in rays]  # hidden together
    hover = marks[1].hovertext[3]
    assert hover.startswith("<b>ara Arabic</b> " + TEXTS["ara"] + " 3")
    assert "&lt;script&gt;" in hover  # a translation
    alone = isoglot.plot(VECTORS[:1], ["x"], method="pca").figure()
    assert [len(trace.x) for trace in alone.data if trace.mode == "lines"] == [0]


def test_html_fetches_nothing_and_sentences_stay_text(tmp_path):
    isoglot.plot(VECTORS, GROUPS, method="pca", title="</title><script>", output=tmp_path / "map.html")
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<title>&lt;/title&gt;&lt;script&gt;</title>" in page
    assert "\x00" not in page
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", page)
    assert "default-src 'none'" in page
    facts = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page))
    assert facts["data"] == "60 sentences, eng English, ara Arabic, zho_Hans Chinese (Simplified), tha Thai"
    assert facts["made"].endswith(f"isoglot {isoglot.__version__}")


def test_all_that_is_missing_is_named_before_the_work(monkeypatch, tmp_path):
    places = isoglot.plot(VECTORS, GROUPS, method="pca")
    for package in ("plotly", "plotly.graph_objects", "sklearn", "umap", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, package, None)
    for call in (places.figure, lambda: places.save(tmp_path / "map.html")):
        with pytest.raises(MissingExtraError, match=r"^plotly .*isoglot\[plot\]"):
            call()
    for call in (places._repr_html_, lambda: places.save(tmp_path / "map.png")):
        with pytest.raises(MissingExtraError, match=r"^matplotlib .*isoglot\[evaluate\]"):
            call()
    for method, packages in (
        ("pca", r"sklearn and plotly .*isoglot\[evaluate,plot\]"),
        ("umap", r"umap and plotly .*\[plot,umap\]"),
    ):
        with pytest.raises(MissingExtraError, match=f"^{packages}"):
            isoglot.plot(pytest.fail, GROUPS, method=method, output=tmp_path / "map.html")
    assert not list(tmp_path.iterdir())


PROBE = """<script>
setTimeout(() => {
  const plot = document.getElementById("map"), find = document.getElementById("find");
  const marks = plot.data.filter((trace) => trace.mode === "markers");
  find.value = "苹果 7";
  find.dispatchEvent(new Event("input"));
  const near = marks.flatMap((trace) => trace.marker.opacity).filter((value) => value === 1).length;
  const drawn = document.querySelectorAll("#map .points path").length;
  const wide = document.documentElement.scrollWidth, width = document.documentElement.clientWidth;
  Plotly.Fx.hover(plot, [{ curveNumber: 3, pointNumber: 2 }]);
  const hover = [...document.querySelectorAll("#map .hoverlayer text")].map((text) => text.textContent).join("\\n");
  const found = JSON.stringify({ near, drawn, wide, width, hover }).replaceAll("<", "&lt;");
  parent.document.documentElement.innerHTML = "<pre>" + found + "</pre>";
}, 1500);
</script>"""


@pytest.mark.slow
def test_in_a_browser_it_draws_searches_shows_and_fits_a_phone(tmp_path, browser):
    isoglot.plot(VECTORS, GROUPS, method="pca", output=tmp_path / "plain.html")
    page = (tmp_path / "plain.html").read_text(encoding="utf-8")
    inner = html.escape(page.replace("</body>\n</html>", f"{PROBE}</body></html>"))
    frame = f'<iframe width="390" height="800" srcdoc="{inner}">'
    (tmp_path / "map.html").write_text(f'<!DOCTYPE html><meta charset="utf-8">{frame}', encoding="utf-8")
    shown = browser((tmp_path / "map.html").as_uri())
    found = json.loads(html.unescape(re.search(r"<pre>(.*)</pre>", shown, re.DOTALL)[1]))
    assert found["drawn"] == 60
    assert found["near"] == 1
    assert TEXTS["ara"] in found["hover"]
    assert "<script>alert(1)</script>" in found["hover"]
    assert 360 < found["width"] <= 390
    assert found["wide"] == found["width"]
