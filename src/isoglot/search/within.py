"""Paraphrases: pairs within one set of vectors, by the same neighbours and margins as pairs between two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.checkpoint import Checkpoint
from isoglot.search.mining import Allowed, Pairs, choose, greedy, ordered
from isoglot.search.neighbours import BUDGET, Neighbours, Product, neighbours
from isoglot.search.top import Floats, Ids


def mine_within(
    x: NDArray[Any],
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
    """Pair rows of `x` (N, D) with other rows of it; every pair once, with `source < target`.

    `direction` is that of `choose_within`; the rest is that of `mine`.
    """
    found = neighbours(
        x, x, k + 1, metric="cosine", budget=budget, product=product, checkpoint=checkpoint, progress=progress
    )
    pairs = choose_within(others(found), margin=margin, direction=direction)
    return pairs if threshold is None else pairs.above(threshold)


def others(found: Neighbours) -> Neighbours:
    """The k nearest other rows, out of the k + 1 nearest rows of one set among themselves."""
    scores, ids = _without_self(found.forward_scores, found.forward_ids)
    return Neighbours(scores, ids, scores, ids)


def choose_within(
    found: Neighbours, *, margin: str = "ratio", direction: str = "max", allowed: Allowed | None = None
) -> Pairs:
    """Pairs of rows out of `others`: "forward" and "backward" give every row with its best, "intersection" the rows
    that are each other's best, "max" a greedy choice that uses no row twice. `allowed`: see `choose`.
    """
    agreed = "intersection" if direction == "intersection" else "forward"
    pairs = choose(found, margin=margin, direction=direction if direction not in ("max", "backward") else agreed,
                   allowed=allowed)  # fmt: skip
    sides = np.stack([np.minimum(pairs.source, pairs.target), np.maximum(pairs.source, pairs.target)])
    sides, first = np.unique(sides, axis=1, return_index=True)
    once = ordered(sides[0], sides[1], pairs.score[first])
    return greedy(once, shared=True) if direction == "max" else once


def _without_self(scores: Floats, ids: Ids) -> tuple[Floats, Ids]:
    """Each row without itself, or, where equal rows have pushed it out, without the last."""
    n, width = ids.shape
    drop = ids == np.arange(n)[:, None]
    drop[~drop.any(axis=1), width - 1 :] = True
    shape = (n, max(0, width - 1))
    return scores[~drop].reshape(shape), ids[~drop].reshape(shape)
