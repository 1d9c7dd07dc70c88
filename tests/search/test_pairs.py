"""Mining, paraphrases and hard negatives equal the loops in every direction, ties included, and never lose a sign."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_loops import cosine, margin, top
from search_loops import mine as mine_in_loops

from isoglot.search.pairs import DIRECTIONS, MARGINS, hard_negatives, mine


@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 6),
    st.sampled_from(sorted(MARGINS)),
    st.sampled_from(sorted(DIRECTIONS)),
    st.integers(0, 2**32 - 1),
)
def test_mining_equals_the_loops(n, m, k, kind, direction, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 12)), rng.standard_normal((m, 12))
    pairs = mine(x, y, k=k, margin=kind, direction=direction)
    expected = mine_in_loops(x.astype(np.float32), y.astype(np.float32), k, kind, direction)
    # Equal scores, known up to rounding, may swap places; as sets both must agree.
    found = {(int(i), int(j)): s for i, j, s in zip(pairs.source, pairs.target, pairs.score, strict=True)}
    assert found.keys() == {(i, j) for _, i, j in expected}
    for score, i, j in expected:
        assert found[i, j] == pytest.approx(score, rel=1e-3, abs=1e-5)
    assert (np.diff(pairs.score) <= 0).all()


def test_a_collapsed_encoder_gives_pairs_and_finite_scores():
    pairs = mine(np.ones((30, 4)), np.ones((20, 4)))
    assert np.isfinite(pairs.score).all()
    np.testing.assert_allclose(pairs.score, 1, rtol=1e-6)
    assert mine(np.zeros((3, 4)), np.zeros((2, 4))).score.tolist() == [0.0]


def test_a_threshold_keeps_what_is_equal_or_above():
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((30, 8)), rng.standard_normal((30, 8))
    everything = mine(x, y)
    threshold = float(everything.score[10])
    kept = mine(x, y, threshold=threshold)
    assert len(kept) == 11
    assert kept.score.tolist() == everything.score[:11].tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("rows", [(0, 4), (4, 0), (0, 0), (0,), (1,)])
def test_nothing_to_mine(direction, rows):
    assert len(mine(*(np.ones((count, 2)) for count in rows), direction=direction)) == 0


@pytest.mark.parametrize("around", [0.0, -0.5, 1e-30])
def test_a_ratio_over_nothing_is_finite_and_keeps_sign_and_order(around):
    cosines = np.array([-0.9, -0.1, 0.0, 0.1, 0.9])
    scores = MARGINS["ratio"](cosines, np.full(5, around))
    assert np.isfinite(scores).all()
    assert (np.sign(scores) == np.sign(cosines)).all()
    assert (np.diff(scores) > 0).all()


def paraphrases(x, k, kind, direction):
    """{(i, j): score} with i < j; no row is paired with itself."""
    near = [[pair for pair in row if pair[1] != i][:k] for i, row in enumerate(top(x, x, len(x), cosine))]
    means = [sum(score for score, _ in row) / len(row) for row in near]
    best = {}
    for i, row in enumerate(near):
        scored = [(margin(kind, cos, means[i], means[j]), j) for cos, j in row]
        best[i] = min(scored, key=lambda pair: (-pair[0], pair[1]))
    pairs = {(min(i, j), max(i, j)): score for i, (score, j) in best.items()}
    if direction == "intersection":
        return {(i, j): s for (i, j), s in pairs.items() if best[i][1] == j and best[j][1] == i}
    if direction != "max":
        return pairs
    kept, used = {}, set()
    for (i, j), score in sorted(pairs.items(), key=lambda item: (-item[1], *item[0])):
        if i not in used and j not in used:
            kept[i, j] = score
            used |= {i, j}
    return kept


@given(
    st.integers(2, 20),
    st.integers(1, 5),
    st.sampled_from(sorted(MARGINS)),
    st.sampled_from(["max", "forward", "backward", "intersection"]),
    st.integers(0, 2**32 - 1),
)
def test_paraphrases_equal_the_loops(n, k, kind, direction, seed):
    x = np.random.default_rng(seed).standard_normal((n, 10)).astype(np.float32)
    pairs = mine(x, k=k, margin=kind, direction=direction)
    found = {(i, j): s for i, j, s in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.score, strict=True)}
    expected = paraphrases(x, k, kind, direction)
    assert found.keys() == expected.keys()
    for pair, score in expected.items():
        assert found[pair] == pytest.approx(score, rel=1e-3, abs=1e-4)
    assert (np.diff(pairs.score) <= 0).all()


def test_equal_vectors_never_pair_a_row_with_itself():
    pairs = mine(np.ones((30, 4)), k=3, direction="forward")
    assert len(pairs) > 0
    assert (pairs.source < pairs.target).all()


def negatives(x, y, gold, count):
    """For each row of x: all rows of y by falling cosine, then by row, without the translations."""
    known = set(zip(*gold, strict=True))
    ranked = top(x, y, len(y), lambda a, b: round(cosine(a, b), 5))
    return [[j for _, j in row if (i, j) not in known][:count] for i, row in enumerate(ranked)]


@given(st.integers(1, 12), st.integers(1, 20), st.integers(1, 4), st.integers(0, 15), st.integers(0, 2**32 - 1))
def test_hard_negatives_equal_the_loop(n, m, count, pairs, seed):
    """Rows along few directions, so that ties abound; sources with no, one and several translations."""
    rng = np.random.default_rng(seed)
    x, y = (np.eye(4, dtype=np.float32)[rng.integers(0, 4, rows)] for rows in (n, m))
    gold = rng.integers(0, n, pairs).tolist(), rng.integers(0, m, pairs).tolist()
    found = hard_negatives(x, y, gold, count)
    assert found.shape == (n, count)
    for row, wanted in zip(found.tolist(), negatives(x, y, gold, count), strict=True):
        assert row == wanted + [-1] * (count - len(wanted))


def test_blocks_of_hard_negatives_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((150, 8)).astype(np.float32), rng.standard_normal((120, 8)).astype(np.float32)
    gold = np.arange(120), rng.permutation(120)
    whole = hard_negatives(x, y, gold, 3)
    monkeypatch.setattr("isoglot.search.pairs._ROWS", 7)
    np.testing.assert_array_equal(hard_negatives(x, y, gold, 3, budget=450_000), whole)
