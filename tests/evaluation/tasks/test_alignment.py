"""Alignment and uniformity against loops, blocks, what random vectors give, and pooling over sets."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from cases import by_text
from cases_alignment import OTHER, POSITIVE, one_hot, sts17, stsb_dev
from cases_sts import STS17, export
from folders import write
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import hyp0f1

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.alignment import ALIGNMENT, POOLED, alignment, uniformity
from isoglot.evaluation.tasks.sts_sets import EXTENDED_10

SHARED = Path(os.environ.get("ISOGLOT_DATA") or Path(__file__).parents[4] / "shared" / "data")


def unit_in_a_loop(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector] if length else list(vector)


def square_in_a_loop(a, b):
    return sum((x - y) ** 2 for x, y in zip(unit_in_a_loop(a), unit_in_a_loop(b), strict=True))


def uniformity_in_a_loop(rows):
    kernel = [math.exp(-2 * square_in_a_loop(rows[i], rows[j])) for i in range(len(rows)) for j in range(i)]
    return math.log(sum(kernel) / len(kernel))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 25), st.integers(1, 6), st.integers(1, 30), st.integers(0, 99))
def test_both_equal_the_loops_in_blocks_of_any_size(count, dims, block, seed):
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((count, dims)).astype(np.float32)
    rows[generator.integers(count)] = 0
    rows[generator.integers(count)] = rows[0]
    other = generator.standard_normal((count, dims)).astype(np.float32)
    assert uniformity(rows, block=block) == pytest.approx(uniformity_in_a_loop(rows.tolist()), abs=1e-9)
    loop = [square_in_a_loop(a, b) for a, b in zip(rows.tolist(), other.tolist(), strict=True)]
    assert alignment(rows, other) == pytest.approx(loop, abs=1e-12)


def test_a_mean_of_batches_is_something_else():
    rows = np.array([[1, 0], [1, 0], [-1, 0], [-1, 0]])
    assert uniformity(rows) != pytest.approx((uniformity(rows[:2]) + uniformity(rows[2:])) / 2, abs=0.1)


def test_both_ends_of_the_scales():
    ones = np.ones((5, 3))
    assert (uniformity(ones), alignment(ones, ones).tolist()) == (0, [0] * 5)
    assert alignment(ones, -ones) == pytest.approx([4] * 5)
    assert uniformity(np.array([[1.0, 0], [-1, 0]])) == pytest.approx(-8)


@pytest.mark.parametrize("dims", [8, 64, 512])
def test_random_vectors_give_the_value_of_theory(dims):
    """The mean of exp(4 cos) over the sphere is 0F1(dims / 2, 4), whose logarithm is 8 / dims to first order."""
    rows = np.random.default_rng(1).standard_normal((1500, dims))
    exact = -4 + math.log(hyp0f1(dims / 2, 4))
    assert uniformity(rows) == pytest.approx(exact, abs=0.01)
    assert exact == pytest.approx(-4 + 8 / dims, abs=0.3 * 8 / dims)
    assert alignment(rows[:750], rows[750:]).mean() == pytest.approx(2, abs=0.1)


def test_a_run_equals_the_protocol_in_a_loop(tmp_path):
    stsb_dev(tmp_path)
    aligned, uniform = ALIGNMENT["alignment"].run(by_text, tmp_path)
    left, right = (by_text([f"b {side} {i}" for i in range(POSITIVE)]).tolist() for side in ("left", "right"))
    rest = by_text([f"b {side}{i}" for side in ("left a", "right b") for i in range(OTHER)]).tolist()
    squares = [square_in_a_loop(a, b) for a, b in zip(left, right, strict=True)]
    assert (aligned.subset, aligned.metric, aligned.n) == ("eng", "alignment", POSITIVE)
    assert aligned.value == pytest.approx(sum(squares) / POSITIVE, abs=1e-6)
    assert aligned.items == pytest.approx(squares, abs=1e-6)
    assert (uniform.subset, uniform.metric, uniform.n) == ("eng", "uniformity", 2 * (POSITIVE + OTHER))
    assert uniform.value == pytest.approx(uniformity_in_a_loop([*left, *right, *rest]), abs=1e-6)


def test_a_gold_of_exactly_four_counts_and_a_text_that_stands_twice_is_one_sentence(tmp_path):
    table = [("a 0", "a 1", 4), ("a 0", "a 2", 3.999), ("a 0", "a 0", 5)]
    export(tmp_path / "STS17/ko-ko", table)
    aligned, uniform = ALIGNMENT["alignment/sts17"].run(one_hot, tmp_path)
    assert (aligned.value, aligned.n, aligned.items.tolist()) == (1, 2, [2, 0])
    assert (uniform.value, uniform.n) == (pytest.approx(-4), 3)


def test_no_pair_of_one_meaning_is_an_error(tmp_path):
    export(tmp_path / "STS17/ko-ko", [("a", "b", 1), ("c", "d", 3.9)])
    with pytest.raises(
        EvaluationError, match=r"^alignment/sts17 kor-kor: none of its 2 labelled pairs .* of 4 or more"
    ):
        ALIGNMENT["alignment/sts17"].run(by_text, tmp_path)
    write(tmp_path / "STS/STSBenchmark/sts-dev.csv", "g\tf\ty\t1\t7\ta\tb\n")
    with pytest.raises(EvaluationError, match=r"^alignment eng: .*sts-dev.csv:1: the score '7' is no number"):
        ALIGNMENT["alignment"].run(by_text, tmp_path)


def test_a_vector_that_is_not_finite_is_told_with_its_side_and_line(tmp_path):
    export(tmp_path / "STS17/ko-ko", [("a 0", "a 1", None), ("a 0", "a 2", 4), ("a 3", "a 0", 5)])
    with pytest.raises(EvaluationError, match=r"kor-kor, sentence 2, language kor: \S*ko-ko/test.jsonl:2: .*NaN"):
        ALIGNMENT["alignment/sts17"].run(lambda texts: [[np.nan if t == "a 2" else 1.0] for t in texts], tmp_path)


def test_the_pool_is_over_all_pairs_of_ten_sets(tmp_path):
    sts17(tmp_path)
    task = ALIGNMENT["alignment/sts17"]
    assert task.subsets(tmp_path)[-1] == POOLED
    assert POOLED not in task.subsets(tmp_path, languages=["ar"])
    found = {(score.subset, score.metric): score for score in task.run(by_text, tmp_path)}
    pooled = found[POOLED, "alignment"]
    parts = [found[subset, "alignment"] for subset in EXTENDED_10]
    assert pooled.n == sum(part.n for part in parts) == 10 * POSITIVE
    assert pooled.items.tolist() == [item for part in parts for item in part.items.tolist()]
    assert found[POOLED, "uniformity"].n == 10 * 2 * (POSITIVE + OTHER)
    assert found[POOLED, "uniformity"].value != found["extended-10", "uniformity"].value
    assert set(found["extended-10", "alignment"].over) == set(EXTENDED_10)
    assert POOLED not in found["mean", "alignment"].over
    assert found["mean", "alignment"].n == len(STS17)


@pytest.mark.data
def test_the_dev_split_has_264_pairs_of_one_meaning():
    if not (SHARED / "senteval-en").is_dir():
        pytest.skip(f"{SHARED} has no senteval-en; set ISOGLOT_DATA to the folder of the data sets")
    scores = ALIGNMENT["alignment"].run(lambda texts: np.array([[len(t), t.count(" ") + 1] for t in texts]), SHARED)
    assert [(score.metric, score.n) for score in scores] == [("alignment", 264), ("uniformity", 2909)]
