"""Few-shot topic classification as MTEB does it: each language trains on a handful of its own examples.

The protocol of the tasks MTOPDomainClassification and SIB200Classification: ten experiments, each a logistic
regression of at most 100 iterations on eight examples of each label, tested on the whole test split; the mean over the
experiments. The examples are those that version 2 of the library draws. No language sees another: not zero-shot.

Deviation: version 1, behind the published numbers, has the same protocol with other examples. Its one generator runs on
through experiments and languages, so what it draws depends on all that was evaluated before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.evaluation.base import Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.tasks.classification import (
    ACCURACY,
    MACRO_F1,
    Label,
    accuracy,
    classes_of,
    combined,
    gold_of,
    logistic,
    macro_f1,
    mistakes,
)
from isoglot.evaluation.tasks.topics import Mtop, TopicSet
from isoglot.evaluation.vectors import embed


def undersample(
    labels: Sequence[Label], *, experiments: int = 10, per_label: int = 8, seed: int = 42
) -> list[list[int]]:
    """The training rows of each experiment, drawn as version 2 of MTEB draws them.

    The generator starts anew from `seed` in every experiment, but the order it shuffles is that which the experiment
    before has left, so the experiments differ. A label with fewer rows than `per_label` gives all it has.
    """
    order = list(range(len(labels)))
    draws: list[list[int]] = []
    for _ in range(experiments):
        np.random.RandomState(seed).shuffle(order)
        taken: Counter[Label] = Counter()
        draws.append([])
        for row in order:
            if taken[labels[row]] < per_label:
                taken[labels[row]] += 1
                draws[-1].append(row)
    return draws


@dataclass(frozen=True, slots=True)
class FewShot:
    """A set of topics, each language on its own: the tasks `mtop` and `sib-200`. Subsets are the set's codes.

    `split` is the part that is scored: `test`, or `dev` to choose by.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str = "mtop"
    topics: TopicSet = field(default_factory=Mtop)
    split: str = "test"

    @property
    def needs(self) -> str:
        """The files of the set."""
        return self.topics.needs

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with the split that is scored; none where nothing has one to learn from."""
        found = self.topics.languages(data, self.split) if self.topics.languages(data, "train") else ()
        return tuple(code for code in found if among(code, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy and macro F1 of each language, then the averages all of whose languages are there, and `mean`."""
        scores: list[Score] = []
        for code in self.subsets(data, languages=languages):
            scores += self._language(encode, data, code)
        named = [averages(scores, name, over=codes) for name, codes in self.topics.averages.items()]
        return [*scores, *(score for mean in named for score in mean), *averages(scores, "mean")]

    def _language(self, encode: Encode, data: Path, code: str) -> list[Score]:
        at = {split: f"{self.name} {code}, split {split}" for split in ("train", self.split)}
        train, test = (self.topics.read(data, code, split=split, where=where) for split, where in at.items())
        classes = classes_of(train, where=at["train"])
        gold, expected = (gold_of(part, classes, where=at[self.split]) for part in (train, test))
        draws = undersample(train.labels)
        union = sorted(set().union(*draws))  # only what some experiment uses is encoded
        sampled = [train.texts[row] for row in union]
        vectors = embed(encode, sampled, where=at["train"], place=lambda row: train.places[union[row]])
        tested = embed(encode, test.texts, where=at[self.split], place=test.places.__getitem__)
        place = {row: number for number, row in enumerate(union)}
        answers = [logistic(vectors[[place[row] for row in draw]], gold[draw])(tested) for draw in draws]
        outcome = combined(classes, expected, answers)
        found = accuracy(self.name, code, outcome, details=mistakes(test, outcome))
        return [found, macro_f1(self.name, code, outcome)]
