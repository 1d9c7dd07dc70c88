"""Sentences and vectors for the tests of indexes, and the plain search that indexes must agree with."""

import numpy as np

from isoglot.index import Origin, Sentence

DIM = 8
ORIGIN = Origin("toy", "0" * 64, DIM)


def unit(rows, dim=DIM, seed=0):
    """Random rows of length one."""
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def sentences(rows, first=0):
    """Row i: id `s<i>`, languages taking turns."""
    return [Sentence(f"s{i}", f"text {i}", ("deu", "eng", "ara")[i % 3]) for i in range(first, first + rows)]


def brute_force(vectors, queries, k, kept=None):
    """(score, row) of the k greatest cosines, one by one."""
    found = []
    for query in queries.astype(float):
        length = sum(value * value for value in query) ** 0.5 or 1.0
        scores = []
        for row, vector in enumerate(vectors.astype(float)):
            if kept is None or row in kept:
                scores.append((sum(a * b for a, b in zip(vector, query, strict=True)) / length, row))
        found.append(sorted(scores, key=lambda pair: (-pair[0], pair[1]))[:k])
    return found
