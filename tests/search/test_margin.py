"""Margins equal the paper's formulas, and stay finite and in order for collapsed encoders."""

from __future__ import annotations

import numpy as np
import pytest
from search_loops import margin as margin_in_loops

from isoglot.search.exact import neighbours
from isoglot.search.pairs import MARGINS, margins


@pytest.mark.parametrize("kind", MARGINS)
def test_equal_the_loop(kind):
    rng = np.random.default_rng(0)
    found = neighbours(rng.standard_normal((20, 5)), rng.standard_normal((30, 5)), 4, metric="cosine")
    table = margins(found.forward_scores, found.forward_ids, found.backward_scores, margin=kind)
    for i in range(20):
        for place in range(4):
            mean_y = found.backward_scores[found.forward_ids[i, place]].astype(float).mean()
            mean_x = found.forward_scores[i].astype(float).mean()
            expected = margin_in_loops(kind, float(found.forward_scores[i, place]), mean_x, mean_y)
            assert table[i, place] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("around", [0.0, -0.5, 1e-30])
def test_a_ratio_over_nothing_is_finite_and_keeps_sign_and_order(around):
    cosines = np.array([-0.9, -0.1, 0.0, 0.1, 0.9])
    scores = MARGINS["ratio"](cosines, np.full(5, around))
    assert np.isfinite(scores).all()
    assert (np.sign(scores) == np.sign(cosines)).all()
    assert (np.diff(scores) > 0).all()


def test_an_unknown_margin_is_refused():
    with pytest.raises(ValueError, match=r"'cosine'.*absolute, distance, ratio"):
        margins(np.ones((1, 1)), np.zeros((1, 1), np.int64), np.ones((1, 1)), margin="cosine")
