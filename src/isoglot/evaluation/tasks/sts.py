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
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Cells, Details, Encode, Metric, Score, item_set_of, worst
from isoglot.evaluation.sets import SetTask, Source, in_memory, words
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.vectors import embed_rows, unit

CORRELATIONS = ("spearman", "pearson")
WAYS = ("all", "wmean", "mean")

TRACKS_5 = ("ara-ara", "ara-eng", "spa-spa", "spa-eng", "tur-eng")
EXTENDED_10 = words("eng-eng ara-ara spa-spa ara-eng deu-eng tur-eng spa-eng fra-eng ita-eng nld-eng")
MTEB_11 = (*EXTENDED_10, "kor-kor")
# Without fra-pol, which has only 8 pairs.
MPCL_17 = words("eng deu spa pol tur ara rus zho fra deu-eng spa-eng ita pol-eng zho-eng spa-ita deu-fra deu-pol")
STS17_SETS = ("sts17-official", "sts17-crosslingual-sts")  # the copy adds subsets to the tracks

SUBSET = "eng"  # of the English sets

_LETTERS = 300  # maximum characters of a sentence in that table: some sets pair whole articles

Items = NDArray[np.float32]  # (n, 2): gold, cosine


def correlation_metric(name: str) -> Metric:
    """A correlation. Spearman is the main number; of the ways to put corpora together, that of all pairs."""
    return Metric(name, "correlation", main=name in ("spearman", "spearman/all"))


@dataclass(frozen=True, slots=True)
class Sts(SetTask):
    """A set in several languages: Spearman and Pearson of each subset, then averages.

    With `rows`, subset -> pairs in memory, no set is read. Subsets are named by language codes, English last, and
    sentence 1 is always in the first language. Each is one corpus, named "".
    """

    merges: ClassVar[bool] = True
    metrics: ClassVar[tuple[Metric, ...]] = tuple(map(correlation_metric, CORRELATIONS))
    reads: tuple[str, ...] = ()
    rows: Mapping[str, Rows] = field(default_factory=dict)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """The subsets whose files are there, in the order of the set, each with its corpora."""
        parts = {subset: in_memory(subset, rows) for subset, rows in self.rows.items()}
        parts = parts or SetTask.find(self, data, languages)
        return {subset: {"": source} for subset, source in parts.items()}

    def score(self, encode: Encode, subsets: dict[str, dict[str, Source]]) -> Iterator[Score]:
        """Both correlations of each subset. Raises `EvaluationError` naming the corpus."""
        for subset, corpora in subsets.items():
            pairs: list[Rows] = []
            parts: list[Items] = []
            for corpus, source in corpora.items():
                where = f"{self.name} {subset}{corpus and f', corpus {corpus}'}"
                pairs.append(source.read(where))
                parts.append(judge(encode, pairs[-1], where=where, languages=sides(subset)))
            details = mistakes(Rows(chain.from_iterable(pairs)), np.concatenate(parts))
            yield from correlations(self.name, subset, parts, self.ways(corpora), details=details)

    def ways(self, corpora: Iterable[str]) -> tuple[str, ...]:  # noqa: ARG002
        """The ways to put the corpora together."""
        return ("",)


def read_pairs(task: Sts, data: Path, subset: str) -> Rows:
    """The pairs of a subset, in the order of its items. Raises `EvaluationError` if it is not there."""
    subsets = task.find(data)
    if subset not in subsets:
        raise EvaluationError(f"{task.name} {subset}: not in {data}: {task.needs}")
    parts = (source.read(f"{task.name} {corpus or subset}") for corpus, source in subsets[subset].items())
    return Rows(chain.from_iterable(parts))


def sides(subset: str) -> tuple[str, str]:
    """The languages of the two sides of `deu-eng`, of `deu` (the same twice) and of `spa-eng-4b`."""
    codes = subset.split("-")
    return codes[0], codes[1] if len(codes) > 1 else codes[0]


def judge(encode: Encode, pairs: Rows, *, where: str, languages: tuple[str, str]) -> Items:
    """Gold and cosine of each pair. The cosine of a zero vector with anything is 0.

    Raises `EvaluationError` for vectors that cannot be used, and for pairs whose gold scores do not differ.
    """
    if len(set(pairs.labels)) < 2:
        raise EvaluationError(f"{where}: its {len(pairs)} labelled pairs have no two different scores; add pairs")
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
    first, second = (f"{where}, sentence {number}, language {code}" for number, code in enumerate(languages, 1))
    return embed_rows(encode, pairs, where=first), embed_rows(encode, pairs, where=second, side=1)


def correlations(
    task: str, subset: str, parts: Sequence[Items], ways: Sequence[str], *, details: Details = ()
) -> Iterator[Score]:
    """The scores of gold against cosine, both correlations of the corpora of a set in each of the `ways`.

    "" and `all` are one correlation over all; the items of `wmean` and `mean` include the number of each pair's
    corpus. Only Spearman over all pairs shows the mistakes.
    """
    together = np.concatenate(parts)
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    marked = np.column_stack([together, numbers]).astype(np.float32)
    item_set = item_set_of(together[:, 0])
    for kind, way in product(CORRELATIONS, ways):
        name = f"{kind}/{way}".rstrip("/")
        statistic, items = (name, marked) if way in ("wmean", "mean") else (kind, together)
        yield correlation_metric(name).score(
            task, subset, STATISTICS[statistic](items), len(items),
            items=items, statistic=statistic, item_set=item_set, details=details if statistic == "spearman" else (),
        )  # fmt: skip


def rank_errors(items: Items) -> NDArray[np.float64]:
    """The rank (n,) of each pair by cosine less its rank by gold.

    It is a share of the pairs: 0.5 is a pair that the cosine puts half the list nearer than people do, and -0.5 the
    opposite.
    """
    from scipy.stats import rankdata

    gold, cosine = (rankdata(column) for column in items.T)
    return np.asarray((cosine - gold) / len(items))


def mistakes(pairs: Rows, items: Items) -> Details:
    """The ten pairs whose ranks by gold and by cosine differ most, worst first."""
    differences = rank_errors(items)

    def row(at: int) -> Cells:
        texts = (text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..." for text in pairs[at].texts)
        return *texts, float(pairs.labels[at]), float(items[at, 1]), float(differences[at])

    columns = ("sentence 1", "sentence 2", "gold", "cosine", "rank difference")
    return worst(columns, np.abs(differences), row)


@dataclass(frozen=True, slots=True)
class EnglishSts(Sts):
    """One English set, subset `eng`, with the metrics `spearman/all`, `/wmean`, `/mean` and those of Pearson.

    `splits` has one of each set; the first that is there is read. If the task has `corpora` and the set does not
    record the corpus of a pair, only the first way of combining is used.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(map(correlation_metric, map("/".join, product(CORRELATIONS, WAYS))))
    splits: tuple[str, ...] = ()
    corpora: bool = False

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, dict[str, Source]]:
        """`eng` with its corpora, or with one named "" for all of its pairs."""
        for name, split in zip(self.reads, self.splits, strict=True):
            if parts := SetTask.find(replace(self, reads=(name,), splits=(), split=split), data, languages):
                return {SUBSET: {part.partition(".")[2]: source for part, source in parts.items()}}
        return {}

    def ways(self, corpora: Iterable[str]) -> tuple[str, ...]:
        """All three, if the corpora are there."""
        return WAYS[:1] if self.corpora and "" in corpora else WAYS

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:  # noqa: ARG002
        """No mean of one subset."""
        return ()


STS: dict[str, Sts] = {
    task.name: task
    for task in (
        *(
            EnglishSts(f"sts{year}", ("senteval-en", f"sts{year}-sts"), splits=(f"sts{year}", "test"), corpora=True)
            for year in range(12, 17)
        ),
        EnglishSts("sts-b", ("senteval-en",), splits=("sts-b-test",)),
        EnglishSts("sts-b/dev", ("senteval-en",), splits=("sts-b-dev",)),
        EnglishSts("sts-b/mteb", ("stsbenchmark-sts",), splits=("test",)),
        EnglishSts("sick-r", ("senteval-en",), splits=("sick-r-test",)),
        EnglishSts("sick-r/dev", ("senteval-en",), splits=("sick-r-dev",)),
        EnglishSts("sick-r/mteb", ("sickr-sts",), splits=("test",)),
        Sts("sts17", STS17_SETS, {"tracks-5": TRACKS_5, "extended-10": EXTENDED_10, "mteb-11": MTEB_11}),
        Sts("sts22", ("sts22-crosslingual-sts",), {"mpcl-17": MPCL_17}),
        Sts("sts22/v1", ("STS22",), {"mpcl-17": MPCL_17}),
        Sts("sts-b-multi", ("stsb-multi-mt",)),
        Sts("sts-b-multi/dev", ("stsb-multi-mt",), split="dev"),
        Sts("sts-more", ("similarity",)),
        Sts("sts", ("own/sts",)),
    )
}
