"""The tuned threshold gives the best F1 any threshold can give, ties and the end of the list included."""

from __future__ import annotations

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


def test_the_threshold_lies_midway_to_the_next_score():
    pairs, gold = listed([0.9, 0.8, 0.4, 0.3], [True, True, False, False])
    assert tune(pairs, gold).threshold == pytest.approx(0.6)
    assert tune(pairs, gold).f1 == 1


def test_the_last_score_is_its_own_threshold():
    pairs, gold = listed([0.9, 0.8], [True, True])
    assert tune(pairs, gold).threshold == 0.8


def test_equal_scores_are_all_in_or_all_out():
    pairs, gold = listed([0.5, 0.5, 0.5], [True, False, False])
    found = tune(pairs, gold)
    assert (found.precision, found.recall, found.threshold) == (1 / 3, 1, 0.5)


def test_neighbouring_floats_are_still_told_apart():
    low = 0.5
    high = float(np.nextafter(low, 1))
    pairs, gold = listed([high, low], [True, False])
    assert tune(pairs, gold).threshold == high
    assert tune(pairs, gold).f1 == 1


def test_nothing_right_keeps_nothing():
    pairs, _ = listed([0.5, 0.4], [False, False])
    found = tune(pairs, {(7, 7)})
    assert found.f1 == 0
    assert len(pairs.above(found.threshold)) == 0


def test_gold_is_a_set_and_may_not_be_empty():
    pairs, _ = listed([0.5, 0.4], [True, False])
    assert quality(pairs, [(0, 0), (0, 0)]).recall == 1
    assert quality(pairs, [(0, 0), (0, 0)]).f1 == pytest.approx(f1([(0, 0), (1, 1)], {(0, 0)}))
    with pytest.raises(ValueError, match="gold"):
        tune(pairs, set())
