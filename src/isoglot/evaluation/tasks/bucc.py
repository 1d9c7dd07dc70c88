"""BUCC 2018: find the pairs of translations hidden in two sets of sentences most of which have no partner.

**Mining** (`bucc/xtreme`, `/oracle`, `/moco`, `/ease`, `/dev-split`). The papers share the data and the name of the
task, and little else. They differ in margin, k, repeated sentences, and above all in the pairs used for tuning the
threshold and for scoring; so each has its own name, and numbers of different protocols are not comparable. The miner is
`search.mine` and the threshold `search.tune`.

**Search** (`bucc/mteb`, `/mteb-v2`): not mining, but the search of the one translation of each gold sentence, without a
threshold. MTEB's first version searches all English sentences of the training split, its second only those that occur
in gold, about forty times fewer (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark", and the tasks
`BUCC` and `BUCC.v2` of its package). Both run on the files of BUCC as well as on MTEB's copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Cells, Detail, Details, Encode, Metric, Score, worst
from isoglot.evaluation.sets import SetTask, Source, among, sources
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.tasks.retrieval import first_places
from isoglot.evaluation.vectors import embed_rows
from isoglot.search.best import Floats, Ids
from isoglot.search.blocks import Direction, Margin
from isoglot.search.exact import neighbours
from isoglot.search.pairs import Pairs, mine, sort_pairs
from isoglot.search.threshold import Quality, tune

SAMPLE, TRAINING = "sample", "training"
POSITIVE = float(np.nextafter(0, 1))  # the smallest threshold above 0
METRICS = Metric("f1", main=True), Metric("precision"), Metric("recall")
SEARCHED = Metric("accuracy"), Metric("precision"), Metric("recall"), Metric("f1", main=True)

# XTREME renamed the splits of BUCC (Zweigenbaum, Sharoff and Rapp 2018, "Overview of the Third BUCC Shared Task"), and
# publishes no gold of `test`. MTEB's copies are of the training split.
_SPLITS = {"sample": SAMPLE, "dev": SAMPLE, "training": TRAINING, "test": TRAINING}

# pair (`zh-en`) -> split -> its foreign sentences, English sentences and gold
PairSources = dict[str, dict[str, tuple[Source, Source, Source]]]


@dataclass(frozen=True, slots=True)
class Split:
    """One split of a pair of languages. `gold` are rows (source, target), each pair once, in the order of its file.

    `name` is the split's name in the files; `where` (task, subset) opens the error messages.
    """

    name: str
    where: str
    languages: tuple[str, str]
    source: Rows
    target: Rows
    gold: tuple[tuple[int, int], ...]


def find(task: str, names: Sequence[str], data: Path, *, languages: Sequence[str] = ()) -> PairSources:
    """The pairs of the wanted languages, sorted, with the splits that have gold."""
    pairs: PairSources = {}
    parts = sources(task, names, data, merge=True)
    for (split, subset), gold in parts.items():
        pair, _, kind = subset.partition(".")
        code, _, english = pair.partition("-")
        if kind == "gold" and among(code, languages):
            three = parts[split, f"{pair}.{code}"], parts[split, f"{pair}.{english}"], gold
            pairs.setdefault(pair, {}).setdefault(_SPLITS[split], three)
    return dict(sorted(pairs.items()))


def load(pair: str, parts: tuple[Source, Source, Source], *, task: str) -> Split:
    """A split of a pair. Raises `EvaluationError` for files that cannot be used and an id of gold without sentence."""
    where, (code, english) = f"{task} {pair}", pair.split("-")
    source, target = parts[0].read(f"{where}, language {code}"), parts[1].read(f"{where}, language {english}")
    rows = [{row.id: place for place, row in enumerate(side)} for side in (source, target)]
    gold: dict[tuple[int, int], None] = {}
    for row in parts[2].read(where):
        for key, places, side in zip(row.texts, rows, (source, target), strict=True):
            if key not in places:
                file = side[0].places[0].rpartition(":")[0]
                raise EvaluationError(f"{where}: {row.places[0]}: the id {key!r} is not in {file}; use one release")
        gold[rows[0][row.texts[0]], rows[1][row.texts[1]]] = None
    return Split(parts[2].part.split, where, (code, english), source, target, tuple(gold))


# Designs: the pairs on which the threshold of a mining task is tuned, and the pairs that are scored. This choice
# changes F1 more than most models do. Designs work on mined lists, not on vectors.


class Mined(NamedTuple):
    """A split and the pairs mined from it: rows of its files, best first."""

    split: Split
    pairs: Pairs


class Cut(NamedTuple):
    """The pairs of the split `scored` that are at or above a threshold, which was `tuned` on the split `sample`."""

    sample: Split
    scored: Split
    tuned: Quality
    pairs: Pairs


def _transfer(sample: Mined, scored: Mined) -> Iterator[Cut]:
    tuned = tune(sample.pairs, sample.split.gold)
    yield Cut(sample.split, scored.split, tuned, scored.pairs.above(tuned.threshold))


def _halves(sample: Mined) -> Iterator[Cut]:
    """Each half of the source sentences, parted by a hash of their ids, with the threshold tuned on the other half."""
    half = np.array([sha256(row.id.encode()).digest()[0] % 2 for row in sample.split.source], np.int64)
    halves = []
    for part in (0, 1):
        gold = tuple(pair for pair in sample.split.gold if half[pair[0]] == part)
        if not gold:
            raise EvaluationError(f"{sample.split.where}: one half of the source ids has no gold pair; add gold pairs")
        pairs, mask = sample.pairs, half[sample.pairs.source] == part
        split = replace(sample.split, name=f"{sample.split.name}, half {part + 1}", gold=gold)
        halves.append(Mined(split, Pairs(pairs.source[mask], pairs.target[mask], pairs.score[mask])))
    yield from (*_transfer(halves[1], halves[0]), *_transfer(halves[0], halves[1]))


# Which splits are mined, the scored one last, and how thresholds come from them: "transfer" tunes on the sample and
# scores the training split; "same" tunes and scores on the sample, so its threshold is an oracle's; "halves" tunes on
# each half of the sample for the other.
DESIGNS: dict[str, tuple[tuple[str, ...], Callable[..., Iterator[Cut]]]] = {
    "transfer": ((SAMPLE, TRAINING), _transfer),
    "same": ((SAMPLE,), lambda sample: _transfer(sample, sample)),
    "halves": ((SAMPLE,), _halves),
}


@dataclass(frozen=True, slots=True)
class Mining(SetTask):
    """A mining task: how pairs are mined, and by which design the threshold is tuned and the rest scored.

    `k`, `margin`, `direction` and `floor` (the lowest score ever kept) are those of `search.mine`. `repeated` names
    what becomes of a sentence that is in its file more than once: "merged" takes part once and in no pair that
    counts, since its id is ambiguous; "kept" leaves the copies to compete. `design`: see
    `DESIGNS`. Subsets are named as the files are (`zh-en`).
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    reads: tuple[str, ...] = ("bucc2018",)
    k: int = 4
    margin: Margin = "ratio"
    direction: Direction = "max"
    floor: float | None = None
    repeated: str = "merged"
    design: str = "transfer"

    def find(self, data: Path, languages: Sequence[str] = ()) -> PairSources:
        """The pairs whose gold is there for every split that the design needs."""
        pairs = find(self.name, self.reads, data, languages=languages)
        return {pair: parts for pair, parts in pairs.items() if set(DESIGNS[self.design][0]) <= set(parts)}

    def score(self, encode: Encode, subsets: PairSources) -> Iterator[Score]:
        """F1, precision and recall of each pair. The items of f1 are counts for each source."""
        splits, design = DESIGNS[self.design]
        for pair, parts in subsets.items():
            mined = [self._mine(encode, load(pair, parts[split], task=self.name)) for split in splits]
            cuts, split = list(design(*mined)), mined[-1].split
            columns = ([getattr(cut.pairs, name) for cut in cuts] for name in ("source", "target", "score"))
            pairs = sort_pairs(*map(np.concatenate, columns))  # best first
            listed, gold = list(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True)), set(split.gold)
            right = np.array([pair_of_rows in gold for pair_of_rows in listed], np.bool_)
            # Of each source sentence: how many of its pairs are right, kept, and gold.
            sources_of = pairs.source[right], pairs.source, np.array([source for source, _ in split.gold])
            counts = [np.bincount(rows, minlength=len(split.source)) for rows in sources_of]
            items = np.stack(counts, axis=1).astype(np.float32)
            wrong = np.flatnonzero(~right)
            # Where a source has several translations, the first is the one expected.
            wrong_pairs, expected = [listed[place] for place in wrong], dict(reversed(split.gold))
            details = self._mining(cuts), *_worst(split.source, split.target, wrong_pairs, expected, pairs.score[wrong])
            for metric in METRICS:
                more = {"items": items, "statistic": metric.name, "details": details if metric.main else ()}
                yield metric.score(self.name, pair, STATISTICS[metric.name](items), len(items), **more)

    def _mine(self, encode: Encode, split: Split) -> Mined:
        sources, source_unique = _distinct(split.source, self.repeated)
        targets, target_unique = _distinct(split.target, self.repeated)
        x, y = (  # all lines are encoded, repeated ones too, so that a message names the line of the file
            embed_rows(encode, rows, where=f"{split.where}, {split.name}, language {language}")[numbers]
            for rows, language, numbers in zip(
                (split.source, split.target), split.languages, (sources, targets), strict=True
            )
        )
        pairs = mine(x, y, k=self.k, margin=self.margin, direction=self.direction, threshold=self.floor)
        unique = source_unique[pairs.source] & target_unique[pairs.target]
        return Mined(split, Pairs(sources[pairs.source[unique]], targets[pairs.target[unique]], pairs.score[unique]))

    def _mining(self, cuts: Sequence[Cut]) -> Detail:
        columns = ("tuned on", "scored on", "threshold", "f1 tuned", "kept", "gold", "margin", "k", "direction")
        rows = tuple(
            (
                *(cut.sample.name, cut.scored.name),
                cut.tuned.threshold if np.isfinite(cut.tuned.threshold) else "none: nothing right was mined",
                *(cut.tuned.f1, len(cut.pairs), len(cut.scored.gold), self.margin, self.k, self.direction),
            )
            for cut in cuts
        )
        return Detail("mining", columns, rows)


_SAMPLED = ("xtreme-bucc2018", "bucc2018")  # XTREME's copy, which has no training split, and the set itself
MINING: tuple[Mining, ...] = (
    Mining("bucc/xtreme", floor=POSITIVE),
    Mining("bucc/oracle", floor=POSITIVE, repeated="kept", design="same", sets=_SAMPLED),
    Mining("bucc/moco", k=3, margin="distance"),
    Mining("bucc/ease", k=1, margin="absolute", direction="forward"),
    Mining("bucc/dev-split", floor=POSITIVE, design="halves", sets=_SAMPLED),
)


def _distinct(side: Rows, repeated: str) -> tuple[Ids, NDArray[np.bool_]]:
    """The rows that take part, and of each of them whether its pairs count."""
    if repeated == "kept":
        return np.arange(len(side)), np.ones(len(side), np.bool_)
    counts = Counter(side.texts())
    rows = np.unique(first_places(side.texts()))
    return rows, np.array([counts[side[row].texts[0]] == 1 for row in rows], np.bool_)


def _worst(
    source: Rows, target: Rows, pairs: Sequence[tuple[int, int]], expected: Mapping[int, int], scores: NDArray[Any]
) -> Details:
    """The wrong pairs, rows of both sides, of the best scores; `expected` are the targets of the sources."""

    def row(at: int) -> Cells:
        query, answer = pairs[at]
        right = target[expected[query]].texts[0] if query in expected else ""
        return source[query].texts[0], target[answer].texts[0], right, float(scores[at])

    return worst(("source", "found", "expected", "score"), scores, row)


@dataclass(frozen=True, slots=True)
class Bitext(SetTask):
    """The foreign sentences of gold as queries, English ones as the `corpus`: "all" of the split, or those of "gold".

    The nearest by cosine is the answer; where a text is in the corpus twice, the first is found. Accuracy, and
    precision, recall and F1 averaged over the rows of the corpus that are gold, each weighted by its queries.
    """

    metrics: ClassVar[tuple[Metric, ...]] = SEARCHED
    corpus: str = "all"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, Source, Source]]:
        """Pairs that have gold for the training split, or that MTEB's copy has."""
        pairs = find(self.name, self.reads, data, languages=languages)
        return {pair: parts[TRAINING] for pair, parts in pairs.items() if TRAINING in parts}

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, Source, Source]]) -> Iterator[Score]:
        """Accuracy, precision, recall and F1 of each pair, foreign to English."""
        for pair, parts in subsets.items():
            split = load(pair, parts, task=self.name)
            queries = Rows(split.source[source] for source, _ in split.gold)
            labels = np.array([target for _, target in split.gold], np.int64)
            corpus = split.target
            if self.corpus == "gold":
                corpus, labels = Rows(corpus[row] for row in labels), np.arange(len(labels))
            sides = zip((queries, corpus), split.languages, strict=True)
            x, y = (embed_rows(encode, rows, where=f"{split.where}, language {code}") for rows, code in sides)
            result = neighbours(x, y, 1, metric="cosine")
            answers = first_places(corpus.texts())[result.forward_ids[:, 0]]
            wrong = np.flatnonzero(answers != labels)
            wrong_pairs, scores = list(zip(wrong.tolist(), answers[wrong].tolist(), strict=True)), result.forward_scores
            details = _worst(queries, corpus, wrong_pairs, dict(enumerate(labels.tolist())), scores[wrong, 0])
            for metric, items in zip(SEARCHED, _outcomes(labels, answers), strict=True):
                yield metric.mean_of(self.name, pair, items, details=details)
                details = ()


BITEXT: tuple[Bitext, ...] = (  # on the files of BUCC, or on MTEB's copy
    Bitext("bucc/mteb", ("bucc2018", "BUCC")),
    Bitext("bucc/mteb-v2", ("bucc2018", "BUCC.v2"), corpus="gold"),
)


def _outcomes(labels: Ids, answers: Ids) -> list[Floats]:
    """Of each query hit or miss, and precision, recall and F1 of its label; the means are the weighted averages."""
    from sklearn.metrics import precision_recall_fscore_support

    distinct, numbers = np.unique(labels, return_inverse=True)
    parts = precision_recall_fscore_support(labels, answers, labels=distinct, average=None, zero_division=0)
    outcomes = [labels == answers, *(part[numbers.reshape(-1)] for part in parts[:3])]
    return [np.asarray(values, np.float32) for values in outcomes]
