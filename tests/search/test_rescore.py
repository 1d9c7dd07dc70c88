"""A coarse product gives the exact result: scores that its errors leave open are computed again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.data.vectors import unit
from isoglot.mining.pipeline import bfloat16
from isoglot.search import Rounded, exact, mine, neighbours

PLANTED = np.random.default_rng(4)


def to_one_digit(rows):
    return np.round(rows, 1)


def multiply(rows, columns, out):
    np.matmul(to_one_digit(rows), to_one_digit(columns).T, out=out)


COARSE = Rounded(multiply, to_one_digit, relative=0.0)


@pytest.mark.parametrize("product", [COARSE, bfloat16])
@pytest.mark.parametrize("budget", [500_000, 1 << 26])
@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_a_coarse_product_is_mended(product, budget, metric):
    x, y = PLANTED.standard_normal((300, 16), np.float32), PLANTED.standard_normal((400, 16), np.float32)
    exact = neighbours(x, y, 2, metric=metric)
    mended = neighbours(x, y, 2, metric=metric, matmul=product, budget=budget)
    for a, b in zip(exact[1::2], mended[1::2], strict=True):
        assert a.shape == b.shape
        assert (a == b).mean() > 0.999  # but for ties within the rounding of float32
    np.testing.assert_allclose(mended.forward_scores, exact.forward_scores, atol=1e-5)
    np.testing.assert_allclose(mended.backward_scores, exact.backward_scores, atol=1e-5)


def test_with_a_bound_that_is_too_small_some_are_missed():
    """The test above would pass for no reason if the coarse product were good enough by itself."""
    x, y = PLANTED.standard_normal((300, 16), np.float32), PLANTED.standard_normal((400, 16), np.float32)
    found = neighbours(x, y, 2, metric="cosine", matmul=Rounded(multiply, lambda rows: rows, relative=0.0))
    assert (neighbours(x, y, 2, metric="cosine").forward_ids == found.forward_ids).mean() < 0.99


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


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_bfloat16_finds_neighbours_that_it_cannot_tell_apart(monkeypatch, share):
    monkeypatch.setattr(exact, "_OPEN", share)
    x, y = crowded(200, 32, 1), crowded(300, 32, 2)
    assert_exact(x, y, neighbours(x, y, 3, matmul=bfloat16), 3)
    monkeypatch.setattr(exact, "_OPEN", 1.0)
    unbounded = neighbours(x, y, 3, matmul=Rounded(bfloat16.multiply, lambda rows: rows, relative=0.0))
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
    assert_exact(x, y, neighbours(x, y, k, matmul=bfloat16), k)


@given(
    st.integers(1, 90), st.integers(1, 200), st.integers(1, 5), st.sampled_from(["dot", "cosine"]),
    st.sampled_from([1 << 18, 1 << 26]), st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_any_coarse_product_is_exact_also_with_equal_scores(n, m, k, metric, budget, seed):
    """Whole numbers: their scores are exact and often equal, and then the lowest ids come first."""
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-2, 3, (rows, 6)).astype(np.float32) for rows in (n, m))
    halves = Rounded(
        lambda rows, columns, out: np.matmul(np.trunc(rows / 2) * 2, columns.T, out=out),
        lambda rows: np.trunc(rows / 2) * 2, relative=0.1,
    )  # fmt: skip
    found = neighbours(x, y, k, metric=metric, budget=budget, matmul=halves)
    assert_exact(*(x, y) if metric == "dot" else map(unit, (x, y)), found, k)
    if metric == "dot":
        for one, other in zip(found, neighbours(x, y, k, metric=metric, budget=budget), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.fixture
def computed(monkeypatch):
    """The numbers of scores computed again, in the order of the calls; "all" for those of a whole tile."""
    found, inner = [], exact._exact

    def counted(*given):
        return tuple(
            replace(
                one,
                scores=lambda a, b, of=one.scores: found.append(len(a)) or of(a, b),
                table=lambda of=one.table: found.append("all") or of(),
            )
            for one in inner(*given)
        )

    monkeypatch.setattr(exact, "_exact", counted)
    return found


def test_few_scores_are_computed_again(computed):
    x, y = (PLANTED.standard_normal((2000, 64), np.float32) for _ in range(2))
    neighbours(x, y, 4, matmul=bfloat16, metric="cosine")
    assert 2 * 4 * 2000 <= sum(computed) < 2 * 12 * 2000


def test_where_nearly_all_scores_are_open_the_tile_is_computed_again(computed):
    x, y = crowded(3000, 32, 1), crowded(2000, 32, 2)
    x, y = (1 + 1e-4 * part for part in (x, y))
    found = neighbours(x, y, 3, matmul=bfloat16, metric="cosine")
    assert set(computed) == {"all"}
    for one, other in zip(found, neighbours(x, y, 3, metric="cosine"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("given", [bfloat16, replace(COARSE, pool=ThreadPoolExecutor)], ids=["bfloat16", "coarse"])
def test_threads_that_each_make_a_product_change_nothing(monkeypatch, given):
    x, y = PLANTED.standard_normal((900, 16), np.float32), PLANTED.standard_normal((700, 16), np.float32)
    alone = neighbours(x, y, 3, matmul=replace(given, pool=None), budget=1 << 22)
    pools = []
    monkeypatch.setattr(exact, "_threads", lambda: 3)
    counted = replace(given, pool=lambda count: pools.append(count) or given.pool(count))
    together = neighbours(x, y, 3, matmul=counted, budget=1 << 22)
    assert pools[0] > 1
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_threads_of_torch_stay_as_they_are(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setattr(exact, "_threads", lambda: before + 2)
    x = PLANTED.standard_normal((50, 16), np.float32)
    neighbours(x, x, 3, matmul=bfloat16)
    assert torch.get_num_threads() == before
