"""What averages are over: beside their names, and in a list below the summary."""

from __future__ import annotations

import re
from itertools import combinations, permutations

import pytest
from isoglot.report.page.averages import beside, listed
from page_results import cells, small

from isoglot.evaluation.base import Score
from isoglot.report.page import page

CODES = ["ara", "deu", "eng", "kor"]


def average(over, subset="mean", *, task="t", metric="m"):
    return Score(task, subset, metric, 0.5, len(over), tuple(over))


def lines(*results):
    return [re.sub("<[^>]+>", "", line) for line in re.findall("<p.*?</p>", listed(results))]


@pytest.mark.parametrize(
    "over, words",
    [
        ((), ""),
        (("zh-en",), "of zh-en"),
        (("a", "b", "c"), "of a, b, c"),
        ([f"{code}-eng" for code in ("deu", "fra", "kor", "tur")], "of 4 pairs"),
        ([f"xx-{code}" for code in CODES], "of 4 means"),
        (CODES, "of 4 languages"),
        (["spa-eng-4b", *CODES], "of 5 subsets"),
    ],
)
def test_an_average_says_what_it_is_of(over, words):
    assert beside([average(over)]) == beside([average(over), None, average(over)]) == words


def test_averages_over_different_subsets_do_not_share_words():
    assert beside([average(["a"]), average(["b"])]) == ""
    assert beside([Score("t", "a", "m", 0.5, 9), average(["a"])]) == ""


def test_the_list_has_every_subset_once():
    into = {code: [f"{other}-{code}" for other in CODES if other != code] for code in CODES}
    english = [f"{code}-eng" for code in ("deu", "fra", "kor", "tur")]
    scores = [
        average(english, task="tatoeba"),
        average(english, "xtreme-4", task="tatoeba"),
        *(average([*over, f"fra-{code}"], f"xx-{code}", task="xsim") for code, over in into.items()),
        average([*(f"{code}-fra" for code in CODES)], "xx-fra", task="xsim"),
        average(["-".join(pair) for pair in combinations(CODES, 2)], task="map"),
        average(["-".join(pair) for pair in combinations(CODES, 2)], task="similarity"),
        average(["-".join(pair) for pair in permutations(CODES, 2)], task="all"),
        average(["-".join(pair) for pair in [*combinations(CODES, 2)][:5]], task="some"),
        average(["zh-en"], task="bucc"),
    ]
    assert lines(small("m", *scores)) == [
        "tatoeba mean, tatoeba xtreme-4: 4 pairs into eng, from deu, fra, kor, tur",
        "xsim xx-ara … xsim xx-fra (5 averages): 4 pairs each, into one language from all others of "
        "ara, deu, eng, fra, kor",
        "map mean, similarity mean: all 6 pairs of ara, deu, eng, kor",
        "all mean: all 12 pairs, in both directions, of ara, deu, eng, kor",
        "some mean: 5 pairs: ara-deu, ara-eng, ara-kor, deu-eng, deu-kor",
    ]


def test_models_and_metrics_with_other_subsets_are_told_apart():
    first = small("a", average(["x", "y"]), average(["x", "y"], metric="f1"))
    assert lines(first, small("b", average(["x"]))) == ["t mean (a): 2 subsets: x, y", "t mean (b): 1 subset: x"]
    own = small("a", average(["x", "y"]), average(["x"], metric="f1"))
    assert lines(own) == ["t mean (a m): 2 subsets: x, y", "t mean (a f1): 1 subset: x"]


def test_without_averages_there_is_no_list():
    assert listed([small()]) == listed([small("m", average(["a"]))]) == ""


def test_the_page_has_both():
    over = ["<b>", "deu", "kor", "tur"]
    subsets = [Score("t", subset, "m", 0.5, 9) for subset in over]
    document = page([small("m", *subsets, average(over, "mean"), average(over[:1], "first"))])
    assert "t mean: 4 subsets: &lt;b&gt;, deu, kor, tur" in re.sub("</?b>", "", document)
    assert [row[1] for row in cells(document, "summary")[1:]] == ["mean of 4 subsets", "first of &lt;b&gt;"]
    assert [row[0] for row in cells(document, "scores")[5:]] == ["mean of 4 subsets", "first of &lt;b&gt;"]
