"""A map of sentences: whether meaning or language decides where a vector lies, as two numbers and as a picture.

The pictures are those of MoCo-BERT (figure 3: a few groups of translations) and mSimCSE (figure 1: many sentences,
coloured by language, three groups marked), by t-SNE (van der Maaten and Hinton 2008). A plane made by t-SNE keeps
neighbours and not distances, so the numbers are taken from the vectors and never from the plane.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.tasks.nway import NEEDS, Doubles, Translations, everyone, pairs, read_groups, shared, vectors

FEW = 15  # groups in the map of translations
POINTS = 400  # sentences in the map of languages, over all of them
MARKED = 3  # groups marked there

Tables = Mapping[str, Doubles]

_ROUNDING = 1e-9  # a sum of squares below is that of equal vectors
METRICS = Metric("variance/meaning", main=True), Metric("variance/language", lower_is_better=True)


@dataclass(frozen=True, slots=True)
class SentenceMap:
    """The task `map`: pairs of languages, then all languages over the groups that have every one of them.

    `source` names the set that is read, one of `nway.SOURCES`; without it that with the most of the languages.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    source: str = ""
    name: str = "map"

    @property
    def needs(self) -> str:
        """Which groups of translations are looked for."""
        return NEEDS

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages, and all languages joined if they are three or more."""
        return tuple("-".join(chosen) for chosen in _chosen(self._groups(data, languages)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`variance/meaning` and `variance/language` of each, then the `mean` over pairs.

        The two of all languages have the pictures: that of translations and that of languages. Raises
        `EvaluationError`.
        """
        groups = self._groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        scores = {chosen: self._shares(groups, tables, chosen) for chosen in _chosen(groups)}
        means = averages([score for chosen, both in scores.items() if len(chosen) == 2 for score in both], "mean")
        if together := everyone(groups, least=2):
            few, many = _maps(groups, tables, together)
            meaning, language = scores[together]
            scores[together] = [replace(meaning, details=(few,)), replace(language, details=(many,))]
        return [*(score for both in scores.values() for score in both), *means]

    def _groups(self, data: Path, languages: Sequence[str]) -> tuple[Translations, ...]:
        return read_groups(data, task=self.name, source=self.source, languages=languages)

    def _shares(self, groups: Sequence[Translations], tables: Tables, chosen: tuple[str, ...]) -> list[Score]:
        places = shared(groups, chosen)
        cube = np.stack([tables[code][places] for code in chosen], axis=1)  # (groups, languages, D)
        shares = explained(cube), explained(cube.transpose(1, 0, 2))
        subset, n = "-".join(chosen), len(places) * len(chosen)
        return [metric.score(self.name, subset, value, n) for metric, value in zip(METRICS, shares, strict=True)]


def explained(cube: Doubles) -> float:
    """Eta squared: the share of the variance of vectors (A, B, D) that lies between the means of A; 0 without any."""
    centre = cube.mean(axis=(0, 1))
    total = float(np.square(cube - centre).sum())
    between = float(np.square(cube.mean(axis=1) - centre).sum()) * cube.shape[1]
    return min(1.0, between / total) if total > _ROUNDING else 0.0


def plane(points: Doubles) -> Doubles:
    """Points (N, D) laid into a plane (N, 2) by t-SNE, the same for the same points; all at 0 where none differ."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if np.square(points - points.mean(axis=0)).sum() <= _ROUNDING:
        return np.zeros((len(points), 2))
    points = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))  # vectors of one value lie on a line
    with threadpool_limits(1):  # threads would add up in the order in which they finish
        layout = TSNE(init="pca", perplexity=min(30.0, (len(points) - 1) / 3), random_state=0)
        return np.asarray(layout.fit_transform(points), np.float64)


def _chosen(groups: Sequence[Translations]) -> list[tuple[str, ...]]:
    together = everyone(groups, least=3)
    return [*pairs(groups), *([together] if together else [])]


def _maps(groups: Sequence[Translations], tables: Tables, together: tuple[str, ...]) -> tuple[Detail, Detail]:
    places = shared(groups, together)
    many = max(MARKED, POINTS // len(together))
    return _map(groups, tables, places[:FEW], marked=FEW), _map(groups, tables, places[:many], marked=MARKED)


def _map(groups: Sequence[Translations], tables: Tables, places: Sequence[int], *, marked: int) -> Detail:
    """The sentences of the groups at `places` as points; a group is named by its number if it is of the marked."""
    points = [(number, groups[place], code) for number, place in enumerate(places) for code in groups[place].texts]
    laid = plane(np.array([tables[code][places[number]] for number, _, code in points])).round(3)
    rows = tuple(
        (str(number + 1) if number < marked else "", code, float(x), float(y), group.texts[code])
        for (number, group, code), (x, y) in zip(points, laid, strict=True)
    )
    return Detail("map", ("group", "language", "x", "y", "text"), rows)
