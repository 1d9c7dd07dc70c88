"""Centroids of languages: how far apart the languages lie as a whole, beside how far their own sentences are spread.

With the same meanings in both languages, the distance between their centres is due to the language alone. Libovický
et al. 2020 ("On the Language Neutrality of Pre-trained Multilingual Representations") showed that multilingual
encoders place languages apart in this way. It is a distance: 0 is best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages
from isoglot.evaluation.tasks.nway import (
    NEEDS,
    Doubles,
    Translations,
    codes,
    pairs,
    read_groups,
    shared,
    square,
    vectors,
)

_ROUNDING = 1e-6  # unit vectors that differ by less are the same
METRICS = (Metric("distance", "plain", lower_is_better=True, main=True),)


@dataclass(frozen=True, slots=True)
class Centroids:
    """The task `centroids`: for each pair of languages the distance of their centroids in units of their spread.

    `source` names the set that is read, one of `nway.SOURCES`; without it that with the most of the languages.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    source: str = ""
    name: str = "centroids"

    @property
    def needs(self) -> str:
        """Which groups of translations are looked for."""
        return NEEDS

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages."""
        return tuple("-".join(pair) for pair in pairs(self._groups(data, languages)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`distance` of each pair, then the `mean` with a table of all languages against all.

        Raises `EvaluationError`, also for an encoder that gives all sentences of a language the same vector.
        """
        groups = self._groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        values: dict[tuple[str, str], float] = {}
        scores: list[Score] = []
        for pair in pairs(groups):
            places = shared(groups, pair)
            values[pair] = self._distance(pair, *(tables[code][places] for code in pair))
            scores.append(METRICS[0].score(self.name, "-".join(pair), values[pair], len(places)))
        table = square(codes(groups), values, same=0.0)
        return [*scores, *(replace(mean, details=(table,)) for mean in averages(scores, "mean"))]

    def _groups(self, data: Path, languages: Sequence[str]) -> tuple[Translations, ...]:
        return read_groups(data, task=self.name, source=self.source, languages=languages)

    def _distance(self, pair: tuple[str, str], a: Doubles, b: Doubles) -> float:
        """Between the centres of unit vectors (N, D), over the mean of both root mean square distances from them."""
        apart = float(np.linalg.norm(a.mean(axis=0) - b.mean(axis=0)))
        spread = sum(float(np.sqrt(np.square(side - side.mean(axis=0)).sum(axis=1).mean())) for side in (a, b)) / 2
        if apart <= _ROUNDING:
            return 0.0
        if spread <= _ROUNDING:
            raise EvaluationError(
                f"{self.name} {'-'.join(pair)}: all {len(a)} sentences of a language have the same vector, and the "
                "languages differ; check the encoder's weights and its tokenizer"
            )
        return apart / spread
