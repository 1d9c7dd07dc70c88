"""What the page shows of results as they are: hundreds of languages, thousands of pairs, metrics of every task."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from page_results import FIFTEEN, Score, cells, errors_into, small

from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Detail, Unit
from isoglot.report.metrics import MANY, main_metrics, scale
from isoglot.report.page import page
from isoglot.report.page.details import order
from isoglot.report.page.facts import called
from isoglot.report.scores import declared


def test_the_summary_has_the_averages_that_no_other_is_over_and_each_once():
    same = ("deu-eng", "kor-eng")
    scores = [Score("tatoeba", code, "accuracy/mean", 0.5, 9) for code in same]
    scores += [Score("tatoeba", name, "accuracy/mean", 0.5, 2, same) for name in ("laser-2", "mean")]
    scores += [Score("tatoeba", "first", "accuracy/mean", 0.5, 1, same[:1])]
    rows = cells(page([small("m", *errors_into(FIFTEEN), *scores)]), "summary")[1:]
    assert [row[:2] for row in rows] == [
        ["xsim/x error/ratio ↓", "mean of 15 means"],
        ["tatoeba accuracy/mean", "laser-2 of deu-eng, kor-eng"],
        ["tatoeba", "first of deu-eng"],
    ]


@pytest.mark.parametrize("subsets, rows", [(8, 8), (9, 6)])
def test_the_summary_has_a_handful_of_subsets_where_there_is_no_average(subsets, rows):
    scores = [Score("sts17", f"s{place}", "spearman", 0.5, 9) for place in range(subsets)]
    found = cells(page([small("m", *scores)]), "summary")[1:]
    assert len(found) == rows
    assert (found[-1][1] == "4 more") is (subsets == 9)


def test_of_very_many_subsets_there_are_only_averages_and_words_that_say_so():
    scores = errors_into(FIFTEEN) + errors_into(FIFTEEN, metric="error/distance")
    assert len(scores) // 2 > MANY
    for several in (False, True):
        document = page([small("m", *scores)] * (1 + several))
        rows = cells(document, "scores")
        assert len(rows) == (2 if several else 1) * (1 + 15 + 1)
        assert "210 subsets: only their averages are shown here" in document
        assert f"all {len(scores) * (1 + several)} scores of this task" in document
        assert "ara-eng" not in document


def test_very_many_subsets_without_an_average_are_cut_off():
    scores = [Score("t", f"s{place}", "m", 0.5, 9) for place in range(MANY + 1)]
    document = page([small("m", *scores)])
    assert len(cells(document, "scores")) == 1 + MANY
    assert "only their averages and first subsets" in document


def test_bars_are_of_the_means_into_each_language_where_there_are_any():
    label = re.search(r'aria-label="(xsim/x, error/ratio[^"]*)"', page([small("m", *errors_into(FIFTEEN[:4]))]))[1]
    assert re.findall(r"(xx-\w+) ([\d.]+)", label) == [
        ("xx-ara", "0.0"), ("xx-bul", "1.0"), ("xx-deu", "2.0"), ("xx-ell", "3.0")
    ]  # fmt: skip
    assert "ara-bul" not in label


def test_all_languages_at_once_have_no_bar_beside_pairs():
    pairs = ("deu-eng", "fra-eng", "deu-fra")
    scores = [
        Score("map", name, "x", value, 9)
        for name, value in zip((*pairs, "deu-fra-eng"), (0.6, 0.7, 0.8, 0.1), strict=True)
    ]
    document = page([small("m", *scores, Score("map", "mean", "x", 0.7, 3, pairs))])
    label = re.search(r'aria-label="(map, x[^"]*)"', document)[1]
    assert re.findall(r"([a-z]{3}-[-a-z]+) ", label) == ["deu-fra", "fra-eng", "deu-eng"]
    assert "3 subsets, mean 70.0" in document


def test_one_model_has_a_table_for_each_task_with_its_metrics_side_by_side():
    values = {"alignment": (0.25, 338), "uniformity": (-2.0, 900)}
    scores = [Score("alignment", "eng", metric, *value) for metric, value in values.items()]
    document = page([small("m", *scores)])
    rows = cells(document, "scores")
    assert rows == [["subset", "alignment ↓", "uniformity ↓", "n"], ["eng", "0.250", "−2.000", "338 / 900"]]
    assert 'id="alignment"' not in document  # one point says no more than its numbers


def test_a_subset_of_many_languages_has_a_short_name():
    assert called("a-b-c-d") == "a-b-c-d"
    assert called("a-b-c-d-e") == "5 languages (a … e)"


def test_in_large_heat_maps_rows_that_are_alike_stand_together():
    family = np.arange(30) % 3
    values = np.where(family[:, None] == family, 0.9, 0.1)
    turn = order(values)
    assert sorted(turn) == list(range(30))
    assert sum(a != b for a, b in pairwise(family[turn])) == 2
    codes = [f"l{place}" for place in range(30)]
    rows = tuple((code, *map(float, row)) for code, row in zip(codes, values, strict=True))
    detail = Detail("similarity", ("language", *codes), rows)
    document = page([small("m", Score("similarity", "mean", "cosine", 0.5, 9, details=(detail,)))])
    label = document.split('id="similarity"')[1].split("</svg>")[0]
    assert re.findall(r">(l\d+)<", label)[:30] == [codes[place] for place in turn]


def captions(document):
    return re.findall("<figcaption>(.*?)</figcaption>", document)


def test_a_table_of_one_group_is_not_called_by_the_metric_over_all_groups():
    table = Detail("similarity", ("language", "ara", "eng"), (("ara: قطة", 1.0, 0.5), ("eng: cat", 0.5, 1.0)))
    mean = Detail("similarity", table.columns, (("ara", 1.0, 0.5), ("eng", 0.5, 1.0)))
    scores = [
        Score("similarity", "ara-eng", "cosine/min", 0.1, 9, details=(table,)),
        Score("similarity", "mean", "cosine/translations", 0.1, 1, details=(mean,)),
    ]
    document = page([small("m", *scores)])
    assert captions(document) == [
        "similarity, ara-eng: cosine within one group of translations",
        "similarity, mean, cosine/translations",
    ]
    assert "cosine/min" not in document.split('id="similarity"')[1].split("</section>")[0]
    assert ["ara", "قطة"] in cells(document, "similarity")  # the code would decide the direction
    assert '<td dir="auto" lang="ar">قطة' in document


def test_a_map_is_called_by_what_is_in_it_and_not_by_a_metric():
    rows = (("1", "deu", 0, 0, "a"), ("1", "eng", 1, 1, "b"), ("", "eng", 2, 2, "c"))
    detail = Detail("map", ("group", "language", "x", "y", "text"), rows)
    score = Score("map", "deu-eng", "variance/language", 0.1, 9, details=(detail,))
    section = page([small("m", score)]).split('id="maps"')[1].split("</section>")[0]
    assert captions(section) == ["map, deu-eng: 3 sentences, 1 groups joined"]
    assert "variance" not in section
    assert "t-SNE" in section


@pytest.mark.parametrize("task", TASKS)
def test_every_task_declares_a_main_metric_and_each_metric_once(task):
    names = [metric.name for metric in TASKS[task].metrics]
    assert any(metric.main for metric in TASKS[task].metrics)
    assert len(set(names)) == len(names)


def test_what_is_better_of_the_analyses():
    names = ("cosine/translations", "cosine/contrast", "alignment", "uniformity")
    tasks = ("similarity", "similarity", "alignment/sts17", "alignment/sts17")
    found = main_metrics(Score(task, "mean", name, 0.5, 9) for task, name in zip(tasks, names, strict=True))
    assert found == {"similarity": ["cosine/contrast"], "alignment/sts17": ["alignment", "uniformity"]}
    lower = {("map", "variance/language"), ("similarity", "cosine/std"), ("xsim/own", "error/ratio")}
    higher = {("map", "variance/meaning"), ("similarity", "cosine/min"), ("tatoeba", "accuracy/mean")}
    assert {key for key in lower | higher if declared(*key).lower_is_better} == lower
    assert [scale(unit) for unit in get_args(Unit)] == [100, 100, 100, 100, 1]


def test_the_numbers_of_a_column_have_as_many_decimals():
    detail = Detail("mistakes", ("text", "gold", "cosine", "line"), (("a", 5.0, 0.75, 12), ("b", 2.0, -0.12345, 3)))
    rows = cells(page([small("m", Score("sts", "deu", "spearman", 0.5, 9, details=(detail,)))]), "mistakes")
    assert rows[1:] == [["a", "5", "0.750", "12"], ["b", "2", "−0.123", "3"]]


def test_other_details_are_the_tables_they_are():
    detail = Detail("mining", ("tuned on", "kept"), (("dev", 7),))
    document = page([small("m", Score("bucc/oracle", "zh-en", "f1", 0.5, 9, details=(detail,)))])
    assert ["dev", "7"] in cells(document, "tables")


def test_of_what_was_found_whole_queries_are_shown():
    rows = tuple((f"query {i // 3}", i % 3 + 1, f"hit {i}", 0.5) for i in range(36))
    detail = Detail("hits", ("query", "rank", "found", "cosine"), rows)
    document = page([small("m", Score("nearest", "corpus", "cosine/1", 0.5, 12, details=(detail,)))])
    found = cells(document, "hits")[1:]
    assert [row[0] for row in found] == [f"query {i}" for i in range(10) for _ in range(3)]
    assert "30 of 36 shown" in document
