"""Topics across languages without a label in them: one linear layer learnt on English vectors, tested on the others.

The MLDoc test of EASE (Nishikawa et al. 2022) and the same on SIB-200, which is free. The layer is that of `linear.py`.

Deviation: the encoder's dropout is off while the layer learns, in EASE's code it is on. Every text is encoded once, so
the vectors are the same whichever batch and learning rate are tried. Deviation: the layer after the last step may be
chosen too, where EASE looks every ten steps only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from isoglot.evaluation.base import Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.tasks.classification import (
    ACCURACY,
    MACRO_F1,
    Examples,
    Floats,
    Label,
    accuracy,
    classes_of,
    combined,
    gold_of,
    macro_f1,
    mistakes,
)
from isoglot.evaluation.tasks.linear import Layer, apply, best_layers
from isoglot.evaluation.tasks.topics import Mldoc, TopicSet
from isoglot.evaluation.vectors import embed

_REUTERS = re.compile(r"\(c\) Reuters Limited \d{4}")
_REPEATED = re.compile(r"([ \u3000])\1+")  # would hide the line of Reuters
_BLANKS = re.compile(r"\s+")


def clean(text: str) -> str:
    """A text as EASE's code prepares it: no Reuters line, single spaces, lower case, no accents, composed again (NFC).

    Accents go with everything that Unicode takes for a mark: Japanese が becomes か, Russian й becomes и. Any run of
    white space becomes one space, the one around a Reuters line too, and so does the full-width space of Japanese.
    """
    bare = _REUTERS.sub("", _REPEATED.sub(r"\1", text.rstrip()))
    plain = unicodedata.normalize("NFD", _BLANKS.sub(" ", bare.lower()))
    return unicodedata.normalize("NFC", "".join(sign for sign in plain if unicodedata.category(sign) != "Mn"))


@dataclass(frozen=True, slots=True)
class ZeroShot:
    """A set of topics learnt in English: the tasks `mldoc`, `mldoc/raw` and `sib-200/zero-shot`.

    `prepare` is done to each text before it is encoded; without it the text is encoded as it stands. Subsets are the
    set's codes, English among them; the averages leave it out.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str = "mldoc"
    topics: TopicSet = field(default_factory=Mldoc)
    prepare: Callable[[str], str] | None = clean

    @property
    def needs(self) -> str:
        """The files of the set."""
        return self.topics.needs

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a test split; none where English cannot be learnt from."""
        if any(self.topics.pivot not in self.topics.languages(data, split) for split in ("train", "dev")):
            return ()
        return tuple(code for code in self.topics.languages(data, "test") if among(code, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy and macro F1 of each language, mean over three seeds; then averages over those not learnt from."""
        codes = self.subsets(data, languages=languages)
        if not codes:
            return []
        classes, layers = self._learn(encode, data)
        scores = [score for code in codes for score in self._language(encode, data, code, classes, layers)]
        named = [averages(scores, name, over=over) for name, over in self.topics.averages.items()]
        others = [code for code in codes if code != self.topics.pivot]
        return [*scores, *(score for mean in named for score in mean), *averages(scores, "mean", over=others)]

    def _learn(self, encode: Encode, data: Path) -> tuple[tuple[Label, ...], tuple[Layer, ...]]:
        train, dev = (self._read(data, self.topics.pivot, split) for split in ("train", "dev"))
        classes = classes_of(train, where=f"{self.name} {self.topics.pivot}, split train")
        parts = [
            (
                self._embed(encode, part, self.topics.pivot, split),
                gold_of(part, classes, where=f"{self.name} {self.topics.pivot}, split {split}"),
            )
            for part, split in ((train, "train"), (dev, "dev"))
        ]
        return classes, best_layers(parts[0], parts[1], classes=len(classes))

    def _language(
        self, encode: Encode, data: Path, code: str, classes: tuple[Label, ...], layers: Sequence[Layer]
    ) -> list[Score]:
        test = self._read(data, code, "test")
        gold = gold_of(test, classes, where=f"{self.name} {code}, split test")
        vectors = self._embed(encode, test, code, "test")
        outcome = combined(classes, gold, [apply(layer, vectors) for layer in layers])
        found = accuracy(self.name, code, outcome, details=mistakes(test, outcome))
        return [found, macro_f1(self.name, code, outcome)]

    def _read(self, data: Path, code: str, split: str) -> Examples:
        return self.topics.read(data, code, split=split, where=f"{self.name} {code}, split {split}")

    def _embed(self, encode: Encode, part: Examples, code: str, split: str) -> Floats:
        texts = part.texts if self.prepare is None else [self.prepare(text) for text in part.texts]
        return embed(encode, texts, where=f"{self.name} {code}, split {split}", place=part.places.__getitem__)
