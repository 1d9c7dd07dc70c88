"""Pairs of vectors of translations: margins, selection of pairs, paraphrases and hard negatives.

Follows the miner of LASER and XTREME: exact neighbours both ways, a margin for every candidate, then one of four ways
to choose. "max", the usual one, pools the best of every source and of every target and takes them greedily, best
first, each sentence once. Ties are broken by the score, then the source, then the target.

A cosine alone favours sentences that are near to everything. Artetxe and Schwenk (2019, "Margin-based Parallel Corpus
Mining with Multilingual Sentence Embeddings", eq. 2 and 3) compare it with the mean cosine of both sentences to their
k nearest neighbours on the other side. With `a` that mean of means,

    absolute   cos
    distance   cos - a
    ratio      cos / a

Deviation: `ratio` divides by at least `SMALLEST`. The mean can be zero or negative for centred vectors or a collapsed
encoder, where the quotient would be infinite or reverse the order of the cosines; with the floor it is finite and keeps
its sign and its order. Wherever the mean is above the floor nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import quote
from isoglot.search.best import Ids
from isoglot.search.blocks import Direction, Margin
from isoglot.search.checkpoint import Checkpoint
from isoglot.search.exact import BUDGET, Neighbours, neighbours

Doubles = NDArray[np.float64]

Allowed = Callable[[Ids, Ids], NDArray[np.bool_]]

SMALLEST = 1e-6
_ROWS = 1 << 16  # sources whose hard negatives are chosen together


# Of a cosine and the mean around its pair. A usual `distance` is 0, a usual `ratio` 1, with thresholds of 1.04 to 1.06.
MARGINS: dict[Margin, Callable[[Doubles, Doubles], Doubles]] = {
    "absolute": lambda cosine, _: cosine,
    "distance": lambda cosine, around: cosine - around,
    "ratio": lambda cosine, around: cosine / np.maximum(around, SMALLEST),
}


@check_arguments()
def margins(scores: NDArray[Any], ids: Ids, other_scores: NDArray[Any], *, margin: Margin = "ratio") -> Doubles:
    """Margin of each sentence with each of its k neighbours, (N, k) float64.

    `scores` and `ids` (N, k) are the sentences' neighbours on the other side, `other_scores` (M, k) those of the other
    side's sentences on this one: `neighbours` returns all three, and with the sides exchanged for the other direction.
    Raises `ValueError` for an unknown margin, and for shapes and ids that do not fit.
    """
    cosines = np.asarray(scores, np.float64)
    if not (scores.ndim == other_scores.ndim == 2 and scores.shape == ids.shape and ids.dtype.kind in "iu"):
        raise ValueError(f"scores and whole ids must be (N, k), got {scores.shape} and {ids.dtype} {ids.shape}")
    if ids.size and not (ids.min() >= 0 and ids.max() < len(other_scores)):
        raise ValueError(f"ids must be rows of other_scores, 0 to {len(other_scores) - 1}")
    means = cosines.mean(axis=1, keepdims=True)
    other_means = np.asarray(other_scores, np.float64).mean(axis=1)[ids]
    return MARGINS[margin](cosines, (means + other_means) / 2)


@dataclass(frozen=True, slots=True, eq=False)  # `==` of arrays is not a bool
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
        is_above = self.score >= threshold
        return Pairs(self.source[is_above], self.target[is_above], self.score[is_above])


@check_arguments()
def mine(
    x: NDArray[Any],
    y: NDArray[Any] | None = None,
    *,
    k: PositiveInt = 4,
    margin: Margin = "ratio",
    direction: Direction = "max",
    threshold: float | None = None,
    budget: int = BUDGET,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    device: str | None = None,
) -> Pairs:
    """Pair rows of `x` (N, D) with rows of `y` (M, D) by cosine and margin; the vectors need not be normalised.

    Without `y`, rows of `x` are paired with other rows of it. `k` and `margin`: see `margins`; `direction`: see
    `choose`. Pairs below `threshold` are dropped; None keeps all. `budget`, `checkpoint`, `progress` and `device`:
    see `neighbours`. Raises `ValueError` for unknown names and what `neighbours` rejects. `isoglot.mine` is the whole
    pipeline, from sentences.
    """
    within, y = y is None, x if y is None else y
    settings: dict[str, Any] = {"budget": budget, "checkpoint": checkpoint, "progress": progress, "device": device}
    nearest = neighbours(x, y, k + within, metric="cosine", **settings)
    pairs = choose(others(nearest) if within else nearest, margin=margin, direction=direction, within=within)
    return pairs if threshold is None else pairs.above(threshold)


@check_arguments()
def choose(
    hits: Neighbours,
    *,
    margin: Margin = "ratio",
    direction: Direction = "max",
    allowed: Allowed | None = None,
    within: bool = False,
) -> Pairs:
    """Pairs from neighbours by cosine.

    `direction`: "forward" is every source with its best target, "backward" every target with its best source (both may
    use a sentence of the other side several times), "intersection" the pairs in both, "max" a greedy one-to-one choice
    among the pairs in either. `allowed` is a filter of candidates, arrays of sources and of targets that broadcast to
    one shape; a candidate for which it returns False is replaced by the next best. With `within`, both sides are one
    set and its neighbours those of `others`: every pair is given once, with `source < target`, "forward" and "backward"
    are the same, and "max" uses no row twice. Raises `ValueError` for unknown names.
    """
    if within:
        return _choose_within(hits, margin, direction, allowed)
    if not hits.forward_ids.size:
        return sort_pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    allows = allowed or (lambda source, target: np.ones(np.broadcast_shapes(source.shape, target.shape), np.bool_))
    source, target, score = _best(hits.forward_scores, hits.forward_ids, hits.backward_scores, margin, allows)
    forward = sort_pairs(source, target, score)
    target, source, score = _best(
        hits.backward_scores, hits.backward_ids, hits.forward_scores, margin, lambda row, other: allows(other, row)
    )
    return DIRECTIONS[direction](forward, sort_pairs(source, target, score))


def _best(
    scores: NDArray[Any], ids: Ids, other_scores: NDArray[Any], margin: Margin, allowed: Allowed
) -> tuple[Ids, Ids, Doubles]:
    """The rows with an allowed candidate, their candidate of the greatest margin, and that margin."""
    rows = np.arange(len(ids))
    table = margins(scores, ids, other_scores, margin=margin)
    table = np.where(allowed(rows[:, None], ids), table, -np.inf)
    # Among equal margins the lowest id wins; the mask gives all others an id beyond the table.
    top = table.max(axis=1, keepdims=True)
    best = np.where(table == top, ids, np.iinfo(np.int64).max).argmin(axis=1)
    has_candidate = top[:, 0] > -np.inf
    return rows[has_candidate], ids[rows, best][has_candidate], top[has_candidate, 0]


def sort_pairs(source: Ids, target: Ids, score: Doubles) -> Pairs:
    """These pairs, best first; of equal scores by source, then by target."""
    order = np.lexsort((target, source, -score))
    return Pairs(source[order], target[order], score[order])


def _intersection(forward: Pairs, backward: Pairs) -> Pairs:
    answer = np.full(int(max(forward.source.max(initial=-1), backward.source.max(initial=-1))) + 1, -1)
    answer[forward.source] = forward.target
    both = answer[backward.source] == backward.target
    return Pairs(backward.source[both], backward.target[both], backward.score[both])


def _max(forward: Pairs, backward: Pairs) -> Pairs:
    pool = sort_pairs(
        np.concatenate([forward.source, backward.source]),
        np.concatenate([forward.target, backward.target]),
        np.concatenate([forward.score, backward.score]),
    )
    return greedy(pool, shared=False)


def greedy(pool: Pairs, *, shared: bool) -> Pairs:
    """The pairs whose sentences were not used in a pair further up the list.

    `shared`: sources and targets are rows of one set, so that a row is used at most once on either side.
    """
    used_source = bytearray(int(max(pool.source.max(initial=-1), pool.target.max(initial=-1))) + 1)
    used_target = used_source if shared else bytearray(len(used_source))
    places = []
    # A plain loop: each step depends on the one before, and two million steps take less than a second.
    for place, (source, target) in enumerate(zip(pool.source.tolist(), pool.target.tolist(), strict=True)):
        if not used_source[source] and not used_target[target]:
            used_source[source] = used_target[target] = 1
            places.append(place)
    return Pairs(pool.source[places], pool.target[places], pool.score[places])


DIRECTIONS: dict[Direction, Callable[[Pairs, Pairs], Pairs]] = {
    "max": _max,
    "forward": lambda forward, _: forward,
    "backward": lambda _, backward: backward,
    "intersection": _intersection,
}


@check_arguments()
def others(hits: Neighbours) -> Neighbours:
    """The k nearest other rows, from the k + 1 nearest rows of one set among themselves.

    A row is left out of its own neighbours, or the last one where equal rows have displaced it.
    """
    ids = hits.forward_ids
    n, width = ids.shape
    drop = ids == np.arange(n)[:, None]
    drop[~drop.any(axis=1), width - 1 :] = True
    scores, ids = (part[~drop].reshape(n, max(0, width - 1)) for part in (hits.forward_scores, ids))
    return Neighbours(scores, ids, scores, ids)


def _choose_within(hits: Neighbours, margin: Margin, direction: Direction, allowed: Allowed | None) -> Pairs:
    agreed: Direction = "intersection" if direction == "intersection" else "forward"
    pairs = choose(hits, margin=margin, direction=agreed, allowed=allowed)
    sides = np.stack([np.minimum(pairs.source, pairs.target), np.maximum(pairs.source, pairs.target)])
    sides, first = np.unique(sides, axis=1, return_index=True)
    once = sort_pairs(sides[0], sides[1], pairs.score[first])
    return greedy(once, shared=True) if direction == "max" else once


@check_arguments()
def hard_negatives(
    x: NDArray[Any],
    y: NDArray[Any],
    gold: tuple[Sequence[int] | Ids, Sequence[int] | Ids],
    count: PositiveInt,
    *,
    budget: int = BUDGET,
    progress: Callable[[int, int | None], None] | None = None,
    device: str | None = None,
) -> Ids:
    """The `count` rows of `y` (M, D) nearest by cosine to each row of `x` (N, D) that don't translate it, (N, count).

    Hard negatives for translation ranking (mUSE, Yang et al. 2019). Exact: a few more neighbours than `count` are
    found, so that enough are left without the translations.

    `gold` are pairs (rows of x, rows of y), (P,) both, of all known translations; a row of `x` may have several. Best
    first, of equal cosines the lowest row first; padded with -1. `budget`, `progress` and `device`: see
    `neighbours`. Raises ValueError for a count below 1, pairs outside the tables, and what `neighbours` rejects.
    """
    columns = [np.asarray(column) for column in gold] if isinstance(gold, tuple | list) else []
    is_numbers = all(column.dtype.kind in "iu" or not column.size for column in columns)
    if len(columns) != 2 or columns[0].ndim != 1 or columns[0].shape != columns[1].shape or not is_numbers:
        raise TypeError(f"gold must be two lists of equally many row numbers, got {quote(gold)}")
    source, target = (column.astype(np.int64) for column in columns)
    if len(source) and (min(source.min(), target.min()) < 0 or source.max() >= len(x) or target.max() >= len(y)):
        raise ValueError(f"gold contains a pair outside the tables of {len(x)} and {len(y)} rows")
    pairs = np.unique(source * len(y) + target)
    most = int(np.bincount(pairs // max(len(y), 1), minlength=1).max())
    near = neighbours(x, y, count + most, metric="cosine", budget=budget, progress=progress, device=device)
    out = np.full((len(x), count), -1, np.int64)
    for start in range(0, len(x), _ROWS):
        ids = near.forward_ids[start : start + _ROWS]
        cells = np.arange(start, start + len(ids))[:, None] * len(y) + ids
        translation = np.isin(cells, pairs)
        order = np.argsort(translation, axis=1, kind="stable")[:, :count]
        negatives = np.take_along_axis(np.where(translation, -1, ids), order, axis=1)
        out[start : start + len(ids), : negatives.shape[1]] = negatives
    return out
