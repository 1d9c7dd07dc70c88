"""A coarse product gives the exact result once its candidates are scored again."""

from __future__ import annotations

import numpy as np
import pytest

from isoglot.mining.pipeline import bfloat16
from isoglot.search import mine, neighbours

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
