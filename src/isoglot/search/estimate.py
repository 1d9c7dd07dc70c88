"""Where to cut a mined list when no pair is known to be right.

The scores of a list are taken for a mixture of two normal distributions, of wrong pairs and of right ones. What is
special here: how wrong pairs score is known beforehand. The second nearest sentence of a sentence is (nearly) always
wrong, so the margins that the second best would have, had the best not been there, are shown to the mixture as wrong
pairs, with `ANCHOR` times the weight of the list. Without them a list of right pairs alone would be cut in two.
The threshold is the one whose expected F1 is the greatest. It is an estimate: `Estimate.apart` says how much there is
to see, and a list without any right pair still gets a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isoglot.search.margin import MARGINS, Doubles, known
from isoglot.search.mining import Pairs
from isoglot.search.neighbours import Neighbours

ANCHOR = 0.1
ROUNDS = 200
LEAST_APART = 2.0
_TOP = 0.99  # where the right pairs are looked for first: even few of them are above this quantile


@dataclass(frozen=True, slots=True)
class Estimate:
    """A threshold, and the precision and recall, 0 to 1, that the mixture expects of the pairs at or above it.

    `apart` is the distance of the two means in standard deviations (root of the mean variance). Below `LEAST_APART`
    the list may hold no right pairs at all, or the encoder does not tell them from wrong ones.
    """

    threshold: float
    precision: float
    recall: float
    apart: float


def estimate(pairs: Pairs, found: Neighbours, *, margin: str = "ratio") -> Estimate:
    """The threshold for `pairs`, which `choose` made of `found` with this margin.

    Raises `ValueError` for an unknown margin, fewer than two neighbours, and an empty list.
    """
    known(margin)
    if found.forward_scores.shape[1] < 2 or not len(pairs):
        raise ValueError("an estimate needs pairs, and k of at least 2; give a threshold or gold pairs")
    wrong = _second(found, margin)
    shares, apart = _shares(pairs.score, wrong)
    right = np.cumsum(shares)
    counts = np.arange(1, len(pairs) + 1)
    cuts = np.flatnonzero(np.append(pairs.score[:-1] > pairs.score[1:], True))
    cut = int(cuts[(2 * right[cuts] / (counts[cuts] + right[-1])).argmax()])
    whole = max(float(right[-1]), np.finfo(float).tiny)
    return Estimate(float(pairs.score[cut]), float(right[cut]) / (cut + 1), float(right[cut]) / whole, apart)


def _second(found: Neighbours, margin: str) -> Doubles:
    """The best margin of each row (N,) if its nearest neighbour were not there."""
    rest = np.asarray(found.forward_scores[:, 1:], np.float64)
    there = np.asarray(found.backward_scores, np.float64).mean(axis=1)[found.forward_ids[:, 1:]]
    table = MARGINS[margin](rest, (rest.mean(axis=1, keepdims=True) + there) / 2)
    best: Doubles = table.max(axis=1)
    return best


def _shares(scores: Doubles, wrong: Doubles) -> tuple[Doubles, float]:
    """Of each score, descending, the chance that its pair is right, never rising down the list; and how far apart."""
    least = max(np.finfo(float).tiny, float(wrong.var()) * 1e-6)
    weight = ANCHOR * len(scores)
    low, low_variance = float(wrong.mean()), float(wrong.var()) + least
    high, high_variance, share = float(np.quantile(scores, _TOP)), low_variance, 0.1
    right = np.full(len(scores), share)
    for _ in range(ROUNDS):
        a = share * _normal(scores, high, high_variance)
        b = (1 - share) * _normal(scores, low, low_variance)
        right = a / np.maximum(a + b, np.finfo(float).tiny)
        # The wider of two normal distributions wins far out on both sides; a score that high is no wrong pair's.
        right = np.where(scores >= max(high, low), np.maximum(right, 0.5), right)
        share, amount = float(right.mean()), float((1 - right).sum()) + weight
        before, low = low, float(((1 - right) @ scores + weight * wrong.mean()) / amount)
        spread = float((1 - right) @ (scores - low) ** 2 + weight * ((wrong - low) ** 2).mean())
        low_variance = spread / amount + least
        high = float(right @ scores / max(right.sum(), 1e-12))
        high_variance = float(right @ (scores - high) ** 2 / max(right.sum(), 1e-12)) + least
        if abs(low - before) < 1e-12:
            break
    right = np.where(scores < low, 0.0, right)
    falling = np.maximum.accumulate(right[::-1])[::-1]
    return falling, (high - low) / float(np.sqrt((low_variance + high_variance) / 2))


def _normal(scores: Doubles, mean: float, variance: float) -> Doubles:
    density: Doubles = np.exp(-((scores - mean) ** 2) / (2 * variance)) / np.sqrt(variance)
    return density
