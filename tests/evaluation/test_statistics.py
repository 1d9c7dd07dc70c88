"""Statistics against scipy and scikit-learn; the weighted ones against the plain ones on repeated rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.evaluation.statistics import STATISTICS, rank, weigh

COLUMNS = {"mean": 0, "spearman": 2, "pearson": 2, "f1": 3, "precision": 3, "recall": 3}
COLUMNS |= {f"{kind}/{way}": 3 for kind in ("spearman", "pearson") for way in ("wmean", "mean")}


def items_of(name, rng, n):
    """Few distinct values, so that ties and equal rows occur."""
    if name in ("f1", "precision", "recall"):
        right = rng.integers(0, 2, n)
        return np.stack([right, right | rng.integers(0, 2, n), right | rng.integers(0, 2, n)], axis=1)
    return rng.integers(0, 4, (n, COLUMNS[name]) if COLUMNS[name] else n) / 2


@given(st.sampled_from(sorted(COLUMNS)), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_weights_stand_for_repeated_rows(name, n, seed):
    rng = np.random.default_rng(seed)
    items = items_of(name, rng, n)
    weights = rng.integers(0, 4, (5, n))
    weights[:, 0] += weights.sum(axis=1) == 0
    expected = [STATISTICS[name](np.repeat(items, row, axis=0)) for row in weights]
    assert weigh(name, items, weights) == pytest.approx(expected, abs=1e-12)


def test_a_correlation_without_variation_is_zero_in_every_form():
    items = np.array([[2.3, 0.1], [2.3, 0.7], [0.1, 0.7]])
    weights = np.array([[3.0, 2.0, 0.0], [0.0, 5.0, 0.0], [0.0, 7.0, 9.0]])
    for name in ("pearson", "spearman"):
        assert weigh(name, items, weights).tolist() == [0.0, 0.0, 0.0]
        assert STATISTICS[name](items[:2]) == 0.0


def test_a_column_far_from_zero_keeps_its_digits():
    rng = np.random.default_rng(3)
    items = np.stack([rng.normal(size=50), 1e6 + rng.normal(size=50)], axis=1)
    assert weigh("pearson", items, np.ones((1, 50)))[0] == pytest.approx(np.corrcoef(items.T)[0, 1], abs=1e-9)


@given(st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_correlations_are_those_of_scipy(n, seed):
    scipy_stats = pytest.importorskip("scipy.stats")
    items = items_of("spearman", np.random.default_rng(seed), n)
    if min(len(set(column)) for column in items.T) < 2:
        assert STATISTICS["spearman"](items) == STATISTICS["pearson"](items) == 0.0
        return
    assert STATISTICS["spearman"](items) == pytest.approx(scipy_stats.spearmanr(*items.T).statistic, abs=1e-12)
    assert STATISTICS["pearson"](items) == pytest.approx(scipy_stats.pearsonr(*items.T).statistic, abs=1e-12)
    ranks = rank(items[:, 0], np.ones((1, n)))[0]
    assert ranks == pytest.approx(scipy_stats.rankdata(items[:, 0]) - (n + 1) / 2)


def test_shares_by_hand():
    counts = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 1], [1, 1, 1]])
    for name, value in (("f1", 2 * 2 / (3 + 4)), ("precision", 2 / 3), ("recall", 2 / 4)):
        assert STATISTICS[name](counts) == pytest.approx(value)
        assert STATISTICS[name](np.zeros((3, 3))) == 0.0


def test_a_mean_of_correlations_is_that_of_the_parts():
    """Two parts, of three pairs and of nine: all weigh the same, or as many as they have."""
    scipy_stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(6)
    parts = [rng.normal(size=(n, 2)) for n in (3, 9)]
    items = np.column_stack([np.concatenate(parts), np.repeat([4.0, 2.0], [3, 9])])[rng.permutation(12)]
    low, high = (scipy_stats.spearmanr(*part.T).statistic for part in parts)
    assert STATISTICS["spearman/mean"](items) == pytest.approx((low + high) / 2)
    assert STATISTICS["spearman/wmean"](items) == pytest.approx(low / 4 + high * 3 / 4)


def test_an_unknown_statistic_is_named():
    with pytest.raises(ValueError, match="no statistic is called 'median'; known: mean"):
        weigh("median", np.ones(3), np.ones((1, 3)))
