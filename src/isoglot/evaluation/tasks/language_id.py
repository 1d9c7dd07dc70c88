"""Telling the language of a sentence from its frozen vector: what a language-neutral encoder makes hard.

The probe of mSimCSE (Wang et al. 2022) on premises of XNLI, and the same on the test sentences of the detector Lingua.
Lower is more language-neutral. Neither classifier, size nor split are published, so they are set here: a logistic
regression, and of each language one half of the sentences for learning and the other for testing, drawn by a seed. As
the same draw serves every language, translations of one sentence are all on the same side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.files import lines, rows
from isoglot.evaluation.tasks.classification import (
    ACCURACY,
    SEED,
    Floats,
    Ids,
    Outcome,
    accuracy,
    chosen_strength,
    combined,
    logistic,
    wrong_answers,
)
from isoglot.evaluation.tasks.pair_sets import Xnli
from isoglot.evaluation.vectors import embed

SETS = (("en", "de", "fr", "hi"), ("en", "tr", "ar", "bg"))
PREMISES = 1000
ITERATIONS = 200
TOLD = replace(ACCURACY, lower_is_better=True)  # what a language-neutral encoder makes hard

# The sentences of a language and their vectors (N, D).
Table = tuple[list[str], Floats]


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
    name: str = "language-id"

    @property
    def needs(self) -> str:
        """The files of the set."""
        return (
            "files test-<xx>.tsv of XNLI in the layout of XTREME, premise first, for en, de, fr, hi or en, tr, ar, bg"
        )

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The sets all of whose languages are there, and one of which is asked for."""
        there = {code for codes in SETS for code in codes if Xnli().file(data, code, "test")}
        asked = [codes for codes in SETS if there.issuperset(codes) and any(among(code, languages) for code in codes)]
        return tuple("-".join(codes) for codes in asked)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The accuracy of each set; then `mean`."""
        scores: list[Score] = []
        for subset in self.subsets(data, languages=languages):
            tables = {code: self._table(encode, data, subset, code) for code in subset.split("-")}
            outcome = probe({code: vectors for code, (_, vectors) in tables.items()})
            details = _taken_for_another(outcome, [texts for texts, _ in tables.values()])
            scores.append(accuracy(self.name, subset, outcome, metric=TOLD, details=details))
        return scores + averages(scores, "mean")

    def _table(self, encode: Encode, data: Path, subset: str, code: str) -> Table:
        where = f"{self.name} {subset}, language {code}"
        path = self._file(data, code, where)
        english, premises = (self._premises(file, where) for file in (self._file(data, "en", where), path))
        if len(english) != len(premises):
            raise EvaluationError(
                f"{where}: test-en.tsv has {len(english)} lines and test-{code}.tsv has {len(premises)}, so from line "
                f"{min(len(english), len(premises)) + 1} on they are no translations; fetch both files again"
            )
        first = {premise: row for row, premise in reversed(list(enumerate(english)))}
        taken = sorted(first.values())[:PREMISES]
        if len(taken) < 2:
            raise EvaluationError(f"{where}: test-en.tsv has one premise, over and over; two that differ are needed")
        texts = [premises[row] for row in taken]
        return texts, embed(encode, texts, where=where, place=lambda row: f"{path}:{taken[row] + 1}")

    def _file(self, data: Path, code: str, where: str) -> Path:
        path = Xnli().file(data, code, "test")
        if path is None:
            raise EvaluationError(f"{where}: {data} has no test-{code}.tsv of XNLI; add that file")
        return path

    def _premises(self, path: Path, where: str) -> list[str]:
        found = [cells[0] for cells in rows(path, 2, where=where, at_least=True)]
        empty = next((number for number, text in enumerate(found, 1) if not text.strip()), None)
        if empty is not None or len(found) < 2:
            raise EvaluationError(f"{where}: {path}:{empty or 1}: a premise lacks; restore it")
        return found


@dataclass(frozen=True, slots=True)
class LanguageIdLingua:
    """The task `language-id/lingua`: one probe over every language there is a file of.

    Each language is a subset: the share of its sentences told rightly. `languages` choose which of them are shown;
    the probe always knows them all.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TOLD,)
    name: str = "language-id/lingua"

    @property
    def needs(self) -> str:
        """The files of one language."""
        return (
            "files lingua-langid/sentences/<xx>.txt, two languages or more, one sentence a line, as in "
            "language-testdata/sentences of https://github.com/pemistahl/lingua"
        )

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a file; none with fewer than two."""
        found = self._files(data)
        return tuple(code for code in found if among(code, languages)) if len(found) > 1 else ()

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The accuracy on each language; then `mean`, over the languages shown."""
        shown = self.subsets(data, languages=languages)
        if not shown:
            return []
        tables = {code: self._table(encode, code, path) for code, path in self._files(data).items()}
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

    def _files(self, data: Path) -> dict[str, Path]:
        for place in ("lingua-langid/sentences", "language-testdata/sentences"):
            paths = {path.name.partition(".")[0]: path for path in sorted((data / place).glob("*.txt*"), reverse=True)}
            if paths:
                return dict(sorted(paths.items()))
        return {}

    def _table(self, encode: Encode, code: str, path: Path) -> Table:
        where = f"{self.name} {code}"
        texts = list(lines(path, where=where))
        if len(texts) < 2:
            raise EvaluationError(f"{where}: {path} has one line; two or more are needed")
        return texts, embed(encode, texts, where=where, place=lambda row: f"{path}:{row + 1}")


def _taken_for_another(outcome: Outcome, sides: Sequence[Sequence[str]]) -> tuple[Detail, ...]:
    """The classifier's mistakes, not the encoder's: `sides` are all sentences of each language, its half tested."""
    tested = [texts[row] for texts in sides for row in _halves(len(texts))[1]]
    return wrong_answers({"sentence": tested}, outcome, labels=("language", "taken for"))


def _halves(count: int) -> tuple[Ids, Ids]:
    """Row numbers for learning and for testing, each in the order of the data."""
    order = np.random.default_rng(SEED).permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])
