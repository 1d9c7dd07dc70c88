"""xSIM: the share of sentences whose translation is not the one that a margin chooses, on N-way sets (`xsim/<set>`).

The measure of Heffernan, Çelebi and Schwenk 2022 ("Bitext Mining Using Distilled Sentence Representations for
Low-Resource Languages"), with the margins of Artetxe and Schwenk 2019 over the k = 4 nearest by cosine. It is an
*error*, so lower is better, and has one direction: the subset `deu-eng` searches English for each German sentence. One
search serves both directions of a pair and all three margins, and each text is encoded once.

An N-way set has line-aligned sentences in many languages; other tasks read these sets too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import BaseTask, Details, Encode, Metric, Score, averages, item_set_of
from isoglot.evaluation.sets import Source, among, sources
from isoglot.evaluation.tasks.retrieval import first_places, mistakes
from isoglot.evaluation.vectors import embed_rows, unit
from isoglot.search.best import Floats, Ids
from isoglot.search.blocks import Margin
from isoglot.search.exact import neighbours
from isoglot.search.pairs import MARGINS, Doubles, margins

_ENGLISH = {"en", "eng", "eng_Latn"}  # as the sets name their English text; `eng-GB` of NTREX is another language there

# code -> the partner that a text is for ("" for all others) -> split -> source
TextSources = dict[str, dict[str, dict[str, Source]]]


@dataclass(frozen=True, slots=True)
class NWay:
    """An N-way set: the set of `isoglot.data.sets` called `source`, of which all `splits` are read as one text.

    `lines` are the first line (from 1) and the one after the last, of a set that is cut into a dev and a test half.
    Sentences of different languages belong together by their identifier (line or `index_id`). A language may have more
    than one text, each for certain partners: TICO-19 corrected its English for some languages.
    """

    name: str
    source: str
    splits: tuple[str, ...] = ("test",)
    lines: tuple[int, int] | None = None

    def find(self, data: Path, *, task: str, languages: Sequence[str] = ()) -> TextSources:
        """The texts of the wanted languages and of English, in the order of their codes; none of a missing set.

        Raises `EvaluationError`, beginning with the task, for files that are not a set, `CorpusError` for an unknown
        language.
        """
        texts: TextSources = {}
        for (split, subset), source in sources(task, (self.source,), data).items():
            code, _, partner = subset.partition(".")
            if split in self.splits and (code in _ENGLISH or among(code, languages)):
                texts.setdefault(code, {}).setdefault(partner, {})[split] = source
        return dict(sorted(texts.items()))

    def read(self, languages: TextSources, code: str, *, partner: str, where: str) -> Rows:
        """The sentences of a language for pairs with `partner`, by ascending identifier.

        Raises `EvaluationError`, opened by `where`, for a text or a split of it that is missing, and for an identifier
        that two splits have.
        """
        texts = languages[code]
        parts = texts.get(partner, texts.get("", {}))
        missing = [split for split in self.splits if split not in parts]
        if missing:
            file = next(path for splits in texts.values() for one in splits.values() for path in one.part.files)
            lacks = f"its {missing[0]}" if parts else f"its text for {partner}"
            raise EvaluationError(f"{where}, language {code}: {file} is present, but {lacks} is missing; add it")
        rows = [row for split in self.splits for row in parts[split].read(f"{where}, language {code}")]
        if self.lines is not None:
            rows = [row for row in rows if int(row.id) in range(*self.lines)]
            if not rows:
                first, path = self.lines[0], parts[self.splits[0]].part.files[0]
                raise EvaluationError(f"{where}, language {code}: {path} ends before line {first}; get it again")
        rows.sort(key=lambda row: int(row.id))
        for row, other in pairwise(rows):
            if row.id == other.id:
                problem = f"identifier {row.id} is of another split too ({other.places[0]}); get both again"
                raise EvaluationError(f"{where}, language {code}: {row.places[0]}: {problem}")
        return Rows(rows)


def check_alignment(texts: tuple[Rows, Rows], *, where: str) -> None:
    """Raise `EvaluationError`, opened by `where`, unless both texts have sentences of the same identifiers."""
    ids = [{int(row.id): row for row in rows} for rows in texts]
    if ids[0].keys() == ids[1].keys():
        return
    first = min(ids[0].keys() ^ ids[1].keys())
    file, _, line = ids[first in ids[1]][first].places[0].rpartition(":")
    sizes = f"there are {len(texts[0])} and {len(texts[1])} sentences"
    raise EvaluationError(f"{where}: {sizes}; the first without a partner is line {line} of {file}; get both again")


NTREX_MIDDLE = 971  # the first line of document 62 of 123: no document is in both halves
N_WAY: Mapping[str, NWay] = {
    one.name: one
    for one in (
        NWay("flores-devtest", "flores-200", ("devtest",)),
        NWay("flores-dev", "flores-200", ("dev",)),
        NWay("ntrex", "ntrex-128"),
        NWay("ntrex-dev", "ntrex-128", lines=(1, NTREX_MIDDLE)),
        NWay("ntrex-test", "ntrex-128", lines=(NTREX_MIDDLE, 1998)),
        NWay("sib", "sib-200", ("train", "dev", "test")),
        NWay("tico", "tico-19"),
        NWay("own", "own/aligned"),
        NWay("multi30k", "multi30k"),
    )
}

K = 4
ORDER: tuple[Margin, ...] = ("ratio", "distance", "absolute")  # LASER's default first

# Cosines and places (N, k) of the nearest of each sentence, and cosines (M, k) of those of the side searched.
Near = tuple[Floats, Ids, Floats]


class _Side(NamedTuple):
    """One text: its sentences, their vectors (N, D), and the first place of an equal text (N,)."""

    rows: Rows
    vectors: Floats
    firsts: Ids


@dataclass(frozen=True, slots=True)
class XSim(BaseTask):
    """The task `xsim/<set>`: errors of all pairs of the set's languages, judged by text and by index.

    `margins` are names in `MARGINS`; each has its own metrics, `error/ratio` and `error-by-index/ratio`. Only `k` of
    4 has the plain name: with another the task is called `xsim/<set>/k5` and so on.
    """

    texts: NWay
    k: int = K
    margins: tuple[Margin, ...] = ORDER

    @property
    def name(self) -> str:
        """`xsim/` and the name of the set."""
        return f"xsim/{self.texts.name}" + (f"/k{self.k}" if self.k != K else "")

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The errors under each of the margins."""
        return tuple(metric for margin in self.margins for metric in _metrics(margin))

    @property
    def reads(self) -> tuple[str, ...]:
        """The set."""
        return (self.texts.source,)

    def find(self, data: Path, languages: Sequence[str] = ()) -> TextSources:
        """The texts of the wanted languages and English."""
        return self.texts.find(data, task=self.name, languages=languages)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Both directions of each pair, `deu-eng` being from German to English."""
        return tuple("-".join(pair) for pair in permutations(self.find(data, languages), 2))

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """The target languages."""
        return [f"xx-{code}" for code in subsets]

    def score(self, encode: Encode, subsets: TextSources) -> Iterator[Score]:
        """Errors of each direction, then of each target language over all sources (`xx-eng`).

        Directions from and to English, or else the first language, have their worst mistakes by the first margin.
        """
        pivot = next((code for code in subsets if code in _ENGLISH), next(iter(subsets), ""))
        scores: dict[tuple[str, str], list[Score]] = {}

        sides: dict[tuple[str, str], _Side] = {}

        def side(code: str, partner: str) -> _Side:
            key = code, partner if partner in subsets[code] else ""  # most languages have one text for all
            if key not in sides:
                rows = self.texts.read(subsets, code, partner=partner, where=self.name)
                vectors = embed_rows(encode, rows, where=f"{self.name}, language {code}")
                sides[key] = _Side(rows, vectors, first_places(rows.texts()))
            return sides[key]

        for a, b in combinations(subsets, 2):
            x, y = side(a, b), side(b, a)
            check_alignment((x.rows, y.rows), where=f"{self.name} {a}-{b}")
            near, shown = neighbours(x.vectors, y.vectors, self.k, metric="cosine"), self.margins[: pivot in (a, b)]
            forward = near.forward_scores, near.forward_ids, near.backward_scores
            backward = near.backward_scores, near.backward_ids, near.forward_scores
            scores[a, b] = list(self._errors(f"{a}-{b}", (x, y), forward, shown=shown))
            scores[b, a] = list(self._errors(f"{b}-{a}", (y, x), backward, shown=shown))
        yield from (score for pair in permutations(subsets, 2) for score in scores[pair])
        for target in subsets:
            into = [score for source in subsets if source != target for score in scores[source, target]]
            yield from averages(into, f"xx-{target}")

    def _errors(self, subset: str, sides: tuple[_Side, _Side], near: Near, *, shown: Sequence[str]) -> Iterator[Score]:
        """Of each margin the errors by text, then those by index; the second side is the one searched.

        Of the margins `shown`, errors by text have their worst mistakes.
        """
        ids, firsts, item_set = near[1], sides[1].firsts, item_set_of(row.id for row in sides[0].rows)
        for margin in self.margins:
            values = margins(*near, margin=margin)
            # Equal texts have equal vectors, but a product may round them apart: the first place of a text counts.
            answers = firsts[ids[np.arange(len(ids)), values.argmax(axis=1)]]
            by_text = np.not_equal(answers, firsts).astype(np.float32)
            by_index = np.not_equal(answers, np.arange(len(answers))).astype(np.float32)
            if np.array_equal(by_text, by_index):
                by_index = by_text  # most sets have no duplicates, so this halves the memory of thousands of pairs
            details = _margin_mistakes(sides, near, answers, values.max(axis=1), margin) if margin in shown else ()
            for metric, items, more in zip(_metrics(margin), (by_text, by_index), (details, ()), strict=True):
                yield metric.mean_of(self.name, subset, items, item_set=item_set, details=more)


def _metrics(margin: Margin) -> tuple[Metric, Metric]:
    """The errors by text and by index under a margin."""
    by_text = Metric(f"error/{margin}", "error", lower_is_better=True, main=margin == "ratio")
    return by_text, replace(by_text, name=f"error-by-index/{margin}", main=False)


def _margin_mistakes(sides: tuple[_Side, _Side], near: Near, answers: Ids, values: Doubles, margin: Margin) -> Details:
    """Sentences that found (N,) another text than their translation's; `values` (N,) are the margins of that."""
    wrong = np.flatnonzero(answers != sides[1].firsts)
    x, y = (unit(side.vectors[wrong]) for side in sides)
    source_means, target_means = (cosines[wrong].mean(axis=1, dtype=np.float64) for cosines in (near[0], near[2]))
    expected = MARGINS[margin](np.einsum("nd,nd->n", x, y), (source_means + target_means) / 2)
    texts = sides[0].rows.texts(), sides[1].rows.texts()
    names = f"{margin} expected", f"{margin} found", "difference"
    return mistakes(texts, (wrong, wrong, answers[wrong]), (expected, values[wrong]), names)


XSIM: dict[str, XSim] = {task.name: task for task in (XSim(one) for one in N_WAY.values() if one.name != "multi30k")}
