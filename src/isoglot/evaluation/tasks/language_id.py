"""Recognises the language of a sentence from its frozen vector, which is hard for a language-neutral encoder.

The probe of mSimCSE (Wang et al. 2022) on premises of XNLI, and the same on the test sentences of the detector Lingua.
Lower is more language-neutral. Neither classifier, size nor split are published, so they are set here: a logistic
regression, and of each language one half of the sentences for learning and the other for testing, drawn by a seed. As
the same draw serves every language, translations of one sentence are all on the same side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.sets import Source, among, needs, sources
from isoglot.evaluation.tasks.classification import (
    ACCURACY,
    ITERATIONS,
    SEED,
    Outcome,
    accuracy,
    chosen_strength,
    combined,
    logistic,
    wrong_answers,
)
from isoglot.evaluation.tasks.linear import Floats, Ids
from isoglot.evaluation.vectors import embed

SETS = (("en", "de", "fr", "hi"), ("en", "tr", "ar", "bg"))
PREMISES = 1000
TOLD = replace(ACCURACY, lower_is_better=True)  # lower is more language-neutral

# The sentences of a language and their vectors (N, D).
Table = tuple[Sequence[str], Floats]


def probe(tables: dict[str, Floats]) -> Outcome:
    """The classifier's answers on the half of each language that it has not learnt from, language after language.

    `tables` holds the vectors (N, D) of each language, the same row being the same sentence where they are aligned.
    """
    halves = [_halves(len(table)) for table in tables.values()]
    learnt, tested = (
        np.concatenate([table[half[side]] for table, half in zip(tables.values(), halves, strict=True)])
        for side in (0, 1)
    )
    gold, expected = (
        np.concatenate([np.full(len(half[side]), number, np.int64) for number, half in enumerate(halves)])
        for side in (0, 1)
    )
    groups = np.concatenate([half[0] for half in halves])  # a sentence and its translations share their number
    strength = chosen_strength(learnt, gold, groups.tolist(), iterations=ITERATIONS)
    answer = logistic(learnt, gold, strength=strength, iterations=ITERATIONS)(tested)
    return combined(tuple(tables), expected, [answer])


@dataclass(frozen=True, slots=True)
class LanguageId:
    """The task `language-id`: two sets of four languages, over premises of the test split of XNLI.

    The first 1000 English premises that differ are taken, and the rows that translate them. Subsets are the codes of
    a set, joined.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TOLD,)
    sets: ClassVar[tuple[str, ...]] = ("xtreme-xnli",)
    name: str = "language-id"
    needs: str = needs(*sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The sets all of whose languages are there, and one of which is requested."""
        there = self._tests(data).keys()
        asked = [codes for codes in SETS if there >= set(codes) and any(among(code, languages) for code in codes)]
        return tuple("-".join(codes) for codes in asked)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The accuracy of each set; then `mean`."""
        scores: list[Score] = []
        for subset in self.subsets(data, languages=languages):
            tables = {code: self._table(encode, self._tests(data), subset, code) for code in subset.split("-")}
            outcome = probe({code: vectors for code, (_, vectors) in tables.items()})
            details = _taken_for_another(outcome, [texts for texts, _ in tables.values()])
            scores.append(accuracy(self.name, subset, outcome, metric=TOLD, details=details))
        return scores + averages(scores, "mean")

    def _tests(self, data: Path) -> dict[str, Source]:
        found = sources(self.name, self.sets, data)
        return {code: source for (split, code), source in found.items() if split == "test"}

    def _table(self, encode: Encode, found: Mapping[str, Source], subset: str, code: str) -> Table:
        where = f"{self.name} {subset}, language {code}"
        english, own = (found[one].read(where) for one in ("en", code))
        if len(english) != len(own):
            raise EvaluationError(
                f"{where}: test-en.tsv has {len(english)} lines and test-{code}.tsv has {len(own)}, so from line "
                f"{min(len(english), len(own)) + 1} on they are not translations; get both files again"
            )
        first = {premise: row for row, premise in reversed(list(enumerate(english.texts())))}
        taken = Rows(own[row] for row in sorted(first.values())[:PREMISES])
        if len(taken) < 2:
            raise EvaluationError(f"{where}: test-en.tsv has only one premise; two that differ are needed")
        return taken.texts(), embed(encode, taken.texts(), where=where, place=taken.place())


@dataclass(frozen=True, slots=True)
class LanguageIdLingua:
    """The task `language-id/lingua`: one probe over every language there is a file of.

    Each language is a subset: the share of its sentences recognised. `languages` choose which of them are shown;
    the probe always knows them all.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TOLD,)
    sets: ClassVar[tuple[str, ...]] = ("lingua-langid",)
    name: str = "language-id/lingua"
    needs: str = needs(*sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a file; none with fewer than two."""
        found = self._sources(data)
        return tuple(code for code in found if among(code, languages)) if len(found) > 1 else ()

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The accuracy on each language; then `mean`, over the languages shown."""
        shown = self.subsets(data, languages=languages)
        if not shown:
            return []
        tables = {code: self._table(encode, code, source) for code, source in self._sources(data).items()}
        outcome = probe({code: vectors for code, (_, vectors) in tables.items()})
        scores: list[Score] = []
        for number, code in enumerate(outcome.classes):
            own = outcome.gold == number
            if code in shown:
                answers = [(outcome.predicted[0][own], outcome.probability[own])]
                part = combined(outcome.classes, outcome.gold[own], answers)
                details = _taken_for_another(part, [tables[str(code)][0]])
                scores.append(accuracy(self.name, str(code), part, metric=TOLD, details=details))
        return scores + averages(scores, "mean")

    def _sources(self, data: Path) -> dict[str, Source]:
        return {code: source for (_, code), source in sources(self.name, self.sets, data).items()}

    def _table(self, encode: Encode, code: str, source: Source) -> Table:
        where = f"{self.name} {code}"
        rows = source.read(where)
        if len(rows) < 2:
            raise EvaluationError(f"{where}: {source.part.files[0]} has one line; two or more are needed")
        return rows.texts(), embed(encode, rows.texts(), where=where, place=rows.place())


def _taken_for_another(outcome: Outcome, sides: Sequence[Sequence[str]]) -> tuple[Detail, ...]:
    """The classifier's mistakes, not the encoder's: `sides` are all sentences of each language, its half tested."""
    tested = [texts[row] for texts in sides for row in _halves(len(texts))[1]]
    return wrong_answers({"sentence": tested}, outcome, labels=("language", "taken for"))


def _halves(count: int) -> tuple[Ids, Ids]:
    """Row numbers for learning and for testing, each in the order of the data."""
    order = np.random.default_rng(SEED).permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])
