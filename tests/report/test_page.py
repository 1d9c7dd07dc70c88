"""The page: it stands alone, nothing of the data becomes markup, and its numbers are those of the scores."""

import re
import sys
from base64 import b64decode
from collections import Counter
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from command_line import as_function
from page_results import FIFTEEN, Score, cells, errors_into, one, small, words

from isoglot import __version__
from isoglot.cli.evaluation import report as report_verb
from isoglot.core.errors import CorpusError, EvaluationError
from isoglot.evaluation.base import Detail
from isoglot.evaluation.scores import Scores, write_results
from isoglot.report import charts
from isoglot.report.html import languages_in
from isoglot.report.page import estimate_margin, is_seen, page, write_page
from isoglot.report.tables import MANY

command = as_function(report_verb)

TEMPLATES = Path(charts.__file__).parent / "templates"
VOID = {"meta", "input", "wbr", "img"}


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


def page_with(detail, *score, **settings):
    """The page of one score, which has a detail."""
    return page([small("m", Score(*(score or ("t", "deu", "m", 0.5, 9)), details=(detail,)))], **settings)


@pytest.fixture(scope="module")
def models():
    codes = "deu fra spa rus cmn sqi jpn yue tha hin kor swe ell"
    return [one(codes=codes), one("runs/second/model", seed=1, lift=0.1, codes=codes)]


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
        assert attributes.get("src", svg := "data:image/svg+xml;base64,").startswith(svg)
        assert tag not in ("link", "iframe", "object", "base")
        assert attributes.get("href", "#").startswith("#")
    assert "://" not in document
    assert "@import" not in document
    assert re.findall(r"url\([^#]", document) == []
    assert "default-src 'none'" in document


@pytest.mark.slow
def test_it_is_small_and_never_changes():
    models = [one(rows=10), one("runs/second/model", seed=1, lift=0.1, rows=10)]
    document = page(models, seen=["de", "fr", "es", "ru", "zh"])
    assert len(document.encode()) < 2_000_000
    assert page(models, seen=["de", "fr", "es", "ru", "zh"]) == document


def test_the_header_says_what_when_with_what_and_by_which_command(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    monkeypatch.setattr(sys, "argv", ["/bin/isoglot", "report", "a folder"])
    older = Scores([Score("sts17", "ara-eng", "spearman", 0.5, 9)], "older", {"version": "0.1.0"})
    document = page([small("m"), older])
    assert "<title>m and older compared on tatoeba, sts17</title>" in document
    facts = re.findall(r"<dt>(.*?)</dt>(.*?)</div>", document)
    assert {label: re.findall("<dd>(.*?)</dd>", lines) for label, lines in facts} == {
        "made": [f"1970-01-02, isoglot {__version__}"],
        "models": ["m", "older · scores of isoglot 0.1.0"],
        "data": ["tatoeba, sts17"],
        "command": ["<code>isoglot report &#39;a folder&#39;</code>"],
    }
    monkeypatch.setattr(sys, "argv", ["/usr/bin/python"])
    alone = page([small("runs/first/model", *(Score(name, "deu", "m", 0.5, 9) for name in "abcd"))])
    assert "command</dt>" not in alone
    assert "<title>runs/first/model on 4 tasks</title>" in alone
    assert "<h1>Mine</h1>" in page([older], title="Mine")


def test_codes_have_the_names_of_their_languages(document):
    assert '<th scope="row">yue-eng <small class="named">Yue Chinese–English</small></th>' in document
    assert '<span>sqi-eng <small class="named">Albanian–English</small></span>' in document  # a bar
    assert '<summary>jpn-eng <small class="named">Japanese–English</small></summary>' in document
    assert '<td class="name">tha <small class="named">Thai</small></td>' in document  # of a sentence in a map
    assert "deu German, fra French" in document  # seen in training
    assert 'hin <small class="named">Hindi</small>, ' in document  # below a heat map
    assert '<th scope="row">biomedical</th>' in document
    mistake = Detail("mistakes", ("sentence", "language", "taken for", "probability"), (("Hej", "dan", "nor", 0.5),))
    for code, name in (("dan", "Danish"), ("nor", "Norwegian")):
        assert f'{code} <small class="named">{name}</small></td>' in page_with(mistake)


@pytest.mark.parametrize(
    ("subset", "names"),
    [
        ("deu", "German"),
        ("kor-kor", "Korean"),
        ("xx-kor", "Korean"),
        ("zho_Hans-eng", "Chinese (Simplified)–English"),
        ("spa-eng-4b", "Spanish–English"),
        *((name, "") for name in ("mean", "mean over ara-bul", "agnews", "", "-", "a-b-c-d-e", "x" * 70)),
    ],
)
def test_the_names_of_a_subset(subset, names):
    assert languages_in(subset) == names


def luminance(colour):
    digits = re.findall("..", colour[1:]) if len(colour) == 7 else [2 * digit for digit in colour[1:]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (int(d, 16) / 255 for d in digits)]
    return float(np.dot((0.2126, 0.7152, 0.0722), linear))


def test_text_can_be_read_in_both_themes():
    """The contrast of WCAG 2, level AA."""
    css = (TEMPLATES / "theme.css").read_text(encoding="utf-8")
    light, dark = (dict(re.findall(r"--(\w+): (#\w+)", part)) for part in css.split("@media"))
    assert light.keys() == dark.keys()
    for theme in (light, dark):
        for ink in ("ink", "quiet", "link", "wrong"):
            for paper in ("paper", "shade"):
                low, high = sorted(luminance(theme[name]) for name in (ink, paper))
                assert (high + 0.05) / (low + 0.05) >= 4.5, (ink, paper)
    pages = [(TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.html", "map.html")]
    assert all('{% include "theme.css" %}' in text and '{% include "header.html" %}' in text for text in pages)


HOSTILE = '<script>alert(1)</script></style><!-- " \' & \x00 \x1b \ud800 $x$ id="y" 你好'


def test_nothing_of_the_data_becomes_markup():
    points = (HOSTILE, HOSTILE, 0, 0, HOSTILE), (HOSTILE, "eng", 1, 1, "a")
    details = (
        Detail("mistakes", (HOSTILE, "n"), ((HOSTILE, 1), (HOSTILE, 2.5))),
        Detail("map", ("group", "language", "x", "y", "text"), points),
        Detail("similarity", ("language", HOSTILE, "b"), ((HOSTILE, 1.0, 0.0), ("b", 0.0, 1.0))),
    )
    scores = [Score(HOSTILE, name, HOSTILE, 0.5, 10) for name in (HOSTILE, "deu-eng")]
    scores += [Score("alignment", HOSTILE, metric, 0.5, 10) for metric in ("alignment", "uniformity")]
    shown = [Score(HOSTILE, HOSTILE, HOSTILE, 0.5, 10, details=details), *scores[1:]]
    results = [Scores(shown, HOSTILE, {HOSTILE: HOSTILE}), Scores(scores, "other", {HOSTILE: HOSTILE})]
    document = page(results, seen=["de"], title=HOSTILE)
    document.encode()
    reader = Reader(document)
    assert [tag for tag, _ in reader.elements if tag in ("script", "style")] == ["style", "script"]
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    shown = '<script>alert(1)</script></style><!-- " \' & \ufffd \ufffd \ufffd $x$ id="y" 你好'
    assert "".join(reader.words).count(shown) > 10
    for picture in pictures(document):
        ElementTree.fromstring(picture)  # well-formed whatever the names are


def pictures(document):
    """The SVG of the page's figures."""
    return [b64decode(source) for source in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', document)]


def bars(document, place=0):
    """The bars of a chart: label, number, whether it is marked as unseen."""
    chart = document.split('class="chart')[1 + place].split("</section>")[0]
    rows = re.findall(
        r'<div role="listitem"[^>]*?( class="unseen")?>\s*<span>(.*?)</span>.*?<span>(.*?)</span>', chart, re.S
    )
    return [(unescape(label.partition(" <small")[0]), number, bool(unseen)) for unseen, label, number in rows]


def test_the_summary_compares_with_the_first_model():
    def result(name, *values):
        rows = zip(("tatoeba", "xsim"), ("accuracy/mean", "error/ratio"), values, strict=True)
        return Scores((Score(task, "mean", metric, value, 3, ("x",)) for task, metric, value in rows), name)

    rows = cells(document := page([result("a", 0.5, 0.031), result("b", 0.5238, 0.04)]), "summary")
    assert rows[0] == ["task", "subset", "a", "b", "n"]
    assert rows[1] == ["tatoeba accuracy/mean", "mean over x", "50.0", "52.4 +2.4", "3 subsets"]
    assert rows[2] == ["xsim error/ratio ↓", "mean over x", "3.10", "4.00 +0.90", "3 subsets"]
    assert re.findall(r"<b>([\d.]+)</b>", document.split('id="summary"')[1].split("</section>")[0]) == ["52.4", "3.10"]


@pytest.mark.slow
def test_the_summary_has_the_averages_that_no_other_is_over_and_each_once():
    same = ("deu-eng", "kor-eng")
    scores = [Score("tatoeba", code, "accuracy/mean", 0.5, 9) for code in same]
    scores += [Score("tatoeba", name, "accuracy/mean", 0.5, 2, same) for name in ("laser-2", "mean")]
    scores += [Score("tatoeba", "first", "accuracy/mean", 0.5, 1, same[:1])]
    rows = cells(page([small("m", *errors_into(FIFTEEN), *scores)]), "summary")[1:]
    assert [row[:2] for row in rows] == [
        ["xsim/x error/ratio ↓", "mean over xx-ara … xx-zho (15)"],
        ["tatoeba accuracy/mean", "laser-2 over deu-eng, kor-eng"],
        ["tatoeba", "first over deu-eng"],
    ]


@pytest.mark.parametrize("subsets, rows", [(8, 8), (9, 6)])
def test_the_summary_has_a_handful_of_subsets_where_there_is_no_average(subsets, rows):
    scores = [Score("sts17", f"s{place}", "spearman", 0.5, 9) for place in range(subsets)]
    found = cells(page([small("m", *scores)]), "summary")[1:]
    assert len(found) == rows
    assert (found[-1][1] == "4 more, below") is (subsets == 9)


@pytest.mark.slow
def test_of_very_many_subsets_there_are_only_averages():
    scores = errors_into(FIFTEEN) + errors_into(FIFTEEN, metric="error/distance")
    assert len(scores) // 2 > MANY
    for several in (False, True):
        document = page([small("m", *scores)] * (1 + several))
        assert len(cells(document, "scores")) == (2 if several else 1) * (1 + 15 + 1)
        assert "210 subsets not shown" in document
        assert all(row[0].startswith(("subset", "xx-", "mean")) for row in cells(document, "scores"))


def test_bars_are_of_the_means_into_each_language_where_there_are_any():
    found = bars(document := page([small("m", *errors_into(FIFTEEN[:4]))]))
    assert '<tr data-subset="xx-ara">' in document  # the language filter hides it, and not the mean of all
    assert re.search(r'<tr>\s*<th scope="row">mean<', document.split('id="scores"')[1])
    assert [row[:2] for row in found] == [
        ("xx-ara", "0.00"),
        ("xx-bul", "1.00"),
        ("xx-deu", "2.00"),
        ("xx-ell", "3.00"),
    ]


def test_all_languages_at_once_have_no_bar_beside_pairs():
    pairs = ("deu-eng", "fra-eng", "deu-fra")
    values = zip((*pairs, "deu-fra-eng"), (0.6, 0.7, 0.8, 0.1), strict=True)
    scores = [Score("map", name, "x", value, 9) for name, value in values]
    document = page([small("m", *scores, Score("map", "mean", "x", 0.7, 3, pairs))])
    assert [label for label, _, _ in bars(document)] == ["deu-fra", "fra-eng", "deu-eng"]
    assert "3 subsets, mean 70.0" in document


def test_one_model_has_a_table_for_each_task_with_its_metrics_side_by_side():
    values = {"alignment": (0.25, 338), "uniformity": (-2.0, 900)}
    scores = [Score("alignment", "eng", metric, *value) for metric, value in values.items()]
    rows = cells(page([small("m", *scores)]), "scores")
    assert rows == [["subset", "alignment ↓", "uniformity ↓", "n"], ["eng", "0.250", "-2.000", "338 / 900"]]


def test_an_empty_setting_is_shown_as_such():
    rows = cells(page([Scores(small(), "m", {"prompt": "", "length": None, "a": False})]), "settings")
    assert rows[1:] == [["prompt", "&#34;&#34;"], ["length", "none"], ["a", "False"]]


def test_sections_without_data_are_left_out():
    first = small("a", *(Score("sts17", code, "spearman", -0.25, 9) for code in ("ara-ara", "kor-kor")))
    document = page([first, small("b")])  # which lacks the task, so no bar shows a change
    assert re.findall(r'<section[^>]* id="(\w+)"', document) == ["summary", "scores"]
    assert ["sts17 spearman", "ara-ara", "-25.0", "–", "9"] in cells(document, "summary")


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
        (["a/x", "b"], ["a/x", "b"]),
        (["/m/", "/m/"], ["m (1)", "m (2)"]),
    ],
)
def test_models_have_short_names_that_differ(models, expected):
    assert cells(page([small(model) for model in models]), "summary")[0][2:-1] == expected


@pytest.mark.slow
def test_the_margin_of_a_change_holds_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        items = [(random.random(300) < share).astype(np.float32) for share in (0.6, 0.7)]
        pair = [Score("t", "deu", "m", float(hits.mean()), 300, items=hits) for hits in items]
        inside += abs(pair[1].value - pair[0].value - 0.1) < estimate_margin(*pair)
    assert 0.92 < inside / 400 < 0.98


def test_no_margin_where_items_are_no_outcomes():
    score = Score("t", "deu", "m", 1, 4, items=np.ones((4, 2), np.float32), statistic="spearman")
    assert estimate_margin(score) is estimate_margin(score, score) is None


def test_changes_by_rounding_are_none():
    """Means of the same errors in another order differ in the last bit."""

    def model(name, errors):
        parts = [Score("t", code, "m", value, 9) for code, value in zip(("deu", "kor", "swh"), errors, strict=True)]
        means = [Score("t", name, "m", sum(errors) / 3, 3, ("deu", "kor", "swh")) for name in ("xx-eng", "xx-fra")]
        return small(name, *parts, *means, Score("t", "mean", "m", sum(errors) / 3, 2, ("xx-eng", "xx-fra")))

    assert sum((0.1, 0.2, 0.3)) != sum((0.3, 0.2, 0.1))
    assert "0 better, 0 worse, 2 equal" in page([model("a", (0.1, 0.2, 0.3)), model("b", (0.3, 0.2, 0.1))])


def test_bars_are_sorted_seen_first_and_best_first(document):
    found = bars(document)
    seen = [is_seen(label, ["deu", "fra", "spa", "rus", "zho"]) for label, _, _ in found]
    assert len(found) == 13
    assert seen == [not unseen for _, _, unseen in found] == sorted(seen, reverse=True)
    assert sum(seen) == 5
    values = [float(number) for _, number, _ in found]
    assert all(a >= b for a, b in pairwise(values[5:]))


def test_bars_lie_on_their_scale():
    chart = page([small("a", *(Score("t", c, "m", v, 9) for c, v in (("deu", 0.5), ("kor", -0.25))))])
    assert re.findall(r'<b style="left: ([\d.]+)%; right: calc\(100% - ([\d.]+)%\)', chart) == [
        ("33.33", "100.00"),
        ("0.00", "33.33"),
    ]


def test_sentences_have_their_direction_and_language_and_are_limited():
    rows = tuple((f"تنام {place}", place, 0.5) for place in range(30))
    detail = Detail("mistakes", ("sentence", "line", "cosine"), rows)
    document = page_with(detail, "sts", "ara", "spearman", 0.5, 30)
    assert document.count('<td dir="auto" lang="ar">') == 10
    assert "10 of 30 shown" in document
    assert '<td dir="auto">' in page_with(detail, "t", "ara-eng", "m", 0.5, 30)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_page(path, [small()])
    before = path.read_bytes()
    assert before.startswith(b"<!DOCTYPE html>")
    with pytest.raises(CorpusError, match="'english'"):
        write_page(path, [small()], seen=["english"])
    with pytest.raises(EvaluationError, match="no scores"):
        write_page(path, [Scores(model="m")])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_the_command_reads_results_and_writes_the_page(tmp_path):
    for name in "ab":
        write_results(tmp_path / name, small(name))
    output = tmp_path / "page.html"
    command([tmp_path / "a", tmp_path / "b"], output, seen=["de"])
    assert output.read_text(encoding="utf-8") == page([small("a"), small("b")], seen=["de"])
    command([tmp_path / "a"], output, title="T")
    assert "<h1>T</h1>" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "detail, message",
    [
        (Detail("similarity", ("language", "a", "b"), (("a", 1.0, 0.5),)), "2 by 2"),
        (Detail("similarity", ("language", "a"), (("a", "x"),)), "1 by 1"),
        (Detail("map", ("group", "language", "x", "text"), (("1", "eng", 0.0, "t"),)), "'y'"),
    ],
)
def test_details_that_cannot_be_drawn_are_named(detail, message):
    with pytest.raises(EvaluationError, match=f"^t, deu, m: .*{message}"):
        page_with(detail)


def similarity_page(values):
    codes = [f"l{place}" for place in range(len(values))]
    rows = tuple((code, *map(float, row)) for code, row in zip(codes, values, strict=True))
    return page_with(Detail("similarity", ("language", *codes), rows))


def test_a_large_heat_map_is_ordered_so_that_similar_rows_are_adjacent():
    family = np.arange(25) % 3
    values = np.where(np.equal.outer(family, family), 0.9, 0.1) + np.random.default_rng(0).random((25, 25)) / 50
    turn = charts.similar_adjacent(values)
    assert sorted(turn) == list(range(25))
    assert sum(a != b for a, b in pairwise(family[turn])) == 2
    (picture,) = pictures(similarity_page(values))
    assert [word for word in words(picture) if word.startswith("l")][:25] == [f"l{place}" for place in turn]


@pytest.mark.parametrize("size, numbers", [(16, 256), (17, 0)])
def test_a_heat_map_has_numbers_as_far_as_there_is_room(size, numbers):
    (picture,) = pictures(similarity_page(np.full((size, size), 0.734)))
    assert words(picture).count(".73") == numbers


def test_figures_never_change_whatever_the_user_has_set():
    spots = [charts.Spot("a", name, -2.0, 0.3, average=name == "mean") for name in ("deu", "tur", "mean")]
    before = charts.alignment_uniformity(spots)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path"}):
        assert charts.alignment_uniformity(spots) == before
        assert matplotlib.rcParams["font.size"] == 30
    picture = b64decode(before.partition(",")[2])
    texts = {e.text: e for e in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")}
    transforms = [texts[name].attrib["transform"] for name in ("deu", "tur", "mean")]
    heights = [float(re.search(r"[ ,](-?[\d.]+)\)", transform)[1]) for transform in transforms]
    assert all(abs(a - b) >= 8 for a, b in pairwise(sorted(heights)))  # names do not cover each other


def test_a_table_of_one_group_is_not_called_by_the_metric_over_all_groups():
    table = Detail("similarity", ("language", "ara", "eng"), (("ara: قطة", 1.0, 0.5), ("eng: cat", 0.5, 1.0)))
    mean = Detail("similarity", table.columns, (("ara", 1.0, 0.5), ("eng", 0.5, 1.0)))
    scores = [
        Score("similarity", "ara-eng", "cosine/min", 0.1, 9, details=(table,)),
        Score("similarity", "mean", "cosine/translations", 0.1, 1, details=(mean,)),
    ]
    document = page([small("m", *scores)])
    assert re.findall("<figcaption>(.*?)</figcaption>", document) == [
        "similarity, ara-eng: cosine within one group of translations",
        "similarity, mean, cosine/translations",
    ]
    assert ["ara", "قطة"] in cells(document, "similarity")  # the code would decide the direction
    assert '<td dir="auto" lang="ar">قطة' in document


def test_a_map_shows_its_sentences_on_hover_and_in_a_list():
    rows = (("1", "deu", 0, 0, "<a>"), ("1", "eng", 1, 1, "b"), ("", "eng", 2, 2, "c"))
    detail = Detail("map", ("group", "language", "x", "y", "text"), rows)
    document = page_with(detail, "map", "deu-eng", "variance/language", 0.1, 9)
    section = document.split('id="maps"')[1].split("</section>")[0]
    assert re.findall("<figcaption>(.*?)</figcaption>", section) == ["map, deu-eng: 3 sentences, 1 groups joined"]
    assert re.findall('title="(.*?)"', section) == ["deu: &lt;a&gt;", "eng: b", "eng: c"]
    spots = [(float(x), float(y)) for x, y in re.findall(r'<i style="left: ([\d.]+)%; top: ([\d.]+)%"', section)]
    assert spots[0][0] < spots[1][0] < spots[2][0]
    assert spots[0][1] > spots[1][1] > spots[2][1]
    assert "&lt;a&gt;</td>" in section
    assert ">c</td>" not in section  # alone in its group


@pytest.mark.parametrize(("kind", "section"), [("mistakes", "mistakes"), ("mining", "tables")])
def test_the_numbers_of_a_column_have_as_many_decimals(kind, section):
    detail = Detail(kind, ("text", "gold", "cosine", "line"), (("a", 5.0, 0.75, 12), ("b", 2.0, -0.12345, 3)))
    assert cells(page_with(detail), section)[1:] == [["a", "5", "0.750", "12"], ["b", "2", "-0.123", "3"]]


def test_of_what_was_found_whole_queries_are_shown():
    rows = tuple((f"query {i // 3}", i % 3 + 1, f"hit {i}", 0.5) for i in range(36))
    document = page_with(Detail("hits", ("query", "rank", "found", "cosine"), rows))
    assert [row[0] for row in cells(document, "hits")[1:]] == [f"query {i}" for i in range(10) for _ in range(3)]
    assert "30 of 36 shown" in document
