"""Finds each sentence's translation among all sentences of the other language: Tatoeba, xSIM and the user's groups.

**Retrieval by cosine** (`tatoeba`, `retrieval`): one nearest neighbour, no margin, judged by line number. Tatoeba is
the test of LASER (Artetxe and Schwenk 2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual
Transfer and Beyond") in the protocol of XTREME. Published numbers differ in direction, so all three are always given:
foreign to English (`accuracy/xx-en`, as MTEB does), English to foreign (`accuracy/en-xx`, as XTREME's script does) and
their mean (as EASE and mSimCSE do). Each language is divided by its own number of pairs, below 1000 for 40 of them.

**xSIM** (`xsim/<set>`): the share of sentences whose translation is not the one that a margin chooses (Heffernan,
Çelebi and Schwenk 2022, "Bitext Mining Using Distilled Sentence Representations for Low-Resource Languages"), with the
margins of Artetxe and Schwenk 2019 over the k = 4 nearest by cosine. It is an *error*, so lower is better, and has one
direction: the subset `deu-eng` searches English for each German sentence. One search serves both directions of a pair
and all three margins, and each text is encoded once.

**Nearest sentences** (`nearest`): the results of an encoder for queries in a large corpus, for people to read, as in
Wang, Zhao and Liu 2021 ("Aligning Cross-lingual Sentence Representations with Dual Momentum Contrast"): plain cosine,
the three nearest, without the query itself. Without gold, the score is only the cosine of the nearest sentence.

The worst mistakes of a direction are the detail of its score.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, groupby, pairwise, permutations, product
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import CorpusError, EvaluationError
from isoglot.data.files import locate
from isoglot.data.formats import DOCUMENTS, FORMATS, TABLES
from isoglot.data.groups import Group
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import BaseTask, Detail, Encode, Metric, Score, averages, item_set_of, worst
from isoglot.evaluation.sets import SetTask, Source, among, sources, words
from isoglot.evaluation.vectors import embed, embed_rows, unit
from isoglot.search.best import Floats, Ids
from isoglot.search.exact import neighbours
from isoglot.search.pairs import MARGINS, Doubles, margins

XTREME_14 = words("ara bul cmn deu ell fra hin rus spa swh tha tur urd vie")
XTREME_36 = words(
    "afr ara ben bul cmn deu ell est eus fin fra heb hin hun ind ita jav jpn kat kaz kor mal mar nld pes por rus spa "
    "swh tam tel tgl tha tur urd vie"
)
LASER_112 = words(
    "afr amh ang ara arq arz ast awa aze bel ben ber bos bre bul cat cbk ceb ces cha cmn cor csb cym dan deu dsb dtp "
    "ell epo est eus fao fin fra fry gla gle glg gsw heb hin hrv hsb hun hye ido ile ina ind isl ita jav jpn kab kat "
    "kaz khm kor kur kzj lat lfn lit lvs mal mar max mhr mkd mon nds nld nno nob nov oci orv pam pes pms pol por ron "
    "rus slk slv spa sqi srp swe swg swh tam tat tel tgl tha tuk tur tzl uig ukr urd uzb vie war wuu xho yid yue "
    "zsm"
)
AVERAGES = {"xtreme-14": XTREME_14, "xtreme-36": XTREME_36, "laser-112": LASER_112}


class Aligned(NamedTuple):
    """Aligned sentences of a pair of languages: its two sides, where each sentence was read (nothing of those in
    memory), and a key for each row.
    """

    pair: tuple[str, str]
    sides: tuple[list[str], list[str]]
    places: tuple[list[str], list[str]]
    keys: list[str]


_SUFFIXES = ("jsonl", *(name for name in FORMATS if name not in ("jsonl", *DOCUMENTS)))


class Measure(NamedTuple):
    """A metric of aligned sentences, in both directions and their mean, or in the `first` direction only.

    `outcome` gives an item (N,) for each sentence from the rows (N, `depth`) of the nearest sentences of the other
    side, best first; that of its partner is its own. The mean of a `main` one is the main number of the task.
    """

    name: str
    outcome: Callable[[Ids], NDArray[Any]]
    depth: int = 1
    first: bool = False
    main: bool = False

    def metrics(self, first: str, second: str) -> tuple[Metric, ...]:
        """The metrics of two sides: from the first, from the second, and their mean."""
        forward, backward = (Metric(f"{self.name}/{a}-{b}") for a, b in ((first, second), (second, first)))
        return (forward,) if self.first else (forward, backward, Metric(f"{self.name}/mean", main=self.main))


def _f1(nearest: Ids) -> NDArray[np.float32]:
    """The F1 of each sentence as a class: one that is found too often loses precision."""
    times = np.bincount(nearest[:, 0], minlength=len(nearest))  # that each sentence was found
    hits = np.equal(nearest[:, 0], np.arange(len(nearest))).astype(np.float32)
    return hits * np.divide(2, times + 1, dtype=np.float32)


# A new row is a metric of both tasks; the last one is the main score of MTEB, of `tatoeba` only.
MEASURES = (Measure("accuracy", lambda nearest: nearest[:, 0] == np.arange(len(nearest)), main=True),)
MTEB_MEASURES = (*MEASURES, Measure("f1", _f1, first=True))


def score_pair(
    encode: Encode, rows: Aligned, measures: Sequence[Measure], *, task: str, names: tuple[str, str], item_set: str = ""
) -> Iterator[Score]:
    """The scores of N aligned pairs.

    A sentence is correct if the sentence of greatest cosine on the other side is its partner, compared by row and not
    by text: if a text occurs twice on the other side, the first one is found. `names` are the two sides in the metrics
    (`accuracy/xx-en`). The first measure of a direction has its worst mistakes as a detail. Raises `EvaluationError`,
    see `embed`.
    """
    subset, sides = "-".join(rows.pair), rows.sides
    tables = [
        embed(
            encode, side, where=f"{task} {subset}, language {language}", unit="pair",
            place=places.__getitem__ if places else None,
        )
        for language, side, places in zip(*rows[:3], strict=True)
    ]  # fmt: skip
    near = neighbours(tables[0], tables[1], max(measure.depth for measure in measures), metric="cosine")
    nearest = [
        first_places(side)[ids] for side, ids in zip(sides[::-1], (near.forward_ids, near.backward_ids), strict=True)
    ]
    details = []
    for way, answers in zip((1, -1), nearest, strict=True):
        wrong = np.flatnonzero(answers[:, 0] != np.arange(len(answers)))
        details.append(cosine_mistakes(sides[::way], tables[::way], wrong, wrong, answers[wrong, 0]))
    for measure in measures:
        items = [measure.outcome(answers).astype(np.float32) for answers in nearest]
        items.append(np.divide(items[0] + items[1], 2, dtype=np.float32))
        for metric, outcomes, shown in zip(measure.metrics(*names), items, (*details, ()), strict=False):
            yield metric.mean_of(task, subset, outcomes, item_set=item_set, details=shown)
        details = [(), ()]


def first_places(texts: Sequence[str]) -> Ids:
    """The first index of each text, (N,).

    Equal texts have equal vectors, but a product may round them apart by their place in it; so ties between them are
    settled by text.
    """
    first: dict[str, int] = {}
    return np.array([first.setdefault(text, place) for place, text in enumerate(texts)], np.int64)


def warn_of_repeated(texts: Sequence[str], places: Sequence[str], *, where: str) -> bool:
    """Whether any of N sentences stands twice, which is logged, once, with the places of the first that does.

    Not an error, since translation memories have such rows; but no encoder can get all of them right: the first of
    equal sentences is the one found, and equal queries find the same sentence.
    """
    first = first_places(texts)
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        _warn(
            f"{where}: {places[again[0]]} repeats the sentence of {places[first[again[0]]]}; {len(again)} of "
            f"{len(first)} rows do so, and of equal ones at most one is right in either direction, with any encoder; "
            "remove them"
        )
    return bool(len(again))


# Each once: a training run evaluates on the same sentences again and again.
_warn = cache(logging.getLogger(__name__).warning)


@dataclass(frozen=True, slots=True)
class Tatoeba(SetTask):
    """The task `tatoeba`. Subsets are named by the codes of the files: `kor-eng`, `cmn-eng`."""

    metrics: ClassVar[tuple[Metric, ...]] = tuple(m for one in MTEB_MEASURES for m in one.metrics("xx", "en"))
    name: str = "tatoeba"
    reads: tuple[str, ...] = ("tatoeba-laser",)
    lists: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {name: tuple(f"{code}-eng" for code in codes) for name, codes in AVERAGES.items()}
    )

    def score(self, encode: Encode, subsets: dict[str, Source]) -> Iterator[Score]:
        """Three accuracies of each language, and the F1 of MTEB."""
        for subset, source in subsets.items():
            rows = source.read(f"{self.name} {subset}")
            places = tuple([*map(rows.place(side), range(len(rows)))] for side in (0, 1))
            pair = Aligned((subset[:-4], "eng"), (rows.texts(0), rows.texts(1)), places, [])  # type: ignore[arg-type]
            for language, side, lines in zip(*pair[:3], strict=True):
                warn_of_repeated(side, lines, where=f"{self.name} {subset}, language {language}")
            yield from score_pair(encode, pair, MTEB_MEASURES, task=self.name, names=("xx", "en"))


@dataclass(frozen=True, slots=True)
class Retrieval(BaseTask):
    """Retrieval within groups, for each pair of languages that occur together.

    Without `groups` they are read from the data: a file `.jsonl`, `.tsv` or `.tmx`, or a folder that contains one named
    `retrieval`, or a folder `retrieval` of line-aligned files. Of a language that a group has twice, the first
    sentence counts. Hard negatives are not searched. In the subset `kor-eng`, English is last, otherwise the order is
    the alphabet's.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(
        dict.fromkeys(m for second in ("en", "yy") for one in MEASURES for m in one.metrics("xx", second))
    )
    needs: ClassVar[str] = (
        "a file retrieval.jsonl, .tsv or .tmx (or .gz, .xz), or a folder retrieval/ with line-aligned files"
    )
    reads: ClassVar[tuple[str, ...]] = ()
    groups: tuple[Group, ...] | None = None
    name: str = "retrieval"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, Aligned]:
        """Pairs of languages that occur together in a group."""
        pairs: dict[tuple[str, str], Aligned] = {}
        in_memory = None if self.groups is None else (("", group) for group in self.groups)
        for place, group in in_memory or read_groups(data, task=self.name):
            firsts = dict(zip(reversed(group.langs), reversed(group.texts), strict=True))
            codes = sorted(firsts, key=lambda language: (language == "eng", language))
            key = item_set_of(group.texts)  # of the whole group, so that it is the same in every pair of languages
            for pair in combinations(codes, 2):
                if all(language == "eng" or among(language, languages) for language in pair):
                    aligned = pairs.setdefault(pair, Aligned(pair, ([], []), ([], []), []))
                    aligned.keys.append(key)
                    for side, places, language in zip(aligned.sides, aligned.places, pair, strict=True):
                        side.append(firsts[language])
                        places += [place] if place else []
        return {"-".join(pair): aligned for pair, aligned in sorted(pairs.items())}

    def score(self, encode: Encode, subsets: dict[str, Aligned]) -> Iterator[Score]:
        """The three accuracies of each pair of languages."""
        warned: set[str] = set()
        for subset, rows in subsets.items():
            for language, side, places in zip(*rows[:3], strict=True):
                where = f"{self.name} {subset}, language {language}"
                if places and language not in warned and warn_of_repeated(side, places, where=where):
                    warned.add(language)  # once, as a language has many pairs
            names = "xx", "en" if rows.pair[1] == "eng" else "yy"
            item_set = item_set_of(rows.keys)
            yield from score_pair(encode, rows, MEASURES, task=self.name, names=names, item_set=item_set)


def cosine_mistakes(
    texts: Sequence[Sequence[str]], tables: Sequence[Floats], wrong: Ids, expected: Ids, answers: Ids
) -> tuple[Detail, ...]:
    """The worst of W wrong answers by cosine, see `mistakes`; `tables` are the vectors of the texts of each side."""
    queries, right, chosen = (
        unit(table[rows]) for table, rows in zip((tables[0], *[tables[1]] * 2), (wrong, expected, answers), strict=True)
    )
    cosines = np.einsum("nd,nd->n", queries, right), np.einsum("nd,nd->n", queries, chosen)
    return mistakes(texts, (wrong, expected, answers), cosines, ("cosine expected", "cosine found", "margin"))


def mistakes(
    texts: Sequence[Sequence[str]], rows: tuple[Ids, Ids, Ids], scores: tuple[Doubles, Doubles], names: Sequence[str]
) -> tuple[Detail, ...]:
    """The worst of W wrong answers, by how much they score above the expected one; nothing without any.

    `rows` (W,) are those of the sentences, on the first side, and of what was expected and found, on the second;
    `scores` (W,) are those of the expected and of the found. `names` are the columns of the scores and of their
    difference.
    """
    # Rounded before they are sorted: differences that differ by rounding alone stay in the order of the data.
    right, chosen = (score.round(6) for score in scores)
    above = (chosen - right).round(6)

    def row(at: int) -> tuple[str | float, ...]:
        sentences = (side[places[at]] for side, places in zip((texts[0], texts[1], texts[1]), rows, strict=True))
        return *sentences, float(right[at]), float(chosen[at]), float(above[at])

    return worst(("sentence", "expected", "found", *names), above, row)


def read_groups(data: Path, *, task: str) -> Iterator[tuple[str, Group]]:
    """The user's groups in a file or folder; none if the folder has no file with one of the expected names.

    Each comes with its place, file and line or unit; lines without text give no group. Raises `EvaluationError` naming
    the task, file and line.
    """
    from isoglot.data.readers import read

    files = [data] if data.is_file() else [locate(data, f"retrieval.{suffix}") for suffix in _SUFFIXES]
    path = next(filter(None, files), data / "retrieval")
    if not path.exists():
        return
    suffixes = () if path.is_dir() else path.suffixes[-2:]
    kind = next((suffix for suffix in _SUFFIXES if f".{suffix}" in suffixes), "folder" if path.is_dir() else "")
    if not kind:
        raise EvaluationError(f"{task}: {path}: only .{', .'.join(_SUFFIXES)} are read; rename or convert the file")
    before = {"folder": f"{path}, line ", "tmx": f"{path}, unit "}.get(kind, f"{path}:")
    passed = Counter[str]()
    try:
        groups = read(kind, path, **({"counts": passed} if kind == "tmx" else {}))
        for number, group in enumerate(groups, 2 if kind in TABLES else 1):
            yield f"{before}{number + passed['empty']}", group
    except CorpusError as error:
        raise EvaluationError(f"{task}: {error}") from error


# N-way sets: line-aligned sentences in many languages

ENGLISH = {"en", "eng", "eng_Latn"}

# code -> the partner that a text is for ("" for all others) -> split -> source
Found = dict[str, dict[str, dict[str, Source]]]


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

    def find(self, data: Path, *, task: str, languages: Sequence[str] = ()) -> Found:
        """The texts of the wanted languages and of English, in the order of their codes; none of a missing set.

        Raises `EvaluationError`, beginning with the task, for files that are not a set, `CorpusError` for an unknown
        language.
        """
        texts: Found = {}
        for (split, subset), source in sources(task, (self.source,), data).items():
            code, _, partner = subset.partition(".")
            if split in self.splits and (code in ENGLISH or among(code, languages)):
                texts.setdefault(code, {}).setdefault(partner, {})[split] = source
        return dict(sorted(texts.items()))

    def read(self, languages: Found, code: str, *, partner: str, where: str) -> Rows:
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


def check_aligned(texts: tuple[Rows, Rows], *, where: str) -> None:
    """Raise `EvaluationError`, opened by `where`, unless both texts have sentences of the same identifiers."""
    ids = [{int(row.id): row for row in rows} for rows in texts]
    if ids[0].keys() == ids[1].keys():
        return
    first = min(ids[0].keys() ^ ids[1].keys())
    lone = ids[first in ids[1]][first].places[0]
    raise EvaluationError(
        f"{where}: there are {len(texts[0])} and {len(texts[1])} sentences; the first without a partner is line "
        f"{lone.rpartition(':')[2]} of {lone.rpartition(':')[0]}; get both again"
    )


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
ORDER = ("ratio", "distance", "absolute")  # LASER's default first

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
    def reads(self) -> tuple[str, ...]:
        """The set."""
        return (self.texts.source,)

    def find(self, data: Path, languages: Sequence[str] = ()) -> Found:
        """The texts of the wanted languages and English."""
        return self.texts.find(data, task=self.name, languages=languages)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Both directions of each pair, `deu-eng` being from German to English."""
        return tuple("-".join(pair) for pair in permutations(self.find(data, languages), 2))

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """The target languages."""
        return [f"xx-{code}" for code in subsets]

    def score(self, encode: Encode, subsets: Found) -> Iterator[Score]:
        """Errors of each direction, then of each target language over all sources (`xx-eng`).

        Directions from and to English, or else the first language, have their worst mistakes by the first margin.
        """
        pivot = next((code for code in subsets if code in ENGLISH), next(iter(subsets), ""))
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
            check_aligned((x.rows, y.rows), where=f"{self.name} {a}-{b}")
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


def _metrics(margin: str) -> tuple[Metric, Metric]:
    """The errors by text and by index under a margin."""
    by_text = Metric(f"error/{margin}", "error", lower_is_better=True, main=margin == "ratio")
    return by_text, replace(by_text, name=f"error-by-index/{margin}", main=False)


def _margin_mistakes(
    sides: tuple[_Side, _Side], near: Near, answers: Ids, values: Doubles, margin: str
) -> tuple[Detail, ...]:
    """Sentences that found (N,) another text than their translation's; `values` (N,) are the margins of that."""
    wrong = np.flatnonzero(answers != sides[1].firsts)
    x, y = (unit(side.vectors[wrong]) for side in sides)
    source_means, target_means = (cosines[wrong].mean(axis=1, dtype=np.float64) for cosines in (near[0], near[2]))
    expected = MARGINS[margin](np.einsum("nd,nd->n", x, y), (source_means + target_means) / 2)
    texts = sides[0].rows.texts(), sides[1].rows.texts()
    names = f"{margin} expected", f"{margin} found", "difference"
    return mistakes(texts, (wrong, wrong, answers[wrong]), (expected, values[wrong]), names)


XSIM: dict[str, XSim] = {task.name: task for task in (XSim(one) for one in N_WAY.values() if one.name != "multi30k")}


# Nearest sentences, for people to read

NEAREST = Metric("cosine/1", "cosine", main=True)


@dataclass(frozen=True, slots=True)
class CorpusSearch(BaseTask):
    """The task `nearest`: queries of each language in the corpus of each language.

    `top` hits of the first `shown` queries are in the details. The vectors of one corpus and of all queries are in
    memory at a time (a million sentences of 384 values are 1.5 GB), the search itself is in blocks.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (NEAREST,)
    top: int = 3
    shown: int = 50
    name: str = "nearest"
    reads: ClassVar[tuple[str, ...]] = ("own/search",)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[tuple[str, str], Source, Source]]:
        """Each language of the queries and of the corpus, `deu-eng`, corpus by corpus; `eng` where they are the same.

        English need not be requested, but is not enough alone.
        """
        files = sources(self.name, self.reads, data)
        corpora, queries = ([code for part, code in files if part == role] for role in ("corpus", "queries"))
        subsets = {}
        for corpus, query in product(corpora, queries):
            pair = query, corpus
            asked = [among(code, languages) for code in pair]
            if any(asked) and all(wanted or code in ENGLISH for wanted, code in zip(asked, pair, strict=True)):
                subsets["-".join(dict.fromkeys(pair))] = pair, files["queries", query], files["corpus", corpus]
        return subsets

    def score(self, encode: Encode, subsets: dict[str, tuple[tuple[str, str], Source, Source]]) -> Iterator[Score]:
        """The mean cosine of the nearest, `cosine/1`, of each pair of languages, with the hits."""
        for code, pairs in groupby(subsets.items(), lambda item: item[1][0][1]):
            of_corpus, where = list(pairs), f"{self.name}, corpus, language {code}"
            rows = of_corpus[0][1][2].read(where)
            vectors, distinct = embed_rows(encode, rows, where=where), np.unique(first_places(rows.texts()))
            texts, vectors = [rows[at].texts[0] for at in distinct], vectors[distinct]
            for subset, ((query, _), queries, _) in of_corpus:
                where = f"{self.name} {subset}, queries, language {query}"
                yield self._search(encode, subset, queries.read(where), texts, vectors, where=where)

    def _search(
        self, encode: Encode, subset: str, asked: Rows, texts: list[str], vectors: Floats, *, where: str
    ) -> Score:
        """The score of queries in a corpus of distinct sentences."""
        near = neighbours(embed_rows(encode, asked, where=where), vectors, self.top + 1, metric="cosine")
        # Without the query itself. Rounded to what float32 holds, so that a sentence with the vector of another has the
        # cosine 1, not a bit more.
        hits = [
            [(texts[at], round(float(cosine), 6)) for at, cosine in zip(*columns, strict=True) if texts[at] != text]
            for text, *columns in zip(asked.texts(), near.forward_ids, near.forward_scores, strict=True)
        ]
        if not all(hits):
            place = asked.place()([bool(row) for row in hits].index(False))
            raise EvaluationError(f"{where}: {place}: the corpus contains only this sentence; enlarge it")
        table = tuple(
            (row.texts[0], rank, text, cosine)
            for row, best in zip(asked[: self.shown], hits, strict=False)
            for rank, (text, cosine) in enumerate(best[: self.top], 1)
        )
        items = np.array([row[0][1] for row in hits], np.float32)
        detail = Detail("hits", ("query", "rank", "found", "cosine"), table)
        return NEAREST.mean_of(self.name, subset, items, details=(detail,))
