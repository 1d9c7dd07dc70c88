"""The running top k takes tables in turn and gives what one sort of everything gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from isoglot.search.best import LOWEST, Best


def feed(best, tables, group):
    first = 0
    for table in tables:
        width = table.shape[1]
        padded = np.full((len(table), -(-width // group) * group), LOWEST, np.float32)
        padded[:, :width] = table
        maxima = padded.reshape(len(table), -1, group).max(axis=2)
        best.take(maxima, lambda row, column, padded=padded: padded[row, column], group=group, first=first)
        first += width


@given(
    st.integers(1, 40),
    st.sampled_from([1, 4, 8]),
    st.lists(st.integers(1, 30), min_size=1, max_size=4),
    st.integers(1, 5),
    st.integers(0, 2**32 - 1),
)
def test_equals_a_stable_sort_whatever_the_tables_and_ties(k, group, widths, spread, seed):
    rng = np.random.default_rng(seed)
    tables = [rng.integers(-spread, spread + 1, (3, width)).astype(np.float32) for width in widths]
    together = np.concatenate(tables, axis=1)
    k = min(k, together.shape[1])
    best = Best.empty(3, k)
    feed(best, tables, group)
    order = np.argsort(-together, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(best.ids, order)
    np.testing.assert_array_equal(best.scores, np.take_along_axis(together, order, axis=1))


def test_rows_that_cannot_gain_are_not_looked_at():
    best = Best.empty(2, 1)
    feed(best, [np.array([[5.0, 1.0], [1.0, 1.0]], np.float32)], 2)
    seen = []

    def look(row, column):
        seen.extend(row.ravel().tolist())
        return np.full(column.shape, 3.0, np.float32)

    best.take(np.full((2, 1), 3.0, np.float32), look, group=2, first=2)
    assert seen == [1]
    assert best.scores.tolist() == [[5.0], [3.0]]
