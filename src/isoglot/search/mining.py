"""Pairs that translate each other, out of two sets of vectors.

Follows the miner of LASER and XTREME: exact neighbours both ways, a margin for every candidate, then one of four ways
to choose. `max`, the usual one, pools the best of every source and of every target and takes them greedily, best
first, each sentence once. Whatever depends on order is settled by the score, then the source, then the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.margin import Doubles, margins
from isoglot.search.neighbours import BUDGET, neighbours
from isoglot.search.top import Ids


@dataclass(frozen=True, slots=True)
class Pairs:
    """P pairs, best first: row numbers `source` and `target` (P,) int64 and `score` (P,) float64."""

    source: Ids
    target: Ids
    score: Doubles

    def __len__(self) -> int:
        return len(self.score)

    def above(self, threshold: float) -> Pairs:
        """The pairs whose score is at least the threshold."""
        kept = self.score >= threshold
        return Pairs(self.source[kept], self.target[kept], self.score[kept])


def mine(
    x: NDArray[Any],
    y: NDArray[Any],
    *,
    k: int = 4,
    margin: str = "ratio",
    direction: str = "max",
    threshold: float | None = None,
    budget: int = BUDGET,
) -> Pairs:
    """Pair rows of `x` (N, D) with rows of `y` (M, D) by cosine and margin; the vectors need not be normalised.

    `direction`: "forward" gives every source its best target, "backward" every target its best source (both may use a
    sentence of the other side often), "intersection" the pairs that both give, "max" a greedy one-to-one choice among
    the pairs that either gives. Nothing is dropped for its score unless a `threshold` says so. `k`, `margin`: see
    `margins`; `budget`: see `neighbours`. Raises `ValueError` for unknown names and what `neighbours` refuses.
    """
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is {direction!r}; use one of {', '.join(DIRECTIONS)}")
    found = neighbours(x, y, k, metric="cosine", budget=budget)
    if not len(x) or not len(y):
        return _pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    source, target, score = _best(found.forward_scores, found.forward_ids, found.backward_scores, margin)
    forward = _pairs(source, target, score)
    target, source, score = _best(found.backward_scores, found.backward_ids, found.forward_scores, margin)
    pairs = DIRECTIONS[direction](forward, _pairs(source, target, score))
    return pairs if threshold is None else pairs.above(threshold)


def _best(scores: NDArray[Any], ids: Ids, other_scores: NDArray[Any], margin: str) -> tuple[Ids, Ids, Doubles]:
    """Every row, its candidate of the greatest margin, and that margin."""
    table = margins(scores, ids, other_scores, margin=margin)
    rows = np.arange(len(table))
    # Of equal margins the lowest id wins: the mask hides the others behind an id that does not exist.
    top = table.max(axis=1, keepdims=True)
    best = np.where(table == top, ids, np.iinfo(np.int64).max).argmin(axis=1)
    return rows, ids[rows, best], top[:, 0]


def _pairs(source: Ids, target: Ids, score: Doubles) -> Pairs:
    order = np.lexsort((target, source, -score))
    return Pairs(source[order], target[order], score[order])


def _forward(forward: Pairs, backward: Pairs) -> Pairs:  # noqa: ARG001 - all directions are called alike
    return forward


def _backward(forward: Pairs, backward: Pairs) -> Pairs:  # noqa: ARG001
    return backward


def _intersection(forward: Pairs, backward: Pairs) -> Pairs:
    answer = np.full(max(int(forward.source.max()), int(backward.source.max())) + 1, -1)
    answer[forward.source] = forward.target
    both = answer[backward.source] == backward.target
    return Pairs(backward.source[both], backward.target[both], backward.score[both])


def _max(forward: Pairs, backward: Pairs) -> Pairs:
    pool = _pairs(
        np.concatenate([forward.source, backward.source]),
        np.concatenate([forward.target, backward.target]),
        np.concatenate([forward.score, backward.score]),
    )
    used_source = bytearray(int(pool.source.max()) + 1)
    used_target = bytearray(int(pool.target.max()) + 1)
    kept = []
    # A plain loop: each step depends on the one before, and two million steps take less than a second.
    for place, (source, target) in enumerate(zip(pool.source.tolist(), pool.target.tolist(), strict=True)):
        if not used_source[source] and not used_target[target]:
            used_source[source] = used_target[target] = 1
            kept.append(place)
    return Pairs(pool.source[kept], pool.target[kept], pool.score[kept])


DIRECTIONS: dict[str, Callable[[Pairs, Pairs], Pairs]] = {
    "max": _max,
    "forward": _forward,
    "backward": _backward,
    "intersection": _intersection,
}
