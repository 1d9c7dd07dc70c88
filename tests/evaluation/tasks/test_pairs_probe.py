"""Pairs of sentences: features and choice against loops, the layouts, and the input refused."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from cases import by_last_word, by_text
from cases_classification import pawsx_data, put, xnli_data

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.classification import STRENGTHS
from isoglot.evaluation.tasks.pair_sets import PawsX, Xnli
from isoglot.evaluation.tasks.pairs_probe import PairProbe, features

SHARED = Path(os.environ.get("ISOGLOT_DATA", Path(__file__).parents[4] / "shared" / "data"))
XNLI, PAWSX = PairProbe("xnli", Xnli()), PairProbe("paws-x", PawsX())


def values(scores):
    return {score.subset: score.value for score in scores}


def by_sameness(texts):
    """Vectors in which only the pair tells the label: the same direction for the same last word, whatever it is."""
    return (by_last_word(texts) + 0.3 * by_text(texts)).astype(np.float32)


def test_features_equal_loops():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 5, 3)).astype(np.float32)
    for row, (u, v) in zip(features(first, second), zip(first, second, strict=True), strict=True):
        expected = [
            *u,
            *v,
            *(abs(a - b) for a, b in zip(u, v, strict=True)),
            *(a * b for a, b in zip(u, v, strict=True)),
        ]
        assert row.tolist() == expected


def probe_in_loops(train, gold, groups, test):
    """Every strength tried on the groups drawn apart, the first best one refitted on everything."""
    from sklearn.linear_model import LogisticRegression

    names = np.unique(groups)
    apart_names = set(names[np.random.RandomState(0).permutation(len(names))[: int(np.ceil(0.2 * len(names)))]])
    apart = np.array([group in apart_names for group in groups])
    best = (-1.0, None)
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=200).fit(train[~apart], gold[~apart])
        right = sum(int(p == g) for p, g in zip(model.predict(train[apart]), gold[apart], strict=True)) / apart.sum()
        if right > best[0]:
            best = (right, strength)
    return LogisticRegression(C=best[1], max_iter=200).fit(train, gold).predict(test)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_xnli_equals_the_protocol_in_loops(tmp_path):
    xnli_data(tmp_path, codes=("en", "de"), premises=60)

    def encode(texts):
        return (by_last_word(texts) + 3 * by_text(texts)).astype(np.float32)

    def table(split, code):
        pairs = Xnli().read(tmp_path, code, split=split, where="t")
        rows = []
        for one, two in zip(encode(pairs.firsts), encode(pairs.seconds), strict=True):
            rows.append(np.concatenate([one, two, abs(one - two), one * two]))
        return np.array(rows), np.array([sorted(set(pairs.labels)).index(x) for x in pairs.labels]), pairs.firsts

    (train, gold, groups), (test, expected, _) = table("dev", "en"), table("test", "de")
    right = probe_in_loops(train, gold, np.array(groups), test) == expected
    scores = XNLI.run(encode, tmp_path, languages=["de"])
    assert 0.4 < values(scores)["de"] == pytest.approx(right.mean())
    assert scores[0].items.tolist() == right.tolist()


def test_paws_x_is_told_by_comparison_where_no_side_tells(tmp_path):
    pawsx_data(tmp_path)
    found = values(PAWSX.run(by_sameness, tmp_path))
    assert found["de"] == found["ko"] == found["mean"] == 1


def test_a_label_that_is_wrong_is_the_mistake_with_both_sentences(tmp_path):
    pawsx_data(tmp_path)
    path = tmp_path / "test-de.tsv"
    lines = path.read_text().splitlines()
    first, second, label = lines[6].split("\t")
    put(path, [*lines[:6], f"{first}\t{second}\t{1 - int(label)}", *lines[7:]])
    scores = {score.subset: score for score in PAWSX.run(by_sameness, tmp_path)}
    (detail,) = scores["de"].details
    assert detail.kind == "mistakes"
    assert detail.columns == ("sentence 1", "sentence 2", "gold", "predicted", "probability")
    assert [row[:4] for row in detail.rows] == [(first, second, "1", "0")]
    assert 0.5 < detail.rows[0][4] <= 1
    assert scores["ko"].details == scores["en"].details == scores["mean"].details == ()


def test_of_many_mistakes_the_ten_most_confident_are_kept(tmp_path):
    xnli_data(tmp_path, codes=("en", "de"))
    score = XNLI.run(by_text, tmp_path, languages=["de"])[0]
    pairs = Xnli().read(tmp_path, "de", split="test", where="t")
    rows = list(zip(pairs.firsts, pairs.seconds, pairs.labels, strict=True))
    wrong = {row for row, right in zip(rows, score.items, strict=True) if not right}
    (detail,) = score.details
    assert len(detail.rows) == 10 < len(wrong)
    assert {row[:3] for row in detail.rows} <= wrong
    assert all(row[2] != row[3] for row in detail.rows)
    certainty = [row[4] for row in detail.rows]
    assert certainty == sorted(certainty, reverse=True)


def test_labels_beside_the_file_or_in_it_give_the_same(tmp_path):
    xnli_data(tmp_path, codes=("en", "de"), premises=20)
    before = XNLI.run(by_text, tmp_path)
    labels = (tmp_path / "labels.test.txt").read_text().split()
    for code in ("en", "de"):
        lines = (tmp_path / f"test-{code}.tsv").read_text().splitlines()
        put(tmp_path / f"test-{code}.tsv", (f"{line}\t{label}" for line, label in zip(lines, labels, strict=True)))
    (tmp_path / "labels.test.txt").unlink()
    assert before == XNLI.run(by_text, tmp_path)
    assert before[0].subset == "de"


def test_layouts_of_paws_x(tmp_path):
    pawsx_data(tmp_path / "plain", codes=("en", "de"), pairs=40)
    expected = PAWSX.run(by_text, tmp_path / "plain")
    for code in ("en", "de"):
        for split, name in (("dev", f"x-final/{code}/dev_2k.tsv"), ("test", f"x-final/{code}/test_2k.tsv")):
            lines = (tmp_path / "plain" / f"{split}-{code}.tsv").read_text().splitlines()
            numbered = [f"{i}\t{line}" for i, line in enumerate(lines)]
            put(tmp_path / "original" / name, ["id\tsentence1\tsentence2\tlabel", *numbered])
            put(tmp_path / "bare" / "xtreme-pawsx" / f"{split}-{code}.tsv", lines if split == "dev" else bare(lines))
        put(tmp_path / "bare/xtreme-pawsx/gold" / f"test.{code}.tsv", ["id\tsentence1\tsentence2\tlabel", *numbered])
    for folder in ("original", "bare"):
        assert PAWSX.run(by_text, tmp_path / folder) == expected


def bare(lines):
    return [line.rpartition("\t")[0] for line in lines]


def test_a_test_split_without_labels_is_no_subset(tmp_path):
    pawsx_data(tmp_path)
    put(tmp_path / "test-ko.tsv", bare((tmp_path / "test-ko.tsv").read_text().splitlines()))
    assert PAWSX.subsets(tmp_path) == ("de", "en")


def test_the_average_of_xtreme_is_given_when_all_languages_are_there(tmp_path):
    pawsx_data(tmp_path, codes=("de", "en", "es", "fr", "ja", "ko", "zh"), pairs=20)
    (seven,) = [score for score in PAWSX.run(by_text, tmp_path) if score.subset == "xtreme-7"]
    assert seven.n == 7
    assert "xtreme-7" not in values(PAWSX.run(by_text, tmp_path, languages=["de", "en"]))


def test_without_english_to_learn_from_there_is_no_subset(tmp_path):
    pawsx_data(tmp_path)
    (tmp_path / "dev-en.tsv").unlink()
    assert PAWSX.subsets(tmp_path) == ()
    assert PAWSX.run(by_text, tmp_path) == []


@pytest.mark.parametrize(
    ("task", "file", "lines", "message"),
    [
        (PAWSX, "test-de.tsv", ["a\tb\t2"], r"paws-x de, split test: .*test-de.tsv:1: the label '2' is none of 0, 1"),
        (PAWSX, "test-de.tsv", ["a\tb\t1", "a\tb"], r"test-de.tsv:2: 2 cells"),
        (PAWSX, "test-de.tsv", ["a\tb\t1", " \tb\t1"], r"test-de.tsv:2: a sentence is empty"),
        (PAWSX, "test-de.tsv", ["a\tb\t1\r"], r"test-de.tsv:1: .*carriage return"),
        (PAWSX, "test-de.tsv", ["n\ta\tb\t1"], r"test-de.tsv:1: expected two sentences and a label, or the header"),
        (PAWSX, "dev-en.tsv", ["a\tb\t1"], r"paws-x en, split dev: no pair has the label '0'"),
        (XNLI, "labels.test.txt", ["neutral"], r"xnli en, split test: .*240 lines and .*labels.test.txt has 1"),
        (XNLI, "labels.test.txt", ["maybe"] * 240, r"test-en.tsv:1: the label 'maybe' is none of contradiction"),
    ],
)
def test_unusable_files_are_refused(tmp_path, task, file, lines, message):
    (pawsx_data if task is PAWSX else xnli_data)(tmp_path)
    put(tmp_path / file, lines)
    with pytest.raises(EvaluationError, match=message):
        task.run(by_text, tmp_path, languages=["en"] if "test-de" not in file else ["de"])


@pytest.mark.data
def test_the_shared_copies_are_as_documented():
    if not (SHARED / "xtreme-xnli").is_dir():
        pytest.skip(f"{SHARED} has no xtreme-xnli; set ISOGLOT_DATA to a folder that has it")
    assert len(XNLI.subsets(SHARED)) == 15
    assert PAWSX.subsets(SHARED) == ("de", "zh")
    assert len(Xnli().read(SHARED, "sw", split="test", where="t").labels) == 5010
    labels = PawsX().read(SHARED, "zh", split="test", where="t").labels
    assert (len(labels), labels.count("0")) == (2000, 1106)


def test_products_beyond_single_precision_are_refused(tmp_path):
    xnli_data(tmp_path)
    with pytest.raises(EvaluationError, match=r"^xnli en, split dev: .*dev-en.tsv:1: the product of the pair's"):
        XNLI.run(lambda texts: by_text(texts) * 1e30, tmp_path)


def test_a_broken_file_is_told_by_its_task_and_only_if_it_is_needed(tmp_path):
    xnli_data(tmp_path)
    before = values(XNLI.run(by_sameness, tmp_path))
    (tmp_path / "dev-de.tsv").write_bytes(b"")
    assert values(XNLI.run(by_sameness, tmp_path)) == before
    (tmp_path / "test-de.tsv").write_bytes(b"\xff\n")
    with pytest.raises(EvaluationError, match=r"^xnli de, split test: .*test-de.tsv:1: byte 0xff"):
        XNLI.run(by_sameness, tmp_path)
