"""Chunks are a partition within the budget, longest first, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.encoders.packing import pack


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 100))
def test_every_row_once_within_the_budget_longest_first(lengths, budget):
    counts = np.array(lengths, dtype=np.int64)
    chunks = pack(counts, budget)
    order = np.concatenate([np.empty(0, np.int64), *chunks])
    assert sorted(order) == list(range(len(lengths)))
    assert all(len(chunk) == 1 or len(chunk) * counts[chunk].max() <= budget for chunk in chunks)
    assert (np.diff(counts[order]) <= 0).all()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=100), st.integers(1, 100))
def test_no_chunk_could_have_taken_the_next_row(lengths, budget):
    counts = np.array(lengths)
    chunks = pack(counts, budget)
    assert all((len(chunk) + 1) * counts[chunk].max() > budget for chunk in chunks[:-1])


def test_equal_lengths_keep_their_order():
    assert [chunk.tolist() for chunk in pack(np.array([2, 3, 2, 3]), 6)] == [[1, 3], [0, 2]]


def test_a_budget_without_tokens_is_refused():
    with pytest.raises(ValueError, match="at least one token, got 0"):
        pack(np.array([1]), 0)
