"""BUCC as MTEB scores it: not mining, but the search of the one translation of each gold sentence. No threshold.

What is special here: MTEB's first version searches all English sentences of the training split, its second only those
that occur in gold, about forty times fewer (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark", and the
tasks `BUCC` and `BUCC.v2` of its package). Both run on the files of BUCC as well as on MTEB's copies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.codes import among
from isoglot.evaluation.exports import export, numbered_records, records
from isoglot.evaluation.tasks.bucc_data import TRAINING, golds, load
from isoglot.evaluation.tasks.retrieval import first_places
from isoglot.evaluation.vectors import embed
from isoglot.search.exact import neighbours

MISTAKES = 10

Place = Callable[[int], str]

_PAIRS = ("de-en", "fr-en", "ru-en", "zh-en")
_FIELDS = ("sentence1", "sentence2", "gold")
_COPIES = {"all": ("BUCC",), "gold": ("BUCC.v2", "bucc-bitext-mining")}
METRICS = Metric("accuracy"), Metric("precision"), Metric("recall"), Metric("f1", main=True)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Q queries, the corpus searched, and for each query the row of its translation there, (Q,).

    `places` tell where a query and where a row of the corpus was read.
    """

    queries: tuple[str, ...]
    corpus: tuple[str, ...]
    labels: NDArray[np.int64]
    places: tuple[Place, Place]


@dataclass(frozen=True, slots=True)
class Bitext:
    """The foreign sentences of gold as queries, English ones as the `corpus`: "all" of the split, or those of "gold".

    The nearest by cosine is the answer; where a text stands twice in the corpus, the first is found. Accuracy, and
    precision, recall and F1 averaged over the rows of the corpus that are gold, each weighing its number of queries.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    name: str
    corpus: str = "all"

    @property
    def needs(self) -> str:
        """The copy of MTEB, or the files of BUCC."""
        copies = " or ".join(_COPIES[self.corpus])
        return (
            f"a copy of MTEB's set in a folder {copies} (<xx>-en/test-*.parquet, test/<xx>-en.jsonl), or the files "
            "<xx>-en.training.<xx>, .en and .gold of https://comparable.limsi.fr/bucc2018/ (XTREME: test)"
        )

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs that have gold for the training split, or that MTEB's copy has."""
        return tuple(self._find(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy, precision, recall and F1 of each pair, foreign to English, then their `mean`."""
        scores: list[Score] = []
        for pair, paths in self._find(data, languages).items():
            scores += self._score(encode, pair, self._read(pair, paths))
        return scores + averages(scores, "mean")

    def _find(self, data: Path, languages: Sequence[str]) -> dict[str, list[Path]]:
        found = {pair: [paths[TRAINING]] for pair, paths in golds(data, (TRAINING,), languages=languages).items()}
        for pair in _PAIRS:
            if pair not in found and among(pair.partition("-")[0], languages):
                found[pair] = export(data, _COPIES[self.corpus], split="test", subset=pair)
        return {pair: paths for pair, paths in sorted(found.items()) if paths}

    def _read(self, pair: str, paths: Sequence[Path]) -> Lookup:
        where = f"{self.name} {pair}"
        if ".gold" in paths[0].name:
            return _of_bucc(paths[0], task=self.name, corpus=self.corpus)
        return _whole(paths, where=where) if self.corpus == "all" else _rows(paths, where=where)

    def _score(self, encode: Encode, pair: str, lookup: Lookup) -> list[Score]:
        foreign, english = pair.split("-")
        sides = (lookup.queries, foreign), (lookup.corpus, english)
        vectors = [
            embed(encode, texts, where=f"{self.name} {pair}, language {language}", place=place)
            for (texts, language), place in zip(sides, lookup.places, strict=True)
        ]
        found = neighbours(vectors[0], vectors[1], 1, metric="cosine")
        answers = first_places(lookup.corpus)[found.forward_ids[:, 0]]
        details = (_mistakes(lookup, answers, found.forward_scores[:, 0]),)
        return [
            metric.score(self.name, pair, float(items.mean(dtype=np.float64)), len(items), items=items, details=shown)
            for metric, items, shown in zip(
                METRICS, _outcomes(lookup.labels, answers), (details, (), (), ()), strict=True
            )
        ]


BITEXT: tuple[Bitext, ...] = (Bitext("bucc/mteb"), Bitext("bucc/mteb-v2", corpus="gold"))


def _outcomes(labels: NDArray[np.int64], answers: NDArray[np.int64]) -> list[NDArray[np.float32]]:
    """Of each query hit or miss, and precision, recall and F1 of its label; the means are the weighted averages."""
    from sklearn.metrics import precision_recall_fscore_support

    known, place = np.unique(labels, return_inverse=True)
    parts = precision_recall_fscore_support(labels, answers, labels=known, average=None, zero_division=0)
    outcomes = [labels == answers, *(part[place.reshape(-1)] for part in parts[:3])]
    return [np.asarray(values, np.float32) for values in outcomes]


def _mistakes(lookup: Lookup, answers: NDArray[np.int64], cosines: NDArray[np.float32]) -> Detail:
    wrong = np.flatnonzero(answers != lookup.labels)
    rows = [
        (lookup.queries[i], lookup.corpus[answers[i]], lookup.corpus[lookup.labels[i]], float(cosines[i]))
        for i in wrong[np.argsort(-cosines[wrong], kind="stable")][:MISTAKES].tolist()
    ]
    return Detail("mistakes", ("source", "found", "expected", "score"), tuple(rows))


def _of_bucc(gold: Path, *, task: str, corpus: str) -> Lookup:
    split = load(gold, task=task)
    queries = tuple(split.source.texts[source] for source, _ in split.gold)
    targets = np.array([target for _, target in split.gold], np.int64)

    def query(row: int) -> str:
        return f"{split.source.path}:{split.gold[row][0] + 1}"

    if corpus == "all":
        return Lookup(queries, split.target.texts, targets, (query, lambda row: f"{split.target.path}:{row + 1}"))
    places = query, lambda row: f"{split.target.path}:{targets[row] + 1}"
    return Lookup(queries, tuple(split.target.texts[row] for row in targets), np.arange(len(targets)), places)


def _rows(paths: Sequence[Path], *, where: str) -> Lookup:
    """One pair a record."""
    pairs: list[tuple[str, str]] = []
    places: list[str] = []
    for path in paths:
        for number, record in numbered_records(path, ("sentence1", "sentence2"), where=where):
            pair = record["sentence1"], record["sentence2"]
            if not all(isinstance(text, str) and text.strip() for text in pair):
                raise EvaluationError(
                    f"{where}: {path}:{number}: sentence1 or sentence2 is no sentence; export it again"
                )
            pairs.append(pair)
            places.append(f"{path}:{number}")
    queries, corpus = zip(*pairs, strict=True) if pairs else ((), ())
    return _checked(Lookup(queries, corpus, np.arange(len(pairs)), (places.__getitem__,) * 2), paths, where)


def _whole(paths: Sequence[Path], *, where: str) -> Lookup:
    """One record: all sentences of both sides, and gold as pairs of their numbers from 1."""
    found = [record for path in paths for record in records(path, _FIELDS, where=where)]
    if len(found) != 1 or not all(isinstance(found[0][name], list) for name in _FIELDS):
        raise EvaluationError(f"{where}: {paths[0]}: is no single record of three lists, {', '.join(_FIELDS)}")
    sources, targets, gold = (found[0][name] for name in _FIELDS)
    for side, texts in zip(_FIELDS, (sources, targets), strict=False):
        bad = next((row for row, text in enumerate(texts, 1) if not isinstance(text, str)), 0)
        if bad:
            raise EvaluationError(f"{where}: {paths[0]}: number {bad} of {side} is no sentence; export it again")
    for pair in gold:
        if not _is_pair(pair) or not (0 < pair[0] <= len(sources) and 0 < pair[1] <= len(targets)):
            raise EvaluationError(
                f"{where}: {paths[0]}: gold has {pair} for {len(sources)} and {len(targets)} sentences, numbered from 1"
            )
    queries = tuple(sources[source - 1] for source, _ in gold)
    labels = np.array([row - 1 for _, row in gold], np.int64)
    places = (
        lambda row: f"{paths[0]}, number {gold[row][0]} of sentence1",
        lambda row: f"{paths[0]}, number {row + 1} of sentence2",
    )
    return _checked(Lookup(queries, tuple(targets), labels, places), paths, where)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(number, int) for number in pair)


def _checked(lookup: Lookup, paths: Sequence[Path], where: str) -> Lookup:
    if not lookup.queries:
        raise EvaluationError(f"{where}: {paths[0]}: has no gold pair; export it again")
    return lookup
