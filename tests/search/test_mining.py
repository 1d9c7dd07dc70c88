"""Mining equals the loops in every direction, finds planted pairs, and does not depend on the order of input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_loops import mine as mine_in_loops

from isoglot.search.pairs import DIRECTIONS, MARGINS, mine


@settings(max_examples=60)
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
@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing_to_mine(direction, shape):
    assert len(mine(np.ones((shape[0], 2)), np.ones((shape[1], 2)), direction=direction)) == 0


@pytest.mark.parametrize("around", [0.0, -0.5, 1e-30])
def test_a_ratio_over_nothing_is_finite_and_keeps_sign_and_order(around):
    cosines = np.array([-0.9, -0.1, 0.0, 0.1, 0.9])
    scores = MARGINS["ratio"](cosines, np.full(5, around))
    assert np.isfinite(scores).all()
    assert (np.sign(scores) == np.sign(cosines)).all()
    assert (np.diff(scores) > 0).all()
