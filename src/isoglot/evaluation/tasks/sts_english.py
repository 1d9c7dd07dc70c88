"""The seven English similarity sets: STS 2012 to 2016, STS benchmark, SICK relatedness, of SentEval and of MTEB.

STS 2012 to 2016 consist of corpora (headlines, image captions, ...) whose gold scores and cosines lie at different
heights, so how they are put together moves the number by several points, and papers differ. All three ways are given:

- `all` one correlation over the pairs of all corpora (SimCSE, EASE; dual momentum contrast, appendix);
- `wmean` the mean of the corpora's correlations, weighted by pairs (BERT-flow, whitening; dual momentum contrast);
- `mean` their plain mean (SentEval, Conneau and Kiela 2018).

The other two sets are one corpus, whose three numbers are the same, so that a table may take one column for all seven.

MTEB's copy of STS 2012 to 2016 is the same pairs, and does not say of which corpus each is: it gives `all` alone. What
it has of the other two is other data, and other tasks: the STS benchmark as it was before SentEval put it in lower case
(`sts-b/mteb`), and SICK whole, where SentEval tests a half (`sick-r/mteb`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.evaluation.base import Detail, Encode, Metric, Score
from isoglot.evaluation.exports import export
from isoglot.evaluation.files import find
from isoglot.evaluation.tasks.sts import (
    CORRELATIONS,
    Find,
    Items,
    Pairs,
    Read,
    chosen,
    correlation,
    correlation_metric,
    joined,
    judge,
    mistakes,
)
from isoglot.evaluation.tasks.sts_files import (
    SICK_SCALE,
    STS_SCALE,
    read_export,
    read_sick,
    read_stsb,
    read_two_files,
)

SUBSET = "eng"

_PLACES = ("senteval-en", "", "downstream", "data/downstream", "SentEval/data/downstream")
_KINDS = ("input", "gs")
_CORPORA = {
    "12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "13": ("FNWN", "headlines", "OnWN"),
    "14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}


@dataclass(frozen=True, slots=True)
class EnglishSts:
    """One English set, subset `eng`, with the metrics `spearman/all`, `/wmean`, `/mean` and those of Pearson.

    `find` gives a reader for each of the `corpora`, or one named "" for the pairs of all of them, which then are put
    together in the first way only; none when the set is not there.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(
        correlation_metric(f"{kind}/{way}") for kind in CORRELATIONS for way in ("all", "wmean", "mean")
    )
    name: str
    needs: str
    find: Find
    corpora: tuple[str, ...] = ("",)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """`eng`, if the set is there and English was not left out."""
        return chosen({SUBSET: None} if self.find(data) else {}, languages)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Both correlations in each of the three ways. Raises `EvaluationError` naming the corpus."""
        if not self.subsets(data, languages=languages):
            return []
        readers = self.find(data)
        pairs: list[Pairs] = []
        parts: list[Items] = []
        for corpus, read in readers.items():
            where = f"{self.name} {SUBSET}{corpus and f', corpus {corpus}'}"
            pairs.append(read(where=where))
            parts.append(judge(encode, pairs[-1], where=where, languages=(SUBSET, SUBSET)))
        details = (mistakes(joined(pairs), np.concatenate(parts)),)
        scores = [s for kind in CORRELATIONS for s in combine(parts, task=self.name, kind=kind, details=details)]
        return [score for score in scores if tuple(readers) == self.corpora or score.metric.endswith("/all")]


def combine(parts: Sequence[Items], *, task: str, kind: str, details: tuple[Detail, ...] = ()) -> list[Score]:
    """One correlation, `kind`, of the corpora of a set in the three ways: `all`, `wmean`, `mean`.

    The items of the two means say of each pair which corpus it is of.
    """
    together = np.concatenate(parts)
    corpora = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    marked = np.column_stack([together, corpora]).astype(np.float32)
    return [
        correlation(task, SUBSET, kind, items=together, metric=f"{kind}/all", details=details),
        *(correlation(task, SUBSET, f"{kind}/{way}", items=marked) for way in ("wmean", "mean")),
    ]


def find_semeval(data: Path, year: str) -> dict[str, Read]:
    """The corpora of one of STS 2012 to 2016 (`year` is `12` to `16`), or MTEB's copy of all of them together.

    A file that lacks is told when it is read.
    """
    folder = _find(data, f"STS{year}-en-test", "STS")
    if folder is None:
        return find_export(data, f"sts{year}-sts", f"STS{year}")
    files = {
        corpus: [
            find(folder, ("",), f"STS.{kind}.{corpus}.txt") or folder / f"STS.{kind}.{corpus}.txt" for kind in _KINDS
        ]
        for corpus in _CORPORA[year]
    }
    return {corpus: partial(read_two_files, *paths) for corpus, paths in files.items()}


def find_stsb_english(data: Path, split: str) -> dict[str, Read]:
    """A split of the STS benchmark as SentEval has it, tokenised and in lower case."""
    path = _find(data, f"sts-{split}.csv", "STS/STSBenchmark", "STSBenchmark")
    return {} if path is None else {"": partial(read_stsb, path)}


def find_sick(data: Path, split: str) -> dict[str, Read]:
    """A split of SICK: `test_annotated`, or `trial`, which is what others call dev."""
    path = _find(data, f"SICK_{split}.txt", "SICK")
    return {} if path is None else {"": partial(read_sick, path)}


def find_stsb_mteb(data: Path) -> dict[str, Read]:
    """The test split of the STS benchmark as MTEB has it, in its authors' spelling."""
    return find_export(data, "stsbenchmark-sts", "STSBenchmark")


def find_sick_mteb(data: Path) -> dict[str, Read]:
    """All of SICK, which MTEB calls its test split."""
    return find_export(data, "sickr-sts", "SICK-R", scale=SICK_SCALE)


def find_export(data: Path, *names: str, scale: tuple[float, float] = STS_SCALE) -> dict[str, Read]:
    """The test split of MTEB's copy of a set, in a folder of one of the names."""
    paths = export(data, names, split="test")
    return {"": partial(read_export, paths, scale=scale)} if paths else {}


def _find(data: Path, name: str, *folders: str) -> Path | None:
    return find(data, [f"{place}/{folder}".strip("/") for place in _PLACES for folder in (*folders, "")], name)


NEEDS = "{}, as in SentEval's data/downstream (https://github.com/facebookresearch/SentEval)"
_EXPORT = "https://huggingface.co/datasets/mteb/{0} in a folder {0}"

ENGLISH: dict[str, EnglishSts] = {
    task.name: task
    for task in (
        *(
            EnglishSts(
                f"sts{year}",
                NEEDS.format(f"the folder STS/STS{year}-en-test with STS.input.<corpus>.txt and STS.gs.<corpus>.txt")
                + f", or, for spearman/all, {_EXPORT.format(f'sts{year}-sts')}",
                partial(find_semeval, year=year),
                corpora,
            )
            for year, corpora in _CORPORA.items()
        ),
        EnglishSts("sts-b", NEEDS.format("STS/STSBenchmark/sts-test.csv"), partial(find_stsb_english, split="test")),
        EnglishSts("sts-b/dev", NEEDS.format("STS/STSBenchmark/sts-dev.csv"), partial(find_stsb_english, split="dev")),
        EnglishSts("sts-b/mteb", _EXPORT.format("stsbenchmark-sts"), find_stsb_mteb),
        EnglishSts("sick-r", NEEDS.format("SICK/SICK_test_annotated.txt"), partial(find_sick, split="test_annotated")),
        EnglishSts("sick-r/dev", NEEDS.format("SICK/SICK_trial.txt"), partial(find_sick, split="trial")),
        EnglishSts("sick-r/mteb", _EXPORT.format("sickr-sts"), find_sick_mteb),
    )
}
