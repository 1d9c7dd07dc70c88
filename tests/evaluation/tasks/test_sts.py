"""The core of the similarity tasks: correlations against scipy and loops, zero vectors, ties, the table of mistakes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases_sts import cosine_of_gold, export, rows, sts17
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.sts import Pairs, chosen, correlation, joined, judge, mistakes, sides, unit
from isoglot.evaluation.tasks.sts_sets import MULTILINGUAL

STS17 = MULTILINGUAL["sts17"]


def ranks_in_a_loop(values):
    """The mean place, from 1, of each value and its equals among the sorted values."""
    ordered = sorted(values)
    return [
        sum(place for place, other in enumerate(ordered, 1) if other == value) / ordered.count(value)
        for value in values
    ]


def correlation_in_a_loop(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    product = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    return product / math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))


def cosine_in_a_loop(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))
    return product / lengths if lengths else 0.0


def score(items, kind):
    return correlation("sts", "deu", kind, items=np.array(items, np.float32)).value


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-4, 4)), min_size=3, max_size=40))
def test_correlations_equal_scipy_and_the_loop_with_ties(table):
    gold, cosine = [pair[0] for pair in table], [pair[1] / 4 for pair in table]
    assume(len(set(gold)) > 1 and len(set(cosine)) > 1)
    items = np.array([gold, cosine]).T
    assert score(items, "spearman") == pytest.approx(spearmanr(gold, cosine).statistic, abs=1e-12)
    assert score(items, "pearson") == pytest.approx(pearsonr(gold, cosine).statistic, abs=1e-7)
    loop = correlation_in_a_loop(ranks_in_a_loop(gold), ranks_in_a_loop(cosine))
    assert score(items, "spearman") == pytest.approx(loop, abs=1e-12)


def test_a_run_equals_the_protocol_in_a_loop(tmp_path):
    generator = np.random.default_rng(3)
    table = [(f"left {i}", f"right {i}", int(generator.integers(0, 6))) for i in range(60)]
    vectors = {text: generator.standard_normal(8).astype(np.float32) for row in table for text in row[:2]}
    export(tmp_path / "sts17-crosslingual-sts/en-de", table)
    scores = STS17.run(lambda texts: np.array([vectors[text] for text in texts]), tmp_path)
    cosines = [cosine_in_a_loop(vectors[a].tolist(), vectors[b].tolist()) for a, b, _ in table]
    gold = [row[2] for row in table]
    found = {one.metric: one for one in scores if one.subset == "deu-eng"}
    loop = correlation_in_a_loop(ranks_in_a_loop(gold), ranks_in_a_loop(cosines))
    assert found["spearman"].value == pytest.approx(loop, abs=1e-12)
    assert found["pearson"].value == pytest.approx(correlation_in_a_loop(gold, cosines), abs=1e-6)
    assert found["spearman"].items[:, 0].tolist() == gold
    assert found["spearman"].items[:, 1] == pytest.approx(cosines, abs=1e-6)


def judged(first, second, gold):
    texts = tuple(map(str, range(len(gold))))
    table = {"a": np.array(first, np.float32), "b": np.array(second, np.float32)}
    answers = iter(table.values())
    pairs = Pairs((texts, texts), tuple(gold), tuple(f"x:{text}" for text in texts))
    return judge(lambda _: next(answers), pairs, where="sts deu", languages=("deu", "deu"))


def test_the_cosine_of_a_zero_vector_is_zero():
    items = judged([[0, 0], [1, 1], [0, 0]], [[1, 2], [1, 1], [0, 0]], [0, 5, 1])
    assert items[:, 1].tolist() == [0, 1, 0]


def test_equal_sentences_tie_at_one_whatever_their_vector():
    vectors = np.random.default_rng(0).standard_normal((500, 37)) * 10.0 ** np.arange(-20, 20, 0.08)[:, None]
    items = judged(vectors, vectors, [*range(499), 1])
    assert set(items[:, 1].tolist()) == {1.0}
    assert score(items, "spearman") == 0


def test_sentences_that_have_nothing_in_common_tie_at_zero_though_vectors_are_rounded():
    rng = np.random.default_rng(1)
    pairs = []
    while len(pairs) < 200:  # as bags of hashed words with signs are: integers, of which many are orthogonal
        one, other = rng.integers(-2, 3, (2, 24))
        if (one @ other == 0) == (len(pairs) < 50) and one.any() and other.any():
            pairs.append((one, other))
    one, other = (np.array(side) for side in zip(*pairs, strict=True))
    single = [(side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in (one, other)]
    gold = rng.integers(0, 6, 200)
    items = judged(*single, gold)
    assert (items[:50, 1] == 0).all()
    assert not np.signbit(items[:50, 1]).any()
    exact = (one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    assert score(items, "spearman") == pytest.approx(spearmanr(gold, exact.round(12)).statistic, abs=1e-12)


def test_lengths_of_vectors_do_not_count_even_extreme_ones():
    rows_ = np.array([[3e-30, 4e-30], [3e37, 4e37], [0, 0], [-3, 4]])
    assert unit(rows_) == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0], [-0.6, 0.8]]))


@pytest.mark.parametrize("gold", [(), (3.0,), (2.0, 2.0, 2.0)])
def test_gold_that_does_not_differ_is_refused(gold):
    with pytest.raises(EvaluationError, match=rf"^sts deu: its {len(gold)} labelled pairs have no two different"):
        judged(np.ones((len(gold), 2)), np.ones((len(gold), 2)), gold)


def test_mistakes_are_the_ten_largest_differences_of_rank():
    gold = np.arange(20.0)
    cosine = gold / 20
    cosine[[2, 17]] = cosine[[17, 2]]
    cosine[[5, 9]] = cosine[[9, 5]]
    pairs = Pairs((tuple(f"a{i}" for i in range(20)), tuple("b" * 500 for i in range(20))), tuple(gold), ("",) * 20)
    detail = mistakes(pairs, np.stack([gold, cosine], 1).astype(np.float32))
    assert (detail.kind, len(detail.rows)) == ("mistakes", 10)
    assert detail.columns == ("sentence 1", "sentence 2", "gold", "cosine", "rank difference")
    assert [row[0] for row in detail.rows[:5]] == ["a2", "a17", "a5", "a9", "a0"]
    assert [row[4] for row in detail.rows[:5]] == [0.75, -0.75, 0.2, -0.2, 0]
    assert detail.rows[0][2:4] == (2.0, pytest.approx(0.85))
    assert len(detail.rows[0][1]) == 300


def test_only_spearman_shows_mistakes(tmp_path):
    sts17(tmp_path, ["en-de"], 12)
    shown = {one.metric: len(one.details) for one in STS17.run(cosine_of_gold, tmp_path) if not one.over}
    assert shown == {"spearman": 1, "pearson": 0}


def test_a_model_turned_round_scores_minus_one(tmp_path):
    sts17(tmp_path, ["ko-ko"], 30)

    def worst(texts):
        return cosine_of_gold(
            [f"{t.rsplit(' ', 1)[0]} {5 - float(t.split()[-1])}" if "right" in t else t for t in texts]
        )

    values = {one.metric: one.value for one in STS17.run(worst, tmp_path)}
    assert values == {"spearman": pytest.approx(-1), "pearson": pytest.approx(-1)}


def test_languages_of_a_subset():
    assert [sides(name) for name in ("deu", "deu-eng", "spa-eng-4b")] == [("deu",) * 2, ("deu", "eng"), ("spa", "eng")]
    every = dict.fromkeys(("eng-eng", "deu-eng", "deu-fra", "zho", "zho-eng"))
    assert chosen(every, ()) == tuple(every)
    assert chosen(every, ["de"]) == ("deu-eng",)
    assert chosen(every, ["en"]) == ("eng-eng",)
    assert chosen(every, ["fr", "de"]) == ("deu-eng", "deu-fra")
    assert chosen(every, ["zho_Hans"]) == ("zho", "zho-eng")


def test_joined_keeps_order():
    parts = [Pairs((("a",), ("b",)), (1.0,), ("x:1",)), Pairs((("c", "d"), ("e", "f")), (2.0, 3.0), ("y:1", "y:3"))]
    assert joined(parts) == Pairs((("a", "c", "d"), ("b", "e", "f")), (1.0, 2.0, 3.0), ("x:1", "y:1", "y:3"))


def test_rows_of_the_cases_are_what_they_say():
    assert cosine_of_gold([rows("x", 6)[3][1]])[0].tolist() == pytest.approx([0.6, 0.8])
