"""A coarse product gives the exact result once its candidates are scored again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.mining.pipeline import bfloat16
from isoglot.search import exact, mine, neighbours

PLANTED = np.random.default_rng(4)


def coarse(rows, columns, out):
    """Scores to two digits."""
    out[:] = np.round(rows @ columns.T, 2)


@pytest.mark.parametrize("product", [coarse, bfloat16])
@pytest.mark.parametrize("budget", [500_000, 1 << 26])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_a_coarse_product_is_mended(product, budget, metric):
    x, y = PLANTED.standard_normal((300, 16), np.float32), PLANTED.standard_normal((400, 16), np.float32)
    exact, mended = neighbours(x, y, 2, metric=metric), neighbours(
        x, y, 2, metric=metric, matmul=product, spare=6, budget=budget
    )  # fmt: skip
    for a, b in zip(exact[1::2], mended[1::2], strict=True):
        assert a.shape == b.shape
        assert (a == b).mean() > 0.995
    np.testing.assert_allclose(mended.forward_scores, exact.forward_scores, atol=0.02 if metric == "cosine" else 0.2)
    right = exact.forward_ids == mended.forward_ids
    np.testing.assert_allclose(mended.forward_scores[right], exact.forward_scores[right], atol=1e-5)


def test_without_spare_candidates_some_are_missed():
    """The test above would pass for no reason if the coarse product were good enough by itself."""
    x, y = PLANTED.standard_normal((300, 16), np.float32), PLANTED.standard_normal((400, 16), np.float32)
    exact, found = neighbours(x, y, 2, metric="cosine"), neighbours(x, y, 2, metric="cosine", matmul=coarse, spare=0)
    assert (exact.forward_ids == found.forward_ids).mean() < 0.99


def test_pairs_by_bfloat16_equal_those_by_float32():
    x = PLANTED.standard_normal((500, 32), np.float32)
    y = x[::-1] + 0.5 * PLANTED.standard_normal((500, 32), np.float32)
    a, b = mine(x, y), mine(x, y, matmul=bfloat16)
    assert set(zip(a.source.tolist(), a.target.tolist(), strict=True)) == set(
        zip(b.source.tolist(), b.target.tolist(), strict=True)
    )


def crowded(rows, dim, seed):
    """Unit vectors of which many are nearer to each other than bfloat16 can tell."""
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal((4, dim))
    table = middle[rng.integers(0, 4, rows)] + 0.003 * rng.standard_normal((rows, dim))
    return (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)


def assert_exact(x, y, found, k):
    """The scores are those of all products in double precision, best first, to the resolution of float32."""
    scores = x.astype(np.float64) @ y.astype(np.float64).T
    for table, part, ids in (
        (scores, found.forward_scores, found.forward_ids),
        (scores.T, found.backward_scores, found.backward_ids),
    ):
        best = -np.sort(-table, axis=1)[:, :k]
        scale = np.abs(table).max()
        np.testing.assert_allclose(part, best, atol=2e-6 * scale)
        np.testing.assert_allclose(np.take_along_axis(table, ids, axis=1), best, atol=2e-6 * scale)
        assert (np.diff(np.sort(ids, axis=1), axis=1) > 0).all()


def test_bfloat16_finds_neighbours_that_it_cannot_tell_apart():
    x, y = crowded(200, 32, 1), crowded(300, 32, 2)
    assert_exact(x, y, neighbours(x, y, 3, matmul=bfloat16), 3)
    unbounded = neighbours(x, y, 3, matmul=bfloat16.multiply)
    best = -np.sort(-(x @ y.T), axis=1)[:, :3]
    assert np.abs(unbounded.forward_scores - best).max() > 1e-6  # without the bound some are missed


@given(
    st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 6),
    st.sampled_from([1e-3, 1.0, 1e3]), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_bfloat16_is_exact_for_any_shape_and_scale(n, m, dim, k, scale, seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal((rows, dim)).astype(np.float32) * np.float32(scale) for rows in (n, m))
    assert_exact(x, y, neighbours(x, y, k, matmul=bfloat16, spare=2), k)


def test_rows_that_the_bound_proves_are_not_searched_again(monkeypatch):
    x, y = np.eye(40, dtype=np.float32), np.eye(40, dtype=np.float32)[::-1]
    x = x + 0.1 * PLANTED.standard_normal((40, 40), np.float32)
    monkeypatch.setattr(exact, "neighbours", None)  # what would search again
    found = neighbours(x, y, 1, matmul=bfloat16, metric="cosine")
    assert found.forward_ids[:, 0].tolist() == list(range(40))[::-1]
