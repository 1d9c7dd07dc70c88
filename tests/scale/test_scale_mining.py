"""Mining in blocks gives the bits of one search, in this process and on a cluster whose workers are killed."""

import os
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ray_workers import descendants
from search_loops import assert_same
from threadpoolctl import threadpool_limits

from isoglot.core.errors import EncoderError
from isoglot.scale import Cluster, neighbours_shards
from isoglot.scale import mining as scale_mining
from isoglot.scale.mining import BLOCK, TILE, _cuts, _merge
from isoglot.search import Checkpoint, neighbours
from isoglot.search.best import Best
from isoglot.search.exact import tile_shape

pytestmark = pytest.mark.slow


def vectors(rows, dim=24, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


def with_ties(rows, seed):
    """Few distinct rows, so that most scores are met many times."""
    return np.random.default_rng(seed).integers(-1, 2, (rows, 3)).astype(np.float32)


@pytest.mark.parametrize("make", [vectors, with_ties], ids=["random", "ties"])
@pytest.mark.parametrize(("n", "m"), [(9000, 13000), (3 * TILE, 100), (700, 2 * TILE + 1)])
def test_blocks_equal_one_search(make, n, m):
    x, y = make(n, seed=1), make(m, seed=2)
    with threadpool_limits(1):
        expected = neighbours(x, y, 4, metric="cosine")
    assert_same(neighbours_shards(x, y, 4, block=TILE), expected)


@given(st.integers(1, 6), st.integers(1, 5), st.lists(st.integers(1, 7), min_size=1, max_size=5), st.randoms())
def test_merging_equals_sorting_everything(rows, k, sizes, random):
    """The oracle: all scores of a row sorted by score, then by id."""
    total = sum(sizes)
    table = np.array([[random.randint(-2, 2) for _ in range(total)] for _ in range(rows)], np.float32)
    best = Best.empty(rows, min(k, total))
    for place, size in enumerate(sizes):
        start = sum(sizes[:place])
        part = [sorted((-row[start + c], c) for c in range(size))[:k] for row in table]
        scores = np.array([[-score for score, _ in row] for row in part], np.float32)
        _merge(best, scores, np.array([[c for _, c in row] for row in part]) + start)
    expected = [sorted((-score, c) for c, score in enumerate(row))[: min(k, total)] for row in table]
    np.testing.assert_array_equal(best.scores, [[-score for score, _ in row] for row in expected])
    np.testing.assert_array_equal(best.ids, [[c for _, c in row] for row in expected])


@given(st.integers(0, 10**7), st.integers(1, 40))
def test_cuts_cover_a_side_in_whole_tiles(size, blocks):
    block = blocks * TILE
    cuts = _cuts(size, block)
    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])][: len(cuts)]
    assert sum(stop - start for start, stop in cuts) == size
    assert all(start % TILE == 0 for start, _ in cuts)
    assert all(stop - start >= min(block, size) for start, stop in cuts)
    assert all(stop - start < 2 * block for start, stop in cuts)


@pytest.mark.parametrize("budget", [2_000_000, 30_000_000, 1 << 28])
def test_a_block_has_the_tile_of_the_whole(budget):
    for n, m in [(3 * TILE + 5, 2 * TILE), (100, 9 * TILE)]:
        whole = tile_shape(n, m, 64, 4, budget)
        for rows in _cuts(n, TILE):
            for columns in _cuts(m, TILE):
                assert tile_shape(rows[1] - rows[0], columns[1] - columns[0], 64, 4, budget) == whole
    assert BLOCK % TILE == 0


def test_files_and_folders_stand_for_arrays(tmp_path):
    x, y = vectors(TILE + 100, seed=5), vectors(300, seed=6)
    (tmp_path / "x").mkdir()
    for place, start in enumerate(range(0, len(x), 1000)):
        np.save(tmp_path / "x" / f"{place:03d}.npy", x[start : start + 1000])
    np.save(tmp_path / "y.npy", y.astype(np.float16))
    expected = neighbours_shards(x, y.astype(np.float16), 2, block=TILE)
    assert_same(neighbours_shards(tmp_path / "x", tmp_path / "y.npy", 2, block=TILE), expected)


@pytest.mark.parametrize(("n", "m"), [(0, 5), (5, 0), (0, 0)])
def test_empty_sides(n, m):
    assert_same(neighbours_shards(np.ones((n, 3)), np.ones((m, 3)), 4), neighbours(np.ones((n, 3)), np.ones((m, 3)), 4))


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), {}, "must be"),
        (np.ones((2, 3)), np.ones((2, 3)), {"block": 100}, "multiple of 4096"),
        (np.array([[1.0], [np.nan]]), np.ones((2, 1)), {}, "rows 0 to 2 with 0 to 2: row 1"),
    ],
)
def test_refused(x, y, options, message):
    with pytest.raises(ValueError, match=message):
        neighbours_shards(x, y, **{"k": 4, **options})


def test_files_that_are_no_vectors(tmp_path):
    with pytest.raises(EncoderError, match="contains no vectors"):
        neighbours_shards(tmp_path, np.ones((2, 3)), 4)
    (tmp_path / "x.npy").write_bytes(b"nonsense")
    with pytest.raises(EncoderError, match=r"x\.npy: is not a NumPy table"):
        neighbours_shards(tmp_path, np.ones((2, 3)), 4)


def test_a_cluster_gives_the_same_bits_though_a_worker_is_killed(tmp_path):
    pytest.importorskip("ray")
    if not Path("/proc").is_dir():
        pytest.skip("workers are found through /proc")
    x, y = vectors(5 * TILE + 100, 96, seed=7), vectors(4 * TILE, 96, seed=8)
    np.save(tmp_path / "x.npy", x)
    killed = []

    def kill_one(done, total):
        if not killed and done >= 2 and (workers := descendants("ray::_block")):
            os.kill(workers[0], signal.SIGKILL)
            killed.append(workers[0])
        seen.append((done, total))

    seen = []
    with threadpool_limits(1):
        expected = neighbours(x, y, 4, metric="cosine")
    cluster = Cluster("local", workers=2)
    found = neighbours_shards(tmp_path / "x.npy", y, 4, block=TILE, cluster=cluster, progress=kill_one)
    assert killed
    assert seen == [(place, 20) for place in range(1, 21)]
    assert_same(found, expected)


def test_a_comparison_resumes_where_it_was_stopped(tmp_path, monkeypatch):
    random = np.random.default_rng(3)
    x, y = (random.normal(size=(rows, 8)).astype(np.float32) for rows in (5 * TILE, 3 * TILE))
    whole = neighbours_shards(x, y, 3, block=TILE)
    made = []

    def stop(done, _total):
        if done == 7:
            raise KeyboardInterrupt

    own = scale_mining._block
    monkeypatch.setattr(scale_mining, "_block", lambda *given: made.append(given[-2:]) or own(*given))
    checkpoint = Checkpoint(tmp_path / "neighbours.bin", every=0)
    monkeypatch.setattr("isoglot.search.checkpoint.SHARE", 0)
    with pytest.raises(KeyboardInterrupt):
        neighbours_shards(x, y, 3, block=TILE, checkpoint=checkpoint, progress=stop)
    del made[:]
    again = neighbours_shards(x, y, 3, block=TILE, checkpoint=checkpoint)
    assert len(made) == 15 - 6
    assert_same(again, whole)
    del made[:]
    neighbours_shards(x, y, 3, block=TILE, checkpoint=checkpoint)
    assert made == []  # nothing is compared again
    neighbours_shards(x, y, 2, block=TILE, checkpoint=checkpoint)
    assert len(made) == 15  # of another search
