"""The page: it stands alone, nothing of the data becomes markup, and its numbers are those of the scores."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from page_results import Score, cells, one, small

from isoglot.cli import report as command
from isoglot.errors import CorpusError, EvaluationError
from isoglot.evaluation.base import Detail
from isoglot.report.page import page, write_page
from isoglot.report.page.facts import Table, bar, change, is_seen, labels
from isoglot.report.page.markup import element, text
from isoglot.report.scores import Results, write_results

VOID = {"meta", "input", "wbr"}


class Reader(HTMLParser):
    """Elements of a document, and whether every one is closed in its turn."""

    def __init__(self, document):
        super().__init__()
        self.open, self.elements, self.words = [], [], []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (tag, names)
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)


@pytest.fixture(scope="module")
def models():
    return [one(rows=10), one("runs/second/model", seed=1, lift=0.1, rows=10)]


@pytest.fixture(scope="module")
def document(models):
    return page(models, seen=["de", "fr", "es", "ru", "zh"])


def test_the_document_is_whole(document):
    reader = Reader(document)
    ids = Counter(attributes["id"] for _, attributes in reader.elements if "id" in attributes)
    assert max(ids.values()) == 1
    links = [attributes["href"] for _, attributes in reader.elements if "href" in attributes]
    assert all(link.removeprefix("#") in ids for link in links if link.startswith("#"))
    assert {"summary", "languages", "alignment", "similarity", "maps", "mistakes", "hits", "scores", "settings"} <= {
        *ids
    }


def test_nothing_is_fetched(document):
    for tag, attributes in Reader(document).elements:
        assert "src" not in attributes, tag
        assert tag not in ("link", "iframe", "object", "base")
        assert attributes.get("href", "#").startswith(("#", "data:image/png;base64,"))
    assert "://" not in document
    assert "@import" not in document
    assert re.findall(r"url\([^#]", document) == []
    assert "default-src &#x27;none&#x27;" in document


@pytest.mark.slow
def test_it_is_small_and_never_changes(models, document):
    assert len(document.encode()) < 2_000_000
    assert page(models, seen=["de", "fr", "es", "ru", "zh"]) == document


HOSTILE = '<script>alert(1)</script></style><!-- " \' & \x00 \x1b \ud800 $x$ id="y" 你好'


def test_nothing_of_the_data_becomes_markup():
    details = (
        Detail("mistakes", (HOSTILE, "n"), ((HOSTILE, 1), (HOSTILE, 2.5))),
        Detail(
            "map",
            ("group", "language", "x", "y", "text"),
            ((HOSTILE, HOSTILE, 0, 0, HOSTILE), (HOSTILE, "eng", 1, 1, "a")),
        ),
        Detail("similarity", ("language", HOSTILE, "b"), ((HOSTILE, 1.0, 0.0), ("b", 0.0, 1.0))),
    )
    subsets = [Score(HOSTILE, name, HOSTILE, 0.5, 10, details=details) for name in (HOSTILE, "deu-eng")]
    plane = [Score("alignment", HOSTILE, metric, 0.5, 10) for metric in ("alignment", "uniformity")]
    results = [Results(name, {HOSTILE: HOSTILE}, (*subsets, *plane)) for name in (HOSTILE, "other")]
    document = page(results, seen=["de"], title=HOSTILE)
    document.encode()
    reader = Reader(document)
    assert Counter(tag for tag, _ in reader.elements)["script"] == 1
    assert Counter(tag for tag, _ in reader.elements)["style"] == 1
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    shown = '<script>alert(1)</script></style><!-- " \' & \ufffd \ufffd \ufffd $x$ id="y" 你好'
    assert "".join(reader.words).count(shown) > 10


def test_elements_escape_their_attributes():
    assert element("p", text("<b>"), class_='"x"', aria_label=None) == '<p class="&quot;x&quot;">&lt;b&gt;</p>'


def test_the_summary_compares_with_the_first_model():
    def result(name, *values):
        rows = zip(("tatoeba", "xsim"), ("accuracy/mean", "error/ratio"), values, strict=True)
        return Results(name, {}, tuple(Score(task, "mean", metric, value, 3, ("x",)) for task, metric, value in rows))

    rows = cells(document := page([result("a", 0.5, 0.031), result("b", 0.5238, 0.04)]), "summary")
    assert rows[0] == ["task", "subset", "a", "b", "n"]
    assert rows[1] == ["tatoeba accuracy/mean", "mean of x", "50.0", "52.4 +2.4", "3"]
    assert rows[2] == ["xsim error/ratio ↓", "mean of x", "3.1", "4.0 +0.9", "3"]
    assert re.findall(r"<b>([\d.]+)</b>", document.split('id="summary"')[1].split("</section>")[0]) == ["52.4", "3.1"]


def test_different_data_are_not_compared():
    results = [
        small(name, Score("tatoeba", "mean", "accuracy/mean", 0.5, n, ("x",))) for name, n in (("a", 3), ("b", 4))
    ]
    row = cells(page(results), "summary")[1]
    assert row == ["tatoeba accuracy/mean", "mean of x", "50.0 n 3", "50.0 n 4", "differs"]


def test_a_model_that_lacks_a_task_has_a_dash_and_no_bar():
    first = small("a", *(Score("sts17", code, "spearman", -0.25, 9) for code in ("ara-ara", "kor-kor")))
    document = page([first, small("b")])
    assert ["sts17 spearman", "ara-ara", "−25.0", "–", "9"] in cells(document, "summary")
    assert 'id="languages"' not in document


def test_sections_without_data_are_left_out():
    document = page([small()])
    found = re.findall(r'<section id="(\w+)"', document) or re.findall(r'<section[^>]* id="(\w+)"', document)
    assert found == ["summary", "scores"]


@pytest.mark.parametrize(
    "subset, seen, expected",
    [
        ("deu-eng", ["de"], True),
        ("cmn-eng", ["zh"], True),
        ("cmn-eng", ["zho_Hans"], True),
        ("eng-eng", ["de"], True),
        ("deu-tur", ["de"], False),
        ("spa-eng-4b", ["es"], True),
        ("spa-eng-4b", ["de"], False),
        ("agnews", ["de"], None),
        ("eng-agnews", ["de"], True),
        ("xx-deu", ["de"], True),
        ("xx-tur", ["de"], False),
        ("deu-eng", [], None),
    ],
)
def test_a_subset_is_seen_when_all_its_languages_are(subset, seen, expected):
    assert is_seen(subset, seen) is expected


@pytest.mark.parametrize(
    "models, expected",
    [
        (["runs/a/model", "runs/b/model"], ["a", "b"]),
        (["x", "x"], ["x (1)", "x (2)"]),
        (["runs/a/model"], ["runs/a/model"]),
        (["a/x", "b"], ["a/x", "b"]),
        (["/m/", "/m/"], ["m (1)", "m (2)"]),
    ],
)
def test_models_have_short_names_that_differ(models, expected):
    assert labels([small(model) for model in models]) == expected


def test_the_margin_of_a_change_holds_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        items = [(random.random(300) < share).astype(np.float32) for share in (0.6, 0.7)]
        pair = [Score("t", "deu", "m", float(hits.mean()), 300, items=hits) for hits in items]
        bar = change(Table("t", "m", {"deu": pair}), (pair[0], pair[1]), seen=None)
        inside += abs(bar.value - 10) < bar.margin
    assert 0.92 < inside / 400 < 0.98


def test_no_margin_where_items_are_no_outcomes():
    items = np.ones((4, 2), np.float32)
    pair = [Score("t", "deu", "m", 1, 4, items=items, statistic="spearman")] * 2
    table = Table("t", "m", {"deu": pair[:1]})
    assert change(table, (pair[0], pair[1]), seen=None).margin is bar(table, pair[0], seen=None).margin is None


def test_a_model_alone_has_the_interval_of_its_value():
    hits = np.repeat(np.array([1, 0], np.float32), (80, 20))
    alone = Score("t", "deu", "m", 0.8, 100, items=hits)
    assert bar(Table("t", "m", {"deu": [alone]}), alone, seen=None).margin == pytest.approx(
        100 * 1.96 * 0.0402, rel=1e-3
    )


def test_bars_are_sorted_seen_first_and_best_first(document):
    label = re.search(r'aria-label="(tatoeba, accuracy/mean: second[^"]*)"', document)[1]
    values = [float(value.replace("−", "-")) for value in re.findall(r" ([+−]?[\d.]+)(?:,|$)", label)]
    seen = [is_seen(code, ["deu", "fra", "spa", "rus", "zho"]) for code in re.findall(r", (\w+-eng) ", label)]
    assert sum(seen) == 5
    assert seen == sorted(seen, reverse=True)
    assert all(a >= b for a, b in pairwise(values[5:]))


def test_sentences_have_their_direction_and_language_and_are_limited():
    rows = tuple((f"تنام {place}", place, 0.5) for place in range(30))
    score = Score(
        "sts", "ara", "spearman", 0.5, 30, details=(Detail("mistakes", ("sentence", "line", "cosine"), rows),)
    )
    document = page([small("m", score)])
    assert document.count('<td dir="auto" lang="ar">') == 10
    assert "10 of 30 shown" in document
    pair = Score("t", "ara-eng", "m", 0.5, 30, details=score.details)
    assert '<td dir="auto">' in page([small("m", pair)])


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_page(path, [small()], title="Mine")
    before = path.read_bytes()
    assert before.startswith(b"<!DOCTYPE html>")
    with pytest.raises(EvaluationError, match="no scores"):
        write_page(path, [Results("m", {}, ())])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_reads_results_and_writes_the_page(tmp_path):
    for name in "ab":
        write_results(tmp_path / name, small(name))
    output = tmp_path / "page.html"
    command.run([tmp_path / "a", tmp_path / "b"], output, seen=["de"], title=None)
    assert output.read_text(encoding="utf-8") == page([small("a"), small("b")], seen=["de"])
    command.run([tmp_path / "a"], output, seen=[], title="T")
    assert "<h1>T</h1>" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "detail, message",
    [
        (Detail("similarity", ("language", "a", "b"), (("a", 1.0, 0.5),)), "not 2 by 2 finite numbers"),
        (Detail("similarity", ("language", "a"), (("a", "x"),)), "not 1 by 1 finite numbers"),
        (Detail("map", ("group", "language", "x", "text"), (("1", "eng", 0.0, "t"),)), "no column 'y'"),
    ],
)
def test_details_that_cannot_be_drawn_are_named(detail, message):
    with pytest.raises(EvaluationError, match=f"^tatoeba, deu, m: .*{message}"):
        page([small("m", Score("tatoeba", "deu", "m", 0.5, 1, details=(detail,)))])


def test_an_unknown_language_is_named():
    with pytest.raises(CorpusError, match="'english'"):
        page([small()], seen=["english"])
