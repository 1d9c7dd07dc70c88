"""Mined hard negatives equal a loop over all pairs: the nearest targets that are no translation, ties by row."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from search_loops import cosine

from isoglot.search import pairs as module
from isoglot.search.pairs import hard_negatives


def loop(x, y, gold, count):
    """For each row of x: all rows of y by falling cosine, then by row, without the translations."""
    known = set(zip(*gold, strict=True))
    table = []
    for i, row in enumerate(x):
        order = sorted(range(len(y)), key=lambda j: (-round(cosine(row, y[j]), 5), j))
        table.append([j for j in order if (i, j) not in known][:count])
    return table


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 20), st.integers(1, 4), st.integers(0, 15), st.integers(0, 2**32 - 1))
def test_equals_the_loop(n, m, count, pairs, seed):
    """Rows along few directions, so that ties abound; sources with no, one and several translations."""
    rng = np.random.default_rng(seed)
    x, y = (np.eye(4, dtype=np.float32)[rng.integers(0, 4, rows)] for rows in (n, m))
    gold = rng.integers(0, n, pairs).tolist(), rng.integers(0, m, pairs).tolist()
    found = hard_negatives(x, y, gold, count)
    assert found.shape == (n, count)
    for row, wanted in zip(found.tolist(), loop(x, y, gold, count), strict=True):
        assert row == wanted + [-1] * (count - len(wanted))


def test_blocks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((150, 8)).astype(np.float32), rng.standard_normal((120, 8)).astype(np.float32)
    gold = np.arange(120), rng.permutation(120)
    whole = hard_negatives(x, y, gold, 3)
    monkeypatch.setattr(module, "_ROWS", 7)
    np.testing.assert_array_equal(hard_negatives(x, y, gold, 3, budget=450_000), whole)
