"""Recognises the language of a sentence from its frozen vector, which is hard for a language-neutral encoder.

The probe of mSimCSE (Wang et al. 2022) on premises of XNLI, and the same on the test sentences of the detector Lingua.
Lower is more language-neutral. Neither classifier, size nor split are published, so they are set here: a logistic
regression, and of each language one half of the sentences for learning and the other for testing, drawn by a seed. As
the same draw serves every language, translations of one sentence are all on the same side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Encode, Metric, Score
from isoglot.evaluation.sets import SetTask, Source, among
from isoglot.evaluation.tasks import classification
from isoglot.evaluation.vectors import embed_rows
from isoglot.search.best import Floats, Ids

SETS = (("en", "de", "fr", "hi"), ("en", "tr", "ar", "bg"))
PREMISES = 1000
TOLD = replace(classification.ACCURACY, lower_is_better=True)  # lower is more language-neutral

# The sentences of a language and their vectors (N, D).
Table = tuple[Sequence[str], Floats]


def probe(tables: dict[str, Floats]) -> classification.Outcome:
    """The classifier's answers on the half of each language that it has not learnt from, language after language.

    `tables` holds the vectors (N, D) of each language, the same row being the same sentence where they are aligned.
    """
    halves = [_halves(len(table)) for table in tables.values()]
    (learnt, gold), (tested, expected) = (
        (
            np.concatenate([table[half[side]] for table, half in zip(tables.values(), halves, strict=True)]),
            np.repeat(np.arange(len(halves), dtype=np.int64), [len(half[side]) for half in halves]),
        )
        for side in (0, 1)
    )
    groups = np.concatenate([half[0] for half in halves])  # a sentence and its translations share their number
    answer = classification.probe(learnt, gold, groups.tolist())(tested)
    return classification.combine(tuple(tables), expected, [answer])


@dataclass(frozen=True, slots=True)
class LanguageId(SetTask):
    """The task `language-id`: two sets of four languages, over premises of the test split of XNLI.

    The first 1000 English premises that differ are taken, and the rows that translate them. Subsets are the codes of
    a set, joined.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TOLD,)
    name: str = "language-id"
    reads: tuple[str, ...] = ("xtreme-xnli",)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """The sets all of whose languages are there, and one of which is requested."""
        tests = SetTask.find(self, data)
        asked = (codes for codes in SETS if any(among(code, languages) for code in codes))
        return {"-".join(codes): tests for codes in asked if tests.keys() >= {*codes}}

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """The accuracy of each set."""
        for subset, tests in subsets.items():
            tables = {code: self._table(encode, tests, subset, code) for code in subset.split("-")}
            outcome = probe({code: vectors for code, (_, vectors) in tables.items()})
            yield _score(self.name, subset, outcome, [texts for texts, _ in tables.values()])

    def _table(self, encode: Encode, tests: Mapping[str, Source], subset: str, code: str) -> Table:
        where = f"{self.name} {subset}, language {code}"
        english, translated = (tests[one].read(where) for one in ("en", code))
        if len(english) != len(translated):
            sizes = f"test-en.tsv has {len(english)} lines and test-{code}.tsv has {len(translated)}"
            line = min(len(english), len(translated)) + 1
            raise EvaluationError(f"{where}: {sizes}: not translations from line {line} on; get both files again")
        first = {premise: row for row, premise in reversed(list(enumerate(english.texts())))}
        premises = Rows(translated[row] for row in sorted(first.values())[:PREMISES])
        if len(premises) < 2:
            raise EvaluationError(f"{where}: test-en.tsv has only one premise; two that differ are needed")
        return premises.texts(), embed_rows(encode, premises, where=where)


@dataclass(frozen=True, slots=True)
class LanguageIdLingua(SetTask):
    """The task `language-id/lingua`: one probe over every language there is a file of.

    Each language is a subset: the share of its sentences recognised. `languages` choose which of them are shown;
    the probe always knows them all.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TOLD,)
    name: str = "language-id/lingua"
    reads: tuple[str, ...] = ("lingua-langid",)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """The requested languages, each with the files of all; none with fewer than two files."""
        every = SetTask.find(self, data)
        return {code: every for code in every if among(code, languages)} if len(every) > 1 else {}

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """The accuracy on each language."""
        tables = {code: self._table(encode, code, source) for code, source in next(iter(subsets.values())).items()}
        outcome = probe({code: vectors for code, (_, vectors) in tables.items()})
        for number, code in enumerate(tables):
            rows = outcome.gold == number
            if code in subsets:
                answers = [(outcome.predicted[0][rows], outcome.probability[rows])]
                part = classification.combine(outcome.classes, outcome.gold[rows], answers)
                yield _score(self.name, code, part, [tables[code][0]])

    def _table(self, encode: Encode, code: str, source: Source) -> Table:
        where = f"{self.name} {code}"
        rows = source.read(where)
        if len(rows) < 2:
            raise EvaluationError(f"{where}: {source.part.files[0]} has one line; two or more are needed")
        return rows.texts(), embed_rows(encode, rows, where=where)


def _score(task: str, subset: str, outcome: classification.Outcome, sides: Sequence[Sequence[str]]) -> Score:
    """The score with the classifier's mistakes; `sides` are all sentences of each language, half of them tested."""
    tested = [texts[row] for texts in sides for row in _halves(len(texts))[1]]
    details = classification.wrong_answers({"sentence": tested}, outcome, labels=("language", "taken for"))
    return classification.accuracy(task, subset, outcome, metric=TOLD, details=details)


def _halves(count: int) -> tuple[Ids, Ids]:
    """Row numbers for learning and for testing, each in the order of the data."""
    order = np.random.default_rng(classification.SEED).permutation(count)
    return np.sort(order[: count // 2]), np.sort(order[count // 2 :])
