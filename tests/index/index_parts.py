"""Sentences and vectors for the tests of indexes, and the plain search that indexes must agree with."""

import numpy as np
from search_loops import top

from isoglot.index import Index, Origin, Sentence

DIM = 8
ORIGIN = Origin("toy", "0" * 64, DIM)


def unit(rows, dim=DIM, seed=0):
    """Random rows of length one."""
    vectors = np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def sentences(rows, first=0):
    """Row i: id `s<i>`, languages taking turns."""
    return [Sentence(f"s{i}", f"text {i}", ("deu", "eng", "ara")[i % 3]) for i in range(first, first + rows)]


def make(folder, rows=50, kind="flat", vectors=None):
    """An index of these sentences with random vectors, or given ones."""
    table = unit(rows) if vectors is None else vectors
    index = Index.create(folder, ORIGIN, kind=kind)
    index.add_vectors(sentences(len(table)), table)
    index.restructure()
    return index


def brute_force(vectors, queries, k):
    """(score, row) of the k greatest cosines, one by one."""
    return top(queries / np.linalg.norm(queries.astype(float), axis=1, keepdims=True), vectors, k)
