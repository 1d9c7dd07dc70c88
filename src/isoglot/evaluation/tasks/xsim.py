"""xSIM: the share of sentences whose translation is not the one that a margin chooses, for every pair of languages.

The similarity error of LASER (Heffernan, Çelebi and Schwenk 2022, "Bitext Mining Using Distilled Sentence
Representations for Low-Resource Languages"), with the margins of Artetxe and Schwenk 2019. For each sentence the k = 4
nearest of the other language by cosine are scored by a margin, and the best must say what the translation says; this
is an *error*, so lower is better. One direction at a time: the subset `deu-eng` searches English for each German
sentence, `eng-deu` the other way round.

One search serves both directions of a pair and all three margins, and each text is encoded once, so the cost beside the
encoder is that of one product of two tables a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np

from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, units_of
from isoglot.evaluation.tasks.retrieval import first_places, mistakes
from isoglot.evaluation.tasks.xsim_sets import ENGLISH, SETS, Found, Texts
from isoglot.evaluation.vectors import embed, unit
from isoglot.search.exact import Floats, Ids, neighbours
from isoglot.search.pairs import MARGINS, Doubles, margins

K = 4
ORDER = ("ratio", "distance", "absolute")  # LASER's default first

# Cosines and places (N, k) of the nearest of each sentence, and cosines (M, k) of those of the side searched.
Near = tuple[Floats, Ids, Floats]


@dataclass(frozen=True, slots=True)
class _Side:
    """One text: its files, sentences by line or id, vectors (N, D), and the first place of an equal text (N,)."""

    files: tuple[Path, ...]
    sentences: dict[int, str]
    vectors: Floats
    firsts: Ids


@dataclass(frozen=True, slots=True)
class XSim:
    """The task `xsim/<set>`: errors of all pairs of the set's languages, told by text and by index.

    `margins` are names in `MARGINS`; each has its own metrics, `error/ratio` and `error-by-index/ratio`. Only `k` of
    4 has the plain name: with another the task is called `xsim/<set>/k5` and so on.
    """

    texts: Texts
    k: int = K
    margins: tuple[str, ...] = ORDER

    @property
    def name(self) -> str:
        """`xsim/` and the name of the set."""
        return f"xsim/{self.texts.name}" + (f"/k{self.k}" if self.k != K else "")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The errors under each of the margins."""
        return tuple(metric for margin in self.margins for metric in _metrics(margin))

    @property
    def needs(self) -> str:
        """The files of the set, and where they are published."""
        return self.texts.needs

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Both directions of each pair of the wanted languages and English, `deu-eng` being from German to English."""
        codes = list(self.texts.find(data, where=self.name, languages=languages))
        return tuple(f"{source}-{target}" for source in codes for target in codes if source != target)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Errors of each direction, then of each target language over all sources (`xx-eng`), then their `mean`.

        Directions from and to English, or else the first language, have their worst mistakes by the first margin.
        """
        found = self.texts.find(data, where=self.name, languages=languages)
        pivot = next((code for code in found if code in ENGLISH), next(iter(found), ""))
        scores: dict[tuple[str, str], list[Score]] = {}
        for (a, b), (x, y) in self._pairs(encode, found):
            near = neighbours(x.vectors, y.vectors, self.k, metric="cosine")
            forward = near.forward_scores, near.forward_ids, near.backward_scores
            backward = near.backward_scores, near.backward_ids, near.forward_scores
            units, shown = units_of(x.sentences), self.margins[:1] if pivot in (a, b) else ()
            scores[a, b] = self._errors(f"{a}-{b}", (x, y), forward, units=units, shown=shown)
            scores[b, a] = self._errors(f"{b}-{a}", (y, x), backward, units=units, shown=shown)
        targets: list[Score] = []
        for target in found:
            into = [score for source in found if source != target for score in scores[source, target]]
            targets += averages(into, f"xx-{target}")
        ordered = [score for a in found for b in found if a != b for score in scores[a, b]]
        return [*ordered, *targets, *averages(targets, "mean")]

    def _pairs(self, encode: Encode, found: Found) -> Iterator[tuple[tuple[str, str], tuple[_Side, _Side]]]:
        sides: dict[tuple[Path, ...], _Side] = {}
        for pair in combinations(found, 2):
            x, y = (
                self._side(encode, self.texts.files(found, code, partner=partner, where=self.name), code, sides)
                for code, partner in (pair, pair[::-1])
            )
            where = f"{self.name} {'-'.join(pair)}"
            self.texts.align((x.sentences, y.sentences), files=(x.files, y.files), where=where)
            yield pair, (x, y)

    def _side(self, encode: Encode, files: tuple[Path, ...], code: str, sides: dict[tuple[Path, ...], _Side]) -> _Side:
        if files not in sides:
            where = f"{self.name}, language {code}"
            sentences = self.texts.read(files, where=where)
            texts = list(sentences.values())
            numbers = list(sentences)
            vectors = embed(
                encode, texts, where=where, place=lambda row: self.texts.origins(files, numbers)[numbers[row]]
            )
            sides[files] = _Side(files, sentences, vectors, first_places(texts))
        return sides[files]

    def _errors(
        self, subset: str, sides: tuple[_Side, _Side], near: Near, *, units: str, shown: Sequence[str]
    ) -> list[Score]:
        """Of each margin the errors by text, then those by index; the second side is the one searched.

        Of the margins `shown`, errors by text have their worst mistakes.
        """
        scores: list[Score] = []
        ids, firsts = near[1], sides[1].firsts
        for margin in self.margins:
            values = margins(*near, margin=margin)
            # Equal texts have equal vectors, but a product may round them apart: they are told by their first place.
            found = firsts[ids[np.arange(len(ids)), values.argmax(axis=1)]]
            by_text = np.not_equal(found, firsts).astype(np.float32)
            by_index = np.not_equal(found, np.arange(len(found))).astype(np.float32)
            if np.array_equal(by_text, by_index):
                by_index = by_text  # most sets have no text twice, and thousands of pairs hold half as much
            details = _mistakes(sides, near, found, values.max(axis=1), margin) if margin in shown else ()
            for metric, items, more in zip(_metrics(margin), (by_text, by_index), (details, ()), strict=True):
                value = float(items.mean(dtype=np.float64))
                scores.append(
                    metric.score(self.name, subset, value, len(items), items=items, units=units, details=more)
                )
        return scores


def _metrics(margin: str) -> tuple[Metric, Metric]:
    """The errors by text and by index under a margin."""
    by_text = Metric(f"error/{margin}", "error", lower_is_better=True, main=margin == "ratio")
    return by_text, replace(by_text, name=f"error-by-index/{margin}", main=False)


def _mistakes(sides: tuple[_Side, _Side], near: Near, found: Ids, values: Doubles, margin: str) -> tuple[Detail, ...]:
    """Sentences that found (N,) another text than their translation's; `values` (N,) are the margins of that."""
    wrong = np.flatnonzero(found != sides[1].firsts)
    x, y = (unit(side.vectors[wrong]) for side in sides)
    here, there = (cosines[wrong].mean(axis=1, dtype=np.float64) for cosines in (near[0], near[2]))
    expected = MARGINS[margin](np.einsum("nd,nd->n", x, y), (here + there) / 2)
    sources, targets = (list(side.sentences.values()) for side in sides)
    columns = ("sentence", "expected", "found", f"{margin} expected", f"{margin} found", "difference")
    return mistakes((sources, targets), wrong, found[wrong], (expected, values[wrong]), columns=columns)


XSIM: dict[str, XSim] = {task.name: task for task in map(XSim, SETS)}
