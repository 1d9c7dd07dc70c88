"""Similarity of translations: how alike the sentences of one meaning are, in each pair of languages and in all at once.

The matrices of MPCL (figure 1), as numbers. A method trained on pairs alone may draw each language to English and
leave the others apart: the least cosine within a group of three or more languages shows it, and so does the deviation
of its cosines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, units_of
from isoglot.evaluation.tasks.nway import (
    NEEDS,
    Doubles,
    Translations,
    codes,
    everyone,
    pairs,
    read_groups,
    shared,
    square,
    vectors,
)

TRANSLATIONS = Metric("cosine/translations", "cosine")
CONTRAST = Metric("cosine/contrast", "cosine", main=True)  # encoders differ in where their cosines lie
LEAST = Metric("cosine/min", "cosine")
SPREAD = Metric("cosine/std", "cosine", lower_is_better=True)


@dataclass(frozen=True, slots=True)
class Similarity:
    """The task `similarity`: cosines of translations for each pair of languages, then for all languages together.

    `source` names the set that is read, one of `nway.SOURCES`; without it that with the most of the languages.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TRANSLATIONS, CONTRAST, LEAST, SPREAD)
    source: str = ""
    name: str = "similarity"

    @property
    def needs(self) -> str:
        """Which groups of translations are looked for."""
        return NEEDS

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages, and all languages joined if they are three or more."""
        groups = self._groups(data, languages)
        together = everyone(groups, least=3)
        return (*("-".join(pair) for pair in pairs(groups)), *(["-".join(together)] if together else []))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`cosine/translations` and `cosine/contrast` of pairs, `cosine/min` and `cosine/std` of all, then the `mean`.

        The mean is over the pairs and has a table of all languages against all. Raises `EvaluationError`.
        """
        groups = self._groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        scores: list[Score] = []
        for pair in pairs(groups):
            places = shared(groups, pair)
            units = units_of(groups[place].name for place in places)
            scores += self._pair(pair, tables[pair[0]][places], tables[pair[1]][places], units=units)
        means = [self._with_table(mean, scores, codes(groups)) for mean in averages(scores, "mean")]
        return [*scores, *self._together(groups, tables), *means]

    def _groups(self, data: Path, languages: Sequence[str]) -> tuple[Translations, ...]:
        return read_groups(data, task=self.name, source=self.source, languages=languages)

    def _pair(self, pair: tuple[str, str], a: Doubles, b: Doubles, *, units: str) -> list[Score]:
        same, others = np.einsum("nd,nd->n", a, b), len(a) - 1
        # The cosines of a sentence with all of the other language add up to its product with their sum.
        rest = a @ b.sum(axis=0) + b @ a.sum(axis=0) - 2 * same
        items = {TRANSLATIONS: same, CONTRAST: same - rest / (2 * others)}
        return [replace(self._score("-".join(pair), metric, row), units=units) for metric, row in items.items()]

    def _together(self, groups: Sequence[Translations], tables: Mapping[str, Doubles]) -> list[Score]:
        together = everyone(groups, least=3)
        if not together:
            return []
        places = shared(groups, together)
        cosines = np.array(
            [np.einsum("nd,nd->n", tables[a][places], tables[b][places]) for a, b in combinations(together, 2)]
        )
        example = _example(groups[places[0]], together, cosines[:, 0])
        return [
            replace(self._score("-".join(together), LEAST, cosines.min(axis=0)), details=(example,)),
            self._score("-".join(together), SPREAD, cosines.std(axis=0)),
        ]

    def _score(self, subset: str, metric: Metric, items: Doubles) -> Score:
        return metric.score(self.name, subset, float(items.mean()), len(items), items=items.astype(np.float32))

    def _with_table(self, mean: Score, scores: Sequence[Score], languages: Sequence[str]) -> Score:
        values = {score.subset: score.value for score in scores if score.metric == mean.metric}
        table = {pair: values["-".join(pair)] for pair in combinations(languages, 2) if "-".join(pair) in values}
        # A sentence is its own translation; beside its own language's other sentences it is not looked at.
        return (
            replace(mean, details=(square(languages, table, same=1.0),)) if mean.metric == TRANSLATIONS.name else mean
        )


def _example(group: Translations, languages: Sequence[str], cosines: Doubles) -> Detail:
    """The matrix of one group, its sentences naming the rows."""
    values = dict(zip(combinations(languages, 2), map(float, cosines), strict=True))
    table = square(languages, values, same=1.0)
    rows = tuple((f"{code}: {group.texts[code]}", *row[1:]) for code, row in zip(languages, table.rows, strict=True))
    return replace(table, rows=rows)
