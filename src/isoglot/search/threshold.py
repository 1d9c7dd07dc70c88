"""How good a mined list is against known pairs, and where to cut it.

Precision, recall and F1 as BUCC counts them: of the pairs kept, the share that is gold; of the gold pairs, the share
that is kept. Gold is a set; a pair named twice counts once.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoglot.search.mining import Pairs

Gold = Collection[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Quality:
    """Precision, recall and F1, each 0 to 1, of the pairs whose score is at least `threshold`."""

    threshold: float
    precision: float
    recall: float
    f1: float


def quality(pairs: Pairs, gold: Gold, *, threshold: float = -np.inf) -> Quality:
    """Score mined pairs against gold ones, `(source, target)` row numbers. Raises `ValueError` when gold is empty."""
    kept = pairs.above(threshold)
    return _quality(threshold, int(_hits(kept, gold).sum()), len(kept), len(set(gold)))


def tune(pairs: Pairs, gold: Gold) -> Quality:
    """The threshold of the best F1, and what it gives.

    Walks down the list and may cut only where the score falls, so that pairs of equal score are all in or all out. The
    threshold lies midway between the last score kept and the next; at the end of the list it is the last score. Of
    cuts with equal F1 the highest is taken. When no pair is gold the threshold is infinite: nothing is kept.
    """
    right = np.cumsum(_hits(pairs, gold))
    cuts = np.flatnonzero(np.append(pairs.score[:-1] > pairs.score[1:], len(pairs) > 0))
    size = len(set(gold))
    f1 = 2 * right[cuts] / (cuts + 1 + size)  # the same as 2PR / (P + R)
    if not len(cuts) or not f1.max():
        return _quality(np.inf, 0, 0, size)
    cut = int(cuts[f1.argmax()])
    return _quality(_between(pairs, cut), int(right[cut]), cut + 1, size)


def _hits(pairs: Pairs, gold: Gold) -> NDArray[np.bool_]:
    if not gold:
        raise ValueError("no gold pairs were given, so recall means nothing")
    known = set(gold)
    found = zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
    return np.fromiter((pair in known for pair in found), np.bool_, len(pairs))


def _between(pairs: Pairs, cut: int) -> float:
    score = float(pairs.score[cut])
    if cut + 1 == len(pairs):
        return score
    after = float(pairs.score[cut + 1])
    middle = after + (score - after) / 2
    return middle if middle > after else score  # two scores can be so close that nothing lies between them


def _quality(threshold: float, right: int, kept: int, gold: int) -> Quality:
    precision = right / kept if kept else 0.0
    return Quality(float(threshold), precision, right / gold, 2 * right / (kept + gold))
