"""Nearest neighbours among vectors of a bit for each dimension, the best of which are scored with exact vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.search.best import Best
from isoglot.search.blocks import Metric
from isoglot.search.exact import BUDGET, rescore

Ids = NDArray[np.int64]


class _Restored:
    """Vectors of 256 steps, of which those that are asked for are computed in float32."""

    def __init__(self, steps: NDArray[Any], ranges: NDArray[Any]) -> None:
        self.steps, (self.lowest, highest) = steps, np.asarray(ranges, np.float32)
        self.size, self.least = (highest - self.lowest) / np.float32(255), np.iinfo(steps.dtype).min

    def __getitem__(self, rows: Ids) -> NDArray[np.float32]:
        steps = self.steps[rows].astype(np.float32) - self.least
        return np.asarray(self.lowest + (steps + np.float32(0.5)) * self.size)


@check_arguments()
def search_binary(
    queries: NDArray[Any],
    codes: NDArray[Any],
    vectors: NDArray[Any],
    k: PositiveInt,
    *,
    ranges: NDArray[Any] | None = None,
    centre: NDArray[Any] | float = 0,
    oversampling: PositiveInt = 16,
    metric: Metric = "cosine",
    budget: int = BUDGET,
) -> tuple[NDArray[np.float32], Ids]:
    """Scores and ids (Q, min(k, N)) of the rows nearest to each query, best first; of equal scores the lowest id first.

    queries       (Q, D), float
    codes         (N, ceil(D / 8)), `quantize_vectors(vectors, "ubinary")` or "binary"; all of them are read
    vectors       (N, D), float, or int8 or uint8 with `ranges`, for the scores; only candidates are read, so that they
                  may be a memory map
    ranges        (2, D) those that the int8 or uint8 vectors were made with
    centre        (D,) subtracted from queries before their signs are taken; codes are then of `vectors - centre`. Where
                  all vectors point in one direction, as those of E5 do, it should be their mean
    oversampling  candidates for each neighbour: those of the least Hamming distance, of equal ones the lowest ids
    budget        maximum working memory in bytes, about

    Raises ValueError for shapes that do not fit and impossible numbers.
    """
    size = len(codes)
    if queries.ndim != 2 or codes.shape != (size, -(-queries.shape[1] // 8)):
        raise ValueError(f"queries {queries.shape} need codes (N, {-(-queries.shape[-1] // 8)}), got {codes.shape}")
    if vectors.shape != (size, queries.shape[1]):
        raise ValueError(f"vectors must be ({size}, {queries.shape[1]}), got {vectors.shape}")
    if (vectors.dtype.kind in "iu") != (ranges is not None):
        raise ValueError(f"ranges belong to vectors of int8 or uint8, and these are {vectors.dtype}")
    k = min(k, size)
    if not k or not len(queries):
        return np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    if np.ndim(centre) and np.shape(centre) != (queries.shape[1],):
        raise ValueError(f"centre must be ({queries.shape[1]},), got {np.shape(centre)}")
    ids = find_candidates(np.packbits(queries > centre, axis=1), codes, min(size, k * oversampling), budget=budget)
    rows: Any = vectors if ranges is None else _Restored(vectors, ranges)
    best = rescore(queries, rows, Best(np.zeros(ids.shape, np.float32), ids), k, metric=metric, budget=budget)
    return best.scores, best.ids


def find_candidates(queries: NDArray[Any], codes: NDArray[Any], count: int, *, budget: int = BUDGET) -> Ids:
    """Ids (Q, count) of the codes with the least Hamming distance to codes (Q, B), nearest first, then lowest id.

    Codes are uint8, or int8 as "binary" makes them.
    """
    sides = [_words(side) for side in (queries, codes)]
    block = max(count, 4096)
    step = max(1, budget // (32 * (block + count)))
    candidates = np.empty((len(queries), count), np.int64)
    for first in range(0, len(queries), step):
        some = sides[0][first : first + step]
        best = np.empty((len(some), 0), np.int64)  # distance and id in one number, so that equal distances are ordered
        for start in range(0, len(codes), block):
            part = sides[1][start : start + block]
            keys = np.zeros((len(some), len(part)), np.int64)
            for column in range(part.shape[1]):
                keys += np.bitwise_count(some[:, column, None] ^ part[:, column])
            keys = keys * len(codes) + np.arange(start, start + len(part))
            best = np.concatenate([best, keys], axis=1)
            if best.shape[1] > count:
                best = np.partition(best, count - 1, axis=1)[:, :count]
        candidates[first : first + step] = np.sort(best, axis=1) % len(codes)
    return candidates


def _words(codes: NDArray[Any]) -> NDArray[np.uint64]:
    """Codes as words of 64 bits, the last one filled with zeros."""
    codes = codes.view(np.uint8) ^ np.uint8(128) if codes.dtype == np.int8 else codes.astype(np.uint8, copy=False)
    filled = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))
    return filled.view(np.uint64)
