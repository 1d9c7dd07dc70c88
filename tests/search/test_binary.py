"""Search over bits against plain loops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_loops import top

from isoglot.model import find_ranges, quantize_vectors
from isoglot.search import search_binary
from isoglot.search.binary import find_candidates


def loops(queries, codes, count):
    """Ids by Hamming distance, then id."""

    def nearness(query, code):
        return -sum(bin(int(a) ^ int(b)).count("1") for a, b in zip(query, code, strict=True))

    return [[at for _, at in row] for row in top(queries, codes, count, nearness)]


@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 11), st.integers(1, 40))
def test_candidates_are_the_nearest_codes(seed, size, width, count):
    random = np.random.default_rng(seed)
    codes, queries = (random.integers(0, 256, (n, width)).astype(np.uint8) for n in (size, 3))
    expected = loops(queries, codes, min(count, size))
    assert find_candidates(queries, codes, min(count, size), budget=1).tolist() == expected
    signed = (codes ^ 128).view(np.int8)
    assert find_candidates(queries, signed, min(count, size)).tolist() == expected


def test_more_codes_than_a_block():
    random = np.random.default_rng(1)
    codes, queries = (random.integers(0, 4, (n, 2)).astype(np.uint8) for n in (5000, 2))
    assert find_candidates(queries, codes, 50).tolist() == loops(queries, codes, 50)


@pytest.mark.parametrize("stored", ["float", "int8", "uint8"])
def test_candidates_are_scored_exactly(stored):
    random = np.random.default_rng(2)
    vectors = random.standard_normal((300, 64)).astype(np.float32)
    queries = vectors[:20] + 0.1 * random.standard_normal((20, 64)).astype(np.float32)
    rows, ranges = vectors, None
    if stored != "float":
        rows, ranges = quantize_vectors(vectors, stored), find_ranges(vectors)
    scores, ids = search_binary(queries, np.packbits(vectors > 0, axis=1), rows, 5, ranges=ranges, oversampling=60)
    cosines = queries @ vectors.T / np.linalg.norm(queries, axis=1)[:, None] / np.linalg.norm(vectors, axis=1)
    near = 1e-5 if stored == "float" else 0.003
    assert np.allclose(scores, np.take_along_axis(cosines, ids, axis=1), atol=near)
    assert np.allclose(scores, -np.sort(-cosines, axis=1)[:, :5], atol=near)


def test_a_centre_finds_what_signs_alone_do_not():
    random = np.random.default_rng(3)
    vectors = (5 + random.standard_normal((400, 64))).astype(np.float32)  # all signs are alike
    centre = vectors.mean(axis=0)
    _, ids = search_binary(vectors, np.packbits(vectors > centre, axis=1), vectors, 1, centre=centre, oversampling=1)
    assert ids[:, 0].tolist() == list(range(400))


def test_no_queries():
    assert search_binary(np.ones((0, 8)), np.zeros((4, 1), np.uint8), np.ones((4, 8)), 2)[1].shape == (0, 2)
