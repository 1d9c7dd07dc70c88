"""Neighbours equal a loop over all pairs, ties included, in any tiling, dtype and budget."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_loops import assert_same, cosine, dot, top, whole

from isoglot.search import exact
from isoglot.search.exact import neighbours

SMALL = 450_000  # forces many tiles for the sizes below


def check(x, y, k, **options):
    found = neighbours(x, y, k, **options)
    similarity = cosine if options.get("metric") == "cosine" else dot
    for scores, ids, expected in (
        (found.forward_scores, found.forward_ids, top(x, y, k, similarity)),
        (found.backward_scores, found.backward_ids, top(y, x, k, similarity)),
    ):
        assert scores.dtype == np.float32
        assert ids.dtype == np.int64
        np.testing.assert_allclose(scores, [[score for score, _ in row] for row in expected], atol=2e-6)
        if similarity is dot:
            np.testing.assert_array_equal(ids, [[place for _, place in row] for row in expected])


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 5), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_equals_the_loop(n, m, dim, k, seed):
    rng = np.random.default_rng(seed)
    check(whole(rng, n, dim), whole(rng, m, dim), k)


@pytest.mark.parametrize("k", [1, 4, 33])
def test_many_tiles_equal_one(k):
    rng = np.random.default_rng(k)
    x, y = whole(rng, 501, 6), whole(rng, 703, 6)
    one = neighbours(x, y, k)
    many = neighbours(x, y, k, budget=max(SMALL, 40 * 33 * 65 * k))
    assert_same(one, many)
    forward = np.argsort(-(x @ y.T), axis=1, kind="stable")[:, :k]
    backward = np.argsort(-(y @ x.T), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(many.forward_ids, forward)
    np.testing.assert_array_equal(many.backward_ids, backward)


def test_cosine_divides_by_lengths_and_a_zero_row_scores_zero():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((9, 4)) * 100, rng.standard_normal((8, 4)) * 1e-3
    x[3] = 0
    check(x, y, 8, metric="cosine")
    assert (neighbours(x, y, 2, metric="cosine").forward_scores[3] == 0).all()


@pytest.mark.parametrize("scale", [1e-30, 1e25, 1e-60, 1e60])
def test_cosine_of_tiny_and_huge_vectors(scale):
    x = np.array([[3.0, 4.0], [4.0, -3.0]]) * scale
    np.testing.assert_allclose(neighbours(x, x, 1, metric="cosine").forward_scores, 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8"])
def test_memory_maps_of_any_float(kind, tmp_path):
    rng = np.random.default_rng(1)
    x, y = whole(rng, 60, 4).astype(kind), whole(rng, 90, 4).astype(kind)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    mapped = (np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    assert_same(neighbours(*mapped, 3), neighbours(x.astype(float), y.astype(float), 3))


@pytest.mark.parametrize("metric", ["dot", "cosine"])
def test_the_number_of_threads_changes_no_bit(metric, monkeypatch):
    """Given the same tiles: a product is made by one thread, whichever, and blocks are taken in their order."""
    x, y = np.random.default_rng(1).standard_normal((2, 700, 24), np.float32)
    monkeypatch.setattr(exact, "tile_shape", lambda *_, **__: (64, 128))
    found = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(exact, "_threads", lambda: threads)  # noqa: B023 - used before it changes
        found.append(neighbours(x, y, 5, metric=metric))
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("k", [1, 4, 20])
@pytest.mark.parametrize("budget", [1_500_000, 8_000_000])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.slow
def test_memory_stays_within_the_budget(k, budget, threads, monkeypatch):
    monkeypatch.setattr(exact, "_threads", lambda: threads)
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1300, 32), np.float32)
    results = 2 * 1300 * k * 12
    neighbours(x[:10], y[:10], 1)  # whatever is imported or cached on a first call
    tracemalloc.start()
    try:
        neighbours(x, y, k, metric="cosine", budget=budget)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= budget + 2 * results


@pytest.mark.parametrize("metric", ["dot", "cosine"])
def test_more_neighbours_than_rows_need_no_more_memory(metric):
    x, y = whole(np.random.default_rng(0), 300, 4), whole(np.random.default_rng(1), 200, 4)
    everything = neighbours(x, y, 300, metric=metric)
    more = neighbours(x, y, 10**30, metric=metric)
    assert more.forward_ids.shape == (300, 200)
    assert_same(everything, more)


def test_infinity_minus_infinity_is_no_score(monkeypatch):
    """A tile with it would be skipped for its row, whose neighbours of other tiles would look whole."""
    monkeypatch.setattr(exact, "tile_shape", lambda *_, **__: (32, 64))
    x, y = np.ones((40, 1024), np.float32), np.ones((200, 1024), np.float32)
    x[35], y[150] = 0, 0
    x[35, [0, -1]], y[150, [0, -1]] = 1e20, (1e20, -1e20)  # so far apart that BLAS adds them up apart
    with pytest.raises(ValueError, match="does not fit float32"):
        neighbours(x, y, 2)
