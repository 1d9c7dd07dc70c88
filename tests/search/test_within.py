"""Paraphrases equal the loops over all other rows, and no row is paired with itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_loops import cosine, top
from search_loops import margin as margin_in_loops

from isoglot.search import MARGINS, mine


def in_loops(x, k, kind, direction):
    """{(i, j): score} with i < j."""
    near = [[pair for pair in row if pair[1] != i][:k] for i, row in enumerate(top(x, x, len(x), cosine))]
    means = [sum(score for score, _ in row) / len(row) for row in near]
    best = {}
    for i, row in enumerate(near):
        scored = [(margin_in_loops(kind, cos, means[i], means[j]), j) for cos, j in row]
        best[i] = min(scored, key=lambda pair: (-pair[0], pair[1]))
    pairs = {(min(i, j), max(i, j)): score for i, (score, j) in best.items()}
    if direction == "intersection":
        return {(i, j): s for (i, j), s in pairs.items() if best[i][1] == j and best[j][1] == i}
    if direction != "max":
        return pairs
    kept, used = {}, set()
    for (i, j), score in sorted(pairs.items(), key=lambda item: (-item[1], *item[0])):
        if i not in used and j not in used:
            kept[i, j] = score
            used |= {i, j}
    return kept


@settings(max_examples=60)
@given(
    st.integers(2, 20),
    st.integers(1, 5),
    st.sampled_from(sorted(MARGINS)),
    st.sampled_from(["max", "forward", "backward", "intersection"]),
    st.integers(0, 2**32 - 1),
)
def test_equals_the_loops(n, k, margin, direction, seed):
    x = np.random.default_rng(seed).standard_normal((n, 10)).astype(np.float32)
    pairs = mine(x, k=k, margin=margin, direction=direction)
    found = {(i, j): s for i, j, s in zip(pairs.source.tolist(), pairs.target.tolist(), pairs.score, strict=True)}
    expected = in_loops(x, k, margin, direction)
    assert found.keys() == expected.keys()
    for pair, score in expected.items():
        assert found[pair] == pytest.approx(score, rel=1e-3, abs=1e-4)
    assert (np.diff(pairs.score) <= 0).all()


def test_equal_vectors_never_pair_a_row_with_itself():
    pairs = mine(np.ones((30, 4)), k=3, direction="forward")
    assert len(pairs) > 0
    assert (pairs.source < pairs.target).all()


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_give_no_pairs(rows):
    assert len(mine(np.ones((rows, 3)))) == 0
