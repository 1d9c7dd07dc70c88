"""Semantic textual similarity: whether the cosine of two sentences ranks pairs as people do.

The same for every set: the correlation of the cosines with the gold scores, over all pairs of a subset at once, never
over batches. Pairs without a gold score are ignored.

STS 2012 to 2016 consist of corpora (headlines, image captions, ...) whose gold scores and cosines have different means,
so the way of combining them changes the number by several points, and papers differ. All three ways are computed:

- `all` one correlation over the pairs of all corpora (SimCSE, EASE; dual momentum contrast, appendix);
- `wmean` the mean of the corpora's correlations, weighted by pairs (BERT-flow, whitening; dual momentum contrast);
- `mean` their plain mean (SentEval, Conneau and Kiela 2018).

The other English sets are one corpus, whose three numbers are the same, so that a table can use one column for all
seven. MTEB's copy of STS 2012 to 2016 has the same pairs without their corpora: it gives `all` alone. Its copies of the
other two differ, so they are other tasks: the STS benchmark as it was before SentEval put it in lower case
(`sts-b/mteb`), and SICK whole, where SentEval tests a half (`sick-r/mteb`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import BaseTask, Detail, Encode, Metric, Score, item_set_of
from isoglot.evaluation.sets import Source, among, in_memory, sources, words
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.vectors import embed_rows, unit

CORRELATIONS = ("spearman", "pearson")

TRACKS_5 = ("ara-ara", "ara-eng", "spa-spa", "spa-eng", "tur-eng")
EXTENDED_10 = words("eng-eng ara-ara spa-spa ara-eng deu-eng tur-eng spa-eng fra-eng ita-eng nld-eng")
MTEB_11 = (*EXTENDED_10, "kor-kor")
MPCL_17 = words(
    "eng deu spa pol tur ara rus zho fra deu-eng spa-eng ita pol-eng zho-eng spa-ita deu-fra deu-pol"
)  # without fra-pol, which has only 8 pairs
STS17_SETS = ("sts17-official", "sts17-crosslingual-sts")  # the copy adds subsets to the tracks

SUBSET = "eng"  # of the English sets

_SHOWN = 10  # pairs in the table of mistakes
_LETTERS = 300  # maximum characters of a sentence in that table: some sets pair whole articles

Items = NDArray[np.float32]  # (n, 2): gold, cosine


def joined(parts: Iterable[Rows]) -> Rows:
    """All pairs of several parts, one part after the other."""
    return Rows(chain.from_iterable(parts))


def correlation_metric(name: str) -> Metric:
    """A correlation. Spearman is the main number; of the ways to put corpora together, that of all pairs."""
    return Metric(name, "correlation", main=name in ("spearman", "spearman/all"))


@dataclass(frozen=True, slots=True)
class Sts(BaseTask):
    """A set in several languages: Spearman and Pearson of each subset, then averages.

    `reads` are the sources of its pairs, see `split_sources`. With `rows`, subset -> pairs in memory, no set is read.
    Subsets are named by language codes, English last, and sentence 1 is always in the first language.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(map(correlation_metric, CORRELATIONS))
    name: str
    reads: tuple[str, ...] = ()
    split: str = "test"
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """The subsets whose files are there, in the order of the set; each is one corpus, named ""."""
        if self.rows:
            return {subset: {"": in_memory(subset, rows)} for subset, rows in self.rows.items()}
        parts = split_sources(self.name, self.reads, self.split, data, languages=languages)
        return {subset: {"": source} for subset, source in parts.items()}

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """Both correlations of each subset."""
        for subset, corpora in subsets.items():
            where = f"{self.name} {subset}"
            pairs = corpora[""].read(where)
            items = judge(encode, pairs, where=where, languages=sides(subset))
            details = (mistakes(pairs, items),)
            yield from (correlation(self.name, subset, kind, items=items, details=details) for kind in CORRELATIONS)


def read_pairs(task: Sts | EnglishSts, data: Path, subset: str) -> Rows:
    """The pairs of a subset, in the order of its items. Raises `EvaluationError` if it is not there."""
    subsets = task.find(data)
    if subset not in subsets:
        raise EvaluationError(f"{task.name} {subset}: not in {data}: {task.needs}")
    return joined([source.read(f"{task.name} {corpus or subset}") for corpus, source in subsets[subset].items()])


def split_sources(
    task: str, sets: Sequence[str], split: str, data: Path, *, languages: Sequence[str] = ()
) -> dict[str, Source]:
    """The subsets of a split whose languages are all requested, from the first of the sets that has each.

    With another language, English need not be listed.
    """
    parts = sources(task, sets, data, merge=True)
    return {subset: source for (part, subset), source in parts.items() if part == split and _asked(subset, languages)}


def sides(subset: str) -> tuple[str, str]:
    """The languages of the two sides of `deu-eng`, of `deu` (the same twice) and of `spa-eng-4b`."""
    codes = subset.split("-")
    return codes[0], codes[1] if len(codes) > 1 else codes[0]


def judge(encode: Encode, pairs: Rows, *, where: str, languages: tuple[str, str]) -> Items:
    """Gold and cosine of each pair. The cosine of a zero vector with anything is 0.

    Raises `EvaluationError` for vectors that cannot be used, and for pairs whose gold scores do not differ.
    """
    if len(set(pairs.labels)) < 2:
        raise EvaluationError(
            f"{where}: its {len(pairs)} labelled pairs have no two different scores, so nothing can be ranked; "
            "give more pairs"
        )
    tables = embed_sides(encode, pairs, where=where, languages=languages)
    # Rounded to the resolution of single precision at 1, so that pairs of equal sentences tie at 1 and orthogonal pairs
    # tie at 0; otherwise rounding errors would rank them.
    first, second = (unit(table) for table in tables)
    cosines = np.einsum("nd,nd->n", first, second).round(7) + 0.0  # no -0
    return np.stack([np.array(pairs.labels), cosines], axis=1).astype(np.float32)


def embed_sides(
    encode: Encode, pairs: Rows, *, where: str, languages: tuple[str, str]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors (N, D) of the first and of the second sentences. Raises `EvaluationError` with the language and place."""
    first, second = (
        embed_rows(encode, pairs, where=f"{where}, sentence {side + 1}, language {language}", side=side)
        for side, language in enumerate(languages)
    )
    return first, second


def correlation(
    task: str, subset: str, kind: str, *, items: Items, metric: str = "", details: tuple[Detail, ...] = ()
) -> Score:
    """The score of gold against cosine, `kind` being one of `CORRELATIONS`. Only Spearman shows the mistakes."""
    value = STATISTICS[kind](items)
    shown, item_set = details if kind == "spearman" else (), item_set_of(items[:, 0])
    named = correlation_metric(metric or kind)
    return named.score(task, subset, value, len(items), items=items, statistic=kind, item_set=item_set, details=shown)


def mistakes(pairs: Rows, items: Items) -> Detail:
    """The ten pairs whose ranks by gold and by cosine differ most, worst first.

    The difference is a share of the pairs: 0.5 is a pair that the cosine puts half the list nearer than people do,
    and -0.5 the opposite.
    """
    from scipy.stats import rankdata

    gold, cosine = (rankdata(column) for column in items.T)
    differences = (cosine - gold) / len(items)
    worst = np.argsort(-np.abs(differences), kind="stable")[:_SHOWN]
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (*map(_short, pairs[at].texts), float(pairs.labels[at]), float(items[at, 1]), float(differences[at]))
        for at in worst
    )
    return Detail("mistakes", ("sentence 1", "sentence 2", "gold", "cosine", "rank difference"), rows)


def _asked(subset: str, languages: Sequence[str]) -> bool:
    codes = set(sides(subset))
    return all(among(code, languages) for code in codes - {"eng"} or codes)


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..."


@dataclass(frozen=True, slots=True)
class EnglishSts(BaseTask):
    """One English set, subset `eng`, with the metrics `spearman/all`, `/wmean`, `/mean` and those of Pearson.

    `origins` are pairs of a set and its split; the first that is there is read. If the task has `corpora` and the set
    does not record the corpus of a pair, only the first way of combining is used.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(
        correlation_metric(f"{kind}/{way}") for kind in CORRELATIONS for way in ("all", "wmean", "mean")
    )
    name: str
    origins: tuple[tuple[str, str], ...]
    corpora: bool = False

    @property
    def reads(self) -> tuple[str, ...]:
        """The sets of its origins."""
        return tuple(name for name, _ in self.origins)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """`eng` with its corpora, or with one named "" for all of its pairs."""
        if not _asked(SUBSET, languages):
            return {}
        parts = (split_sources(self.name, (name,), split, data) for name, split in self.origins)
        first = next(filter(None, parts), {})
        return {SUBSET: {part.partition(".")[2]: source for part, source in first.items()}} if first else {}

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """Both correlations in each of the three ways. Raises `EvaluationError` naming the corpus."""
        pairs: list[Rows] = []
        parts: list[Items] = []
        for corpus, source in subsets[SUBSET].items():
            where = f"{self.name} {SUBSET}{corpus and f', corpus {corpus}'}"
            pairs.append(source.read(where))
            parts.append(judge(encode, pairs[-1], where=where, languages=(SUBSET, SUBSET)))
        details = (mistakes(joined(pairs), np.concatenate(parts)),)
        scores = [s for kind in CORRELATIONS for s in combine(parts, task=self.name, kind=kind, details=details)]
        together = self.corpora and "" in subsets[SUBSET]
        yield from (score for score in scores if not together or score.metric.endswith("/all"))

    def averaged(self, subsets: Iterable[str]) -> Iterable[str]:  # noqa: ARG002
        """No mean of one subset."""
        return ()


def combine(parts: Sequence[Items], *, task: str, kind: str, details: tuple[Detail, ...] = ()) -> list[Score]:
    """One correlation, `kind`, of the corpora of a set in the three ways: `all`, `wmean`, `mean`.

    The items of the two means include the number of each pair's corpus.
    """
    together = np.concatenate(parts)
    corpora = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    marked = np.column_stack([together, corpora]).astype(np.float32)
    return [
        correlation(task, SUBSET, kind, items=together, metric=f"{kind}/all", details=details),
        *(correlation(task, SUBSET, f"{kind}/{way}", items=marked) for way in ("wmean", "mean")),
    ]


ENGLISH: dict[str, EnglishSts] = {
    task.name: task
    for task in (
        *(
            EnglishSts(f"sts{year}", (("senteval-en", f"sts{year}"), (f"sts{year}-sts", "test")), corpora=True)
            for year in range(12, 17)
        ),
        EnglishSts("sts-b", (("senteval-en", "sts-b-test"),)),
        EnglishSts("sts-b/dev", (("senteval-en", "sts-b-dev"),)),
        EnglishSts("sts-b/mteb", (("stsbenchmark-sts", "test"),)),
        EnglishSts("sick-r", (("senteval-en", "sick-r-test"),)),
        EnglishSts("sick-r/dev", (("senteval-en", "sick-r-dev"),)),
        EnglishSts("sick-r/mteb", (("sickr-sts", "test"),)),
    )
}

MULTILINGUAL: dict[str, Sts] = {
    task.name: task
    for task in (
        Sts("sts17", STS17_SETS, lists={"tracks-5": TRACKS_5, "extended-10": EXTENDED_10, "mteb-11": MTEB_11}),
        Sts("sts22", ("sts22-crosslingual-sts",), lists={"mpcl-17": MPCL_17}),
        Sts("sts22/v1", ("STS22",), lists={"mpcl-17": MPCL_17}),
        Sts("sts-b-multi", ("stsb-multi-mt",)),
        Sts("sts-b-multi/dev", ("stsb-multi-mt",), "dev"),
        Sts("sts-more", ("similarity",)),
        Sts("sts", ("own/sts",)),
    )
}
