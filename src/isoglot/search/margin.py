"""Margins: how much better a pair is than what is usual around its two sentences.

A cosine alone favours sentences that are near to everything. Artetxe and Schwenk (2019, "Margin-based Parallel Corpus
Mining with Multilingual Sentence Embeddings", eq. 2 and 3) compare it with the mean cosine of both sentences to their
k nearest neighbours on the other side. With `a` that mean of means,

    absolute   cos
    distance   cos - a
    ratio      cos / a

Deviation: `ratio` divides by at least `SMALLEST`. Vectors that are centred, or of a collapsed encoder, can have means
of zero or below, where the quotient is infinite or turns the order of the cosines round; with the floor it is finite
and keeps its sign and its order. Wherever the mean is above the floor nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.top import Ids

Doubles = NDArray[np.float64]

SMALLEST = 1e-6


def absolute(cosine: Doubles, around: Doubles) -> Doubles:  # noqa: ARG001 - all margins are called alike
    """The cosine itself."""
    return cosine


def distance(cosine: Doubles, around: Doubles) -> Doubles:
    """The cosine less the mean around the pair; 0 is usual."""
    return cosine - around


def ratio(cosine: Doubles, around: Doubles) -> Doubles:
    """The cosine over the mean around the pair; 1 is usual, and 1.04 to 1.06 are common thresholds."""
    return cosine / np.maximum(around, SMALLEST)


MARGINS: dict[str, Callable[[Doubles, Doubles], Doubles]] = {
    "absolute": absolute,
    "distance": distance,
    "ratio": ratio,
}


def margins(scores: NDArray[Any], ids: Ids, other_scores: NDArray[Any], *, margin: str = "ratio") -> Doubles:
    """Margin of each sentence with each of its k neighbours, (N, k) float64.

    `scores` and `ids` (N, k) are the sentences' neighbours on the other side, `other_scores` (M, k) those of the other
    side's sentences on this one: `neighbours` gives all three, and for the way back the same with the sides exchanged.
    Raises `ValueError` for an unknown margin.
    """
    known(margin)
    cosines = np.asarray(scores, np.float64)
    here = cosines.mean(axis=1, keepdims=True)
    there = np.asarray(other_scores, np.float64).mean(axis=1)[ids]
    return MARGINS[margin](cosines, (here + there) / 2)


def known(margin: str) -> None:
    """Raise `ValueError` for an unknown margin."""
    if margin not in MARGINS:
        raise ValueError(f"margin is {margin!r}; use one of {', '.join(MARGINS)}")
