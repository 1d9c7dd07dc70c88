"""Mining equals the loops in every direction, finds planted pairs, and does not depend on the order of input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_loops import mine as mine_in_loops

from isoglot.search.pairs import DIRECTIONS, MARGINS, mine


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(1, 6),
    st.sampled_from(sorted(MARGINS)),
    st.sampled_from(sorted(DIRECTIONS)),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_loops(n, m, k, margin, direction, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 12)), rng.standard_normal((m, 12))
    pairs = mine(x, y, k=k, margin=margin, direction=direction)
    expected = mine_in_loops(x.astype(np.float32), y.astype(np.float32), k, margin, direction)
    # Equal scores, known up to rounding, may swap places; as sets both must agree.
    found = {(int(i), int(j)): s for i, j, s in zip(pairs.source, pairs.target, pairs.score, strict=True)}
    assert found.keys() == {(i, j) for _, i, j in expected}
    for score, i, j in expected:
        assert found[i, j] == pytest.approx(score, rel=1e-3, abs=1e-5)
    assert (np.diff(pairs.score) <= 0).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("margin", MARGINS)
def test_every_way_finds_a_one_to_one_set(direction, margin):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((200, 32))
    order = rng.permutation(200)
    pairs = mine(x, x[order] + 0.01 * rng.standard_normal((200, 32)), margin=margin, direction=direction)
    assert len(pairs) == 200
    assert (order[pairs.target] == pairs.source).all()


def test_max_uses_no_sentence_twice_and_nothing_is_dropped_for_its_score():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((50, 3)), rng.standard_normal((40, 3))
    pairs = mine(np.abs(x), -np.abs(y))  # every cosine is negative
    assert len(pairs) > 0
    assert (pairs.score < 0).all()
    assert len(set(pairs.source.tolist())) == len(set(pairs.target.tolist())) == len(pairs)


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


def test_lengths_of_vectors_do_not_matter():
    rng = np.random.default_rng(9)
    x, y = rng.standard_normal((20, 6)), rng.standard_normal((25, 6))
    a, b = mine(x, y), mine(x * rng.uniform(0.1, 9, (20, 1)), y * 7)
    assert a.source.tolist() == b.source.tolist()
    assert a.target.tolist() == b.target.tolist()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing_to_mine(direction, shape):
    assert len(mine(np.ones((shape[0], 2)), np.ones((shape[1], 2)), direction=direction)) == 0


def test_wrong_names_are_refused():
    with pytest.raises(ValueError, match=r"'both'.*max, forward, backward, intersection"):
        mine(np.ones((1, 2)), np.ones((1, 2)), direction="both")
    with pytest.raises(ValueError, match="margin is 'cos'"):
        mine(np.ones((1, 2)), np.ones((1, 2)), margin="cos")


def test_a_threshold_of_nan_is_refused():
    with pytest.raises(ValueError, match="threshold: is NaN"):
        mine(np.eye(3), np.eye(3), k=1, threshold=np.nan)
