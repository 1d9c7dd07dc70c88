"""The estimated threshold comes near the best one, however many of the sentences have a translation."""

import numpy as np
import pytest

from isoglot.search import choose, estimate, neighbours, quality, tune


def piles(pairs, others, noise=0.6, dim=48, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((pairs, dim))
    y = x + noise * rng.standard_normal((pairs, dim))
    return tuple(np.concatenate([side, rng.standard_normal((others, dim))]).astype(np.float32) for side in (x, y))


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("pairs", "others"), [(300, 0), (300, 30), (300, 300), (200, 1000), (60, 1500)])
def test_f1_is_near_the_best(pairs, others, margin):
    found = neighbours(*piles(pairs, others), 4, metric="cosine")
    mined, gold = choose(found, margin=margin), {(i, i) for i in range(pairs)}
    guess = estimate(mined, found, margin=margin)
    real = quality(mined, gold, threshold=guess.threshold)
    assert real.f1 > tune(mined, gold).f1 - 0.05
    assert guess.precision == pytest.approx(real.precision, abs=0.08)
    assert guess.reliable


def test_piles_without_a_pair_are_told():
    rng = np.random.default_rng(1)
    found = neighbours(*rng.standard_normal((2, 600, 48)).astype(np.float32), 4, metric="cosine")
    assert not estimate(choose(found), found).reliable


def test_collapsed_vectors_give_a_finite_threshold():
    found = neighbours(np.ones((20, 4)), np.ones((30, 4)), 4, metric="cosine")
    assert np.isfinite(estimate(choose(found), found).threshold)
