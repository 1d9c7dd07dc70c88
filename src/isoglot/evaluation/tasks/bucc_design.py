"""Which pairs the threshold of a mining task is tuned on, and which are scored under it.

What is special here: this choice moves F1 more than most models do, so each is a function with a name. None of them
sees vectors; they cut lists that are mined already, by `search.tune`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.bucc_data import SAMPLE, TRAINING, Split
from isoglot.search.pairs import Pairs
from isoglot.search.threshold import Quality, tune


@dataclass(frozen=True, slots=True)
class Mined:
    """A split and the pairs mined from it: rows of its files, best first."""

    split: Split
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Cut:
    """Mined pairs `kept` under a threshold, against the gold they are scored on, and where it was `tuned`."""

    tuned_on: str
    scored_on: str
    tuned: Quality
    kept: Pairs
    gold: tuple[tuple[int, int], ...]


def _transfer(sample: Mined, training: Mined) -> Iterator[Cut]:
    found = tune(sample.pairs, sample.split.gold)
    kept = training.pairs.above(found.threshold)
    yield Cut(sample.split.name, training.split.name, found, kept, training.split.gold)


def _same(sample: Mined) -> Iterator[Cut]:
    found = tune(sample.pairs, sample.split.gold)
    yield Cut(sample.split.name, sample.split.name, found, sample.pairs.above(found.threshold), sample.split.gold)


def _halves(sample: Mined) -> Iterator[Cut]:
    """Each half of the source sentences, told by a hash of their ids, under the threshold tuned on the other."""
    ids = sample.split.source.ids
    half = np.array([sha256(key.encode()).digest()[0] % 2 for key in ids], np.int64)
    gold = [tuple(pair for pair in sample.split.gold if half[pair[0]] == part) for part in (0, 1)]
    if not gold[0] or not gold[1]:
        raise EvaluationError(
            f"{sample.split.where}: one half of the source ids has no gold pair; give more gold pairs"
        )
    pairs = [_where(sample.pairs, half[sample.pairs.source] == part) for part in (0, 1)]
    for scored, tuned in ((0, 1), (1, 0)):
        found = tune(pairs[tuned], gold[tuned])
        tuned_on, scored_on = (f"{sample.split.name}, half {part + 1}" for part in (tuned, scored))
        yield Cut(tuned_on, scored_on, found, pairs[scored].above(found.threshold), gold[scored])


# Which splits are mined, the scored one last, and how thresholds come from them: "transfer" tunes on the sample and
# scores the training split; "same" tunes and scores on the sample, so its threshold is an oracle's; "halves" tunes on
# each half of the sample for the other.
DESIGNS: dict[str, tuple[tuple[str, ...], Callable[..., Iterator[Cut]]]] = {
    "transfer": ((SAMPLE, TRAINING), _transfer),
    "same": ((SAMPLE,), _same),
    "halves": ((SAMPLE,), _halves),
}


def _where(pairs: Pairs, chosen: NDArray[np.bool_]) -> Pairs:
    return Pairs(pairs.source[chosen], pairs.target[chosen], pairs.score[chosen])
