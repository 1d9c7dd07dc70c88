"""The tuned threshold gives the best F1 any threshold can give, ties and the end of the list included.

The estimated one comes near it, however many of the sentences have a translation.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_loops import best_f1, f1

from isoglot.search import choose, estimate, neighbours
from isoglot.search.pairs import Pairs
from isoglot.search.threshold import quality, tune


def listed(scores, right):
    """Pairs with these scores; the i-th is gold when `right` says so."""
    order = np.argsort(-np.array(scores, float), kind="stable")
    pairs = Pairs(order, order, np.array(scores, float)[order])
    return pairs, {(i, i) for i, is_gold in enumerate(right) if is_gold}


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30), st.integers(1, 5))
def test_no_threshold_is_better_and_it_gives_what_it_says(items, missed):
    pairs, gold = listed([score for score, _ in items], [right for _, right in items])
    gold |= {(100 + i, 100 + i) for i in range(missed)}  # never mined
    named = list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))
    found = tune(pairs, gold)
    assert found.f1 == pytest.approx(best_f1(pairs.score.tolist(), named, gold))
    assert quality(pairs, gold, threshold=found.threshold) == found


HIGHER = float(np.nextafter(0.5, 1))


@pytest.mark.parametrize(
    ("scores", "right", "threshold", "precision", "recall"),
    [
        ([0.9, 0.8, 0.4, 0.3], [True, True, False, False], pytest.approx(0.6), 1, 1),  # midway to the next score
        ([0.9, 0.8], [True, True], 0.8, 1, 1),  # the last score
        ([0.5, 0.5, 0.5], [True, False, False], 0.5, 1 / 3, 1),  # equal scores are all kept
        ([HIGHER, 0.5], [True, False], HIGHER, 1, 1),  # no float is between these
    ],
)
def test_where_the_threshold_lies(scores, right, threshold, precision, recall):
    found = tune(*listed(scores, right))
    assert (found.threshold, found.precision, found.recall) == (threshold, precision, recall)


def test_nothing_right_keeps_nothing():
    pairs, _ = listed([0.5, 0.4], [False, False])
    assert tune(pairs, {(7, 7)}).f1 == len(pairs.above(tune(pairs, {(7, 7)}).threshold)) == 0


def test_gold_is_a_set():
    pairs, _ = listed([0.5, 0.4], [True, False])
    assert quality(pairs, [(0, 0), (0, 0)]).recall == 1
    for gold in (np.array([[0, 0]]), zip([0], [0], strict=True), [[0, 0]]):
        assert tune(pairs, gold).f1 == 1
    for empty in ([], np.empty((0, 2), int)):
        with pytest.raises(ValueError, match="gold is empty"):
            quality(pairs, empty)
    assert quality(pairs, [(0, 0), (0, 0)]).f1 == pytest.approx(f1([(0, 0), (1, 1)], {(0, 0)}))


def piles(pairs, others, noise=0.6, dim=48, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((pairs, dim))
    y = x + noise * rng.standard_normal((pairs, dim))
    return tuple(np.concatenate([side, rng.standard_normal((others, dim))]).astype(np.float32) for side in (x, y))


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("pairs", "others"), [(300, 0), (300, 30), (300, 300), (200, 1000), (60, 1500)])
def test_f1_of_the_estimate_is_near_the_best(pairs, others, margin):
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
