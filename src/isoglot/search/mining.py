"""Pairs that translate each other, out of two sets of vectors.

Follows the miner of LASER and XTREME: exact neighbours both ways, a margin for every candidate, then one of four ways
to choose. `max`, the usual one, pools the best of every source and of every target and takes them greedily, best
first, each sentence once. Whatever depends on order is settled by the score, then the source, then the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.checkpoint import Checkpoint
from isoglot.search.margin import Doubles, margins
from isoglot.search.neighbours import BUDGET, Neighbours, Product, neighbours
from isoglot.search.top import Ids

Allowed = Callable[[Ids, Ids], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Pairs:
    """P pairs, best first: row numbers `source` and `target` (P,) int64 and `score` (P,) float64."""

    source: Ids
    target: Ids
    score: Doubles

    def __len__(self) -> int:
        return len(self.score)

    def above(self, threshold: float) -> Pairs:
        """The pairs whose score is at least the threshold. Raises `ValueError` for NaN."""
        if math.isnan(threshold):
            raise ValueError("threshold is NaN; pass a number")
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
    product: Product | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Pairs:
    """Pair rows of `x` (N, D) with rows of `y` (M, D) by cosine and margin; the vectors need not be normalised.

    `direction`: "forward" gives every source its best target, "backward" every target its best source (both may use a
    sentence of the other side often), "intersection" the pairs that both give, "max" a greedy one-to-one choice among
    the pairs that either gives. Nothing is dropped for its score unless a `threshold` says so. `k`, `margin`: see
    `margins`; `budget`, `product`, `checkpoint` and `progress`: see `neighbours`. Raises `ValueError` for unknown
    names and what `neighbours` refuses.
    """
    _known(direction)
    found = neighbours(
        x, y, k, metric="cosine", budget=budget, product=product, checkpoint=checkpoint, progress=progress
    )
    pairs = choose(found, margin=margin, direction=direction)
    return pairs if threshold is None else pairs.above(threshold)


def choose(
    found: Neighbours, *, margin: str = "ratio", direction: str = "max", allowed: Allowed | None = None
) -> Pairs:
    """The pairs of `mine`, from neighbours by cosine that are known already.

    `allowed` is asked for candidates, arrays of sources and of targets that broadcast to one shape; those for which it
    answers False are passed over, and the next best takes their place. Raises `ValueError` for unknown names.
    """
    _known(direction)
    if not found.forward_ids.size:
        return ordered(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    there = allowed or (lambda source, target: np.ones(np.broadcast_shapes(source.shape, target.shape), np.bool_))
    source, target, score = _best(found.forward_scores, found.forward_ids, found.backward_scores, margin, there)
    forward = ordered(source, target, score)
    target, source, score = _best(
        found.backward_scores, found.backward_ids, found.forward_scores, margin, lambda row, other: there(other, row)
    )
    return DIRECTIONS[direction](forward, ordered(source, target, score))


def _known(direction: str) -> None:
    if direction not in DIRECTIONS:
        raise ValueError(f"direction is {direction!r}; use one of {', '.join(DIRECTIONS)}")


def _best(
    scores: NDArray[Any], ids: Ids, other_scores: NDArray[Any], margin: str, allowed: Allowed
) -> tuple[Ids, Ids, Doubles]:
    """Every row with an allowed candidate, its candidate of the greatest margin, and that margin."""
    rows = np.arange(len(ids))
    table = margins(scores, ids, other_scores, margin=margin)
    table = np.where(allowed(rows[:, None], ids), table, -np.inf)
    # Of equal margins the lowest id wins: the mask hides the others behind an id that does not exist.
    top = table.max(axis=1, keepdims=True)
    best = np.where(table == top, ids, np.iinfo(np.int64).max).argmin(axis=1)
    kept = top[:, 0] > -np.inf
    return rows[kept], ids[rows, best][kept], top[kept, 0]


def ordered(source: Ids, target: Ids, score: Doubles) -> Pairs:
    """These pairs, best first; of equal scores by source, then by target."""
    order = np.lexsort((target, source, -score))
    return Pairs(source[order], target[order], score[order])


def _forward(forward: Pairs, backward: Pairs) -> Pairs:  # noqa: ARG001 - all directions are called alike
    return forward


def _backward(forward: Pairs, backward: Pairs) -> Pairs:  # noqa: ARG001
    return backward


def _intersection(forward: Pairs, backward: Pairs) -> Pairs:
    answer = np.full(int(max(forward.source.max(initial=-1), backward.source.max(initial=-1))) + 1, -1)
    answer[forward.source] = forward.target
    both = answer[backward.source] == backward.target
    return Pairs(backward.source[both], backward.target[both], backward.score[both])


def _max(forward: Pairs, backward: Pairs) -> Pairs:
    pool = ordered(
        np.concatenate([forward.source, backward.source]),
        np.concatenate([forward.target, backward.target]),
        np.concatenate([forward.score, backward.score]),
    )
    return greedy(pool, shared=False)


def greedy(pool: Pairs, *, shared: bool) -> Pairs:
    """Down the list, the pairs neither of whose sentences was used before.

    `shared`: sources and targets are rows of one set, so that a row used as the one cannot become the other.
    """
    used_source = bytearray(int(max(pool.source.max(initial=-1), pool.target.max(initial=-1))) + 1)
    used_target = used_source if shared else bytearray(len(used_source))
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
