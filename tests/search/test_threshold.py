"""The tuned threshold gives the best F1 any threshold can give, ties and the end of the list included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_loops import best_f1, f1

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
    assert quality(pairs, [(0, 0), (0, 0)]).f1 == pytest.approx(f1([(0, 0), (1, 1)], {(0, 0)}))
