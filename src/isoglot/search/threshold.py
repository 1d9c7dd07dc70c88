"""Thresholds for mined pairs, with known pairs (`tune`) or without (`estimate`), and the quality of a list (`quality`).

Precision, recall and F1 are those of BUCC: of the pairs kept, the share that is gold; of the gold pairs, the share that
is kept. Gold is a set; a repeated pair counts once.

Without known pairs the scores are modelled as a mixture of two normal distributions, of wrong pairs and of right ones.
The distribution of wrong pairs is known: the second nearest sentence of a sentence is nearly always wrong, so the
margins that the second best would have without the best are added to the mixture as wrong pairs, with `ANCHOR` times
the weight of the list. Without them a list of right pairs only would be split in two. The threshold is the one whose
expected F1 is the greatest. It is an estimate: `Estimate.separation` measures how distinct the two distributions are,
and a list without any right pair gets a threshold as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_arguments
from isoglot.search.blocks import Margin
from isoglot.search.exact import Neighbours
from isoglot.search.pairs import MARGINS, Doubles, Pairs

Gold = Iterable[tuple[int, int]]

ANCHOR = 0.1
ROUNDS = 200
# Where an estimate was never far from the truth (docs/mine.md): the separation of a list in which right pairs are rare
# and of one in which at least this share of the sentences has one, and the least number of right pairs.
RARE, COMMON, SHARE, RIGHT = 3.5, 2.2, 0.4, 30
_TOP = 0.99  # initially, scores above this quantile are taken as right pairs


@dataclass(frozen=True, slots=True)
class Quality:
    """Precision, recall and F1, each 0 to 1, of the pairs whose score is at least `threshold`."""

    threshold: float
    precision: float
    recall: float
    f1: float


@check_arguments()
def quality(pairs: Pairs, gold: Gold, *, threshold: float = -np.inf) -> Quality:
    """Score mined pairs against gold ones, `(source, target)` row numbers. Raises `ValueError` when gold is empty.

    Of paraphrases, which are mined within one list, the smaller number comes first in both.
    """
    gold_pairs, selection = _convert_gold(gold), pairs.above(threshold)
    return _quality(threshold, int(_hits(selection, gold_pairs).sum()), len(selection), len(gold_pairs))


@check_arguments()
def tune(pairs: Pairs, gold: Gold) -> Quality:
    """The threshold of the best F1, and its quality.

    Pairs of equal score are all kept or all dropped. The threshold lies midway between the last score kept and the
    next; at the end of the list it is the last score. Of thresholds with equal F1 the highest is taken. When no pair is
    gold the threshold is infinite: nothing is kept.
    """
    gold_pairs = _convert_gold(gold)
    right = np.cumsum(_hits(pairs, gold_pairs))
    cuts = np.flatnonzero(np.append(pairs.score[:-1] > pairs.score[1:], len(pairs) > 0))
    size = len(gold_pairs)
    f1 = 2 * right[cuts] / (cuts + 1 + size)  # the same as 2PR / (P + R)
    if not len(cuts) or not f1.max():
        return _quality(np.inf, 0, 0, size)
    cut = int(cuts[f1.argmax()])
    score, after = (float(pairs.score[min(at, len(pairs) - 1)]) for at in (cut, cut + 1))
    middle = after + (score - after) / 2
    threshold = middle if middle > after else score  # two neighbouring floats have none in between
    return _quality(threshold, int(right[cut]), cut + 1, size)


def _convert_gold(gold: Gold) -> set[tuple[int, int]]:
    if not (gold_pairs := {(int(source), int(target)) for source, target in gold}):
        raise ValueError("gold is empty; pass at least one known pair")
    return gold_pairs


def _hits(pairs: Pairs, gold_pairs: Set[tuple[int, int]]) -> NDArray[np.bool_]:
    mined_pairs = zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)
    return np.fromiter((pair in gold_pairs for pair in mined_pairs), np.bool_, len(pairs))


def _quality(threshold: float, right: int, count: int, gold: int) -> Quality:
    precision = right / count if count else 0.0
    return Quality(float(threshold), precision, right / gold, 2 * right / (count + gold))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A threshold, and the expected precision and recall, 0 to 1, of the pairs at or above it.

    `separation` is the distance of the two means in standard deviations (root of the mean variance), `right` the
    expected number of right pairs among those, `share` the same for each sentence of the smaller side. Unless it is
    `reliable` there may be none at all, or the encoder can't distinguish them from wrong ones.
    """

    threshold: float
    precision: float
    recall: float
    separation: float
    right: float
    share: float

    @property
    def reliable(self) -> bool:
        """Whether precision and recall can be trusted: right pairs score much higher than wrong ones, and are many."""
        return self.right >= RIGHT and self.separation >= (COMMON if self.share >= SHARE else RARE)


@check_arguments()
def estimate(pairs: Pairs, hits: Neighbours, *, margin: Margin = "ratio") -> Estimate:
    """The threshold for `pairs`, which `choose` made from `hits` with this margin.

    Raises `ValueError` for an unknown margin, fewer than two neighbours, and an empty list.
    """
    if hits.forward_scores.shape[1] < 2 or not len(pairs):
        raise ValueError("an estimated threshold needs pairs, and k of at least 2; pass a number or gold pairs")
    wrong = _second(hits, margin)
    shares, separation = _shares(pairs.score, wrong)
    right = np.cumsum(shares)
    counts = np.arange(1, len(pairs) + 1)
    cuts = np.flatnonzero(np.append(pairs.score[:-1] > pairs.score[1:], True))
    cut = int(cuts[(2 * right[cuts] / (counts[cuts] + right[-1])).argmax()])
    total = max(float(right[-1]), np.finfo(float).tiny)
    sure, smaller = float(right[cut]), min(len(hits.forward_ids), len(hits.backward_ids))
    return Estimate(float(pairs.score[cut]), sure / (cut + 1), sure / total, separation, sure, sure / smaller)


def _second(hits: Neighbours, margin: Margin) -> Doubles:
    """The best margin of each row (N,) if its nearest neighbour were not there."""
    lower_scores = np.asarray(hits.forward_scores[:, 1:], np.float64)
    other_means = np.asarray(hits.backward_scores, np.float64).mean(axis=1)[hits.forward_ids[:, 1:]]
    table = MARGINS[margin](lower_scores, (lower_scores.mean(axis=1, keepdims=True) + other_means) / 2)
    return np.asarray(table.max(axis=1))


def _shares(scores: Doubles, wrong: Doubles) -> tuple[Doubles, float]:
    """For each score, descending, the probability that its pair is right, never increasing; and the separation."""
    floor = max(np.finfo(float).tiny, float(wrong.var()) * 1e-6)
    weight = ANCHOR * len(scores)
    low, low_variance = float(wrong.mean()), float(wrong.var()) + floor
    high, high_variance, share = float(np.quantile(scores, _TOP)), low_variance, 0.1
    right = np.full(len(scores), share)
    for _ in range(ROUNDS):
        a = share * _normal(scores, high, high_variance)
        b = (1 - share) * _normal(scores, low, low_variance)
        right = a / np.maximum(a + b, np.finfo(float).tiny)
        # The wider of two normal distributions dominates both tails, but such a high score does not belong to a wrong
        # pair.
        right = np.where(scores >= max(high, low), np.maximum(right, 0.5), right)
        share, amount = float(right.mean()), float((1 - right).sum()) + weight
        before, low = low, float(((1 - right) @ scores + weight * wrong.mean()) / amount)
        spread = float((1 - right) @ (scores - low) ** 2 + weight * ((wrong - low) ** 2).mean())
        low_variance = spread / amount + floor
        high = float(right @ scores / max(right.sum(), 1e-12))
        high_variance = float(right @ (scores - high) ** 2 / max(right.sum(), 1e-12)) + floor
        if abs(low - before) < 1e-12:
            break
    right = np.where(scores < low, 0.0, right)
    falling = np.maximum.accumulate(right[::-1])[::-1]
    return falling, (high - low) / float(np.sqrt((low_variance + high_variance) / 2))


def _normal(scores: Doubles, mean: float, variance: float) -> Doubles:
    return np.asarray(np.exp(-((scores - mean) ** 2) / (2 * variance)) / np.sqrt(variance))
