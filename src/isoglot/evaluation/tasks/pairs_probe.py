"""Classifying pairs of sentences by their frozen vectors, learnt in English and tested in every language.

Each pair is described by u, v, the absolute difference and the product of the two vectors, as InferSent does
(Conneau et al. 2017), and a logistic regression is learnt from the English *dev* split, since the free copies of XNLI
and PAWS-X come without their training data. It is a probe of what the vectors hold, far below models that read both
sentences together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages, units_of
from isoglot.evaluation.codes import among
from isoglot.evaluation.tasks.classification import (
    ACCURACY,
    Classifier,
    Floats,
    Ids,
    accuracy,
    chosen_strength,
    combined,
    logistic,
    wrong_answers,
)
from isoglot.evaluation.tasks.pair_sets import Pairs, PairSet, Xnli
from isoglot.evaluation.vectors import embed

ITERATIONS = 200


def features(first: Floats, second: Floats) -> Floats:
    """u, v, |u - v| and u * v of N pairs of vectors (N, D): (N, 4 D)."""
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


@dataclass(frozen=True, slots=True)
class PairProbe:
    """A set of pairs: the tasks `xnli` and `paws-x`. Subsets are the codes of the languages with labels."""

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    name: str = "xnli"
    pairs: PairSet = field(default_factory=Xnli)

    @property
    def needs(self) -> str:
        """The files of the set."""
        return self.pairs.needs

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a labelled test split; none where the English dev split lacks."""
        if "en" not in self.pairs.languages(data, "dev"):
            return ()
        return tuple(code for code in self.pairs.languages(data, "test") if among(code, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy of each language, then the averages all of whose languages are there, and `mean`."""
        codes = self.subsets(data, languages=languages)
        if not codes:
            return []
        classify = self._learn(encode, data)
        scores: list[Score] = []
        for code in codes:
            test = self._read(data, code, "test")
            answer = classify(self._features(encode, test, code, "test"))
            outcome = combined(self.pairs.classes, self._gold(test), [answer])
            details = wrong_answers({"sentence 1": test.firsts, "sentence 2": test.seconds}, outcome)
            found = accuracy(self.name, code, outcome, details=details)
            # Pairs are translated row by row, but a few labels of PAWS-X differ between languages.
            scores.append(replace(found, units=units_of(range(found.n))))
        named = [averages(scores, name, over=over) for name, over in self.pairs.averages.items()]
        return [*scores, *(score for mean in named for score in mean), *averages(scores, "mean")]

    def _learn(self, encode: Encode, data: Path) -> Classifier:
        train = self._read(data, "en", "dev")
        gold = self._gold(train)
        if lacking := set(self.pairs.classes) - set(train.labels):
            raise EvaluationError(f"{self.name} en, split dev: no pair has the label {min(lacking)!r}; fetch it again")
        known = self._features(encode, train, "en", "dev")
        strength = chosen_strength(known, gold, train.firsts, iterations=ITERATIONS)
        return logistic(known, gold, strength=strength, iterations=ITERATIONS)

    def _read(self, data: Path, code: str, split: str) -> Pairs:
        return self.pairs.read(data, code, split=split, where=f"{self.name} {code}, split {split}")

    def _features(self, encode: Encode, part: Pairs, code: str, split: str) -> Floats:
        where = f"{self.name} {code}, split {split}"
        place = part.places.__getitem__
        first, second = (embed(encode, side, where=where, place=place) for side in (part.firsts, part.seconds))
        with np.errstate(over="ignore"):
            found = features(first, second)
        if len(bad := np.flatnonzero(~np.isfinite(found).all(axis=1))):
            raise EvaluationError(
                f"{where}: {place(int(bad[0]))}: the product of the pair's vectors does not fit float32; scale the "
                "vectors down"
            )
        return found

    def _gold(self, part: Pairs) -> Ids:
        return np.array([self.pairs.classes.index(label) for label in part.labels], np.int64)
