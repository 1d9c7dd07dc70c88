"""Geometry of the vectors: alignment and uniformity, similarity of translations, centroids, and a map.

**Alignment and uniformity** (`alignment`): how near pairs with the same meaning are, and how evenly sentences cover the
sphere (Wang and Isola 2020, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
Hypersphere"), as EASE reports them (figure 3): positive pairs are those of a similarity set with a gold score of at
least 4. Both values are taken over the whole set. A mean of batches, as some code gives, depends on the batch size: the
logarithm is outside the mean. Both are made of distances: lower is better, and they are not shares.

**Similarity** (`similarity`): how similar translations are, in each pair of languages and in all together: the matrices
of MPCL (figure 1), as numbers. A method trained on pairs alone may align each language with English and not with the
others: the least cosine within a group of three or more languages shows it, and so does the deviation of its cosines.

**Centroids** (`centroids`): the distance between languages relative to the spread of their sentences. With the same
meanings in both languages, the distance between their centres is due to the language alone. Libovický et al. 2020 ("On
the Language Neutrality of Pre-trained Multilingual Representations") showed that multilingual encoders place languages
apart in this way. 0 is best.

**A map** (`map`): whether meaning or language determines the position of a vector, as two numbers and as figures, those
of MoCo-BERT (figure 3: a few groups of translations) and mSimCSE (figure 1: many sentences, coloured by language, three
groups marked), by t-SNE (van der Maaten and Hinton 2008). A plane made by t-SNE keeps neighbours and not distances, so
the numbers are taken from the vectors and never from the plane.

The last three read groups of translations: the user's, as `retrieval` reads them, or those of a public N-way set. Only
the first `GROUPS` are used, so that many languages stay quick.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import BaseTask, Detail, Encode, Metric, Score, item_set_of
from isoglot.evaluation.plot import plane
from isoglot.evaluation.sets import SetTask, Source, among, is_english
from isoglot.evaluation.statistics import Doubles
from isoglot.evaluation.tasks import retrieval, sts
from isoglot.evaluation.tasks.xsim import N_WAY, TextSources, check_alignment
from isoglot.evaluation.vectors import embed, unit

POSITIVE = 4.0  # minimum gold score of a pair with the same meaning
POOLED = "pooled-10"
GROUPS = 200
SOURCES = ("ntrex", "flores-devtest", "sib", "tico", "multi30k")
FEW = 15  # groups in the map of translations
POINTS = 400  # sentences in the map of languages, over all of them
MARKED = 3  # groups marked there

_BLOCK = 2048  # sentences on each side of a block of distances: 32 MiB
_ROUNDING = 1e-6  # unit vectors that differ by less are the same
_SQUARES = 1e-9  # a sum of squares below is that of equal vectors

# Each of the two alone is easy to optimise.
ALIGNED = tuple(Metric(name, "plain", lower_is_better=True, main=True) for name in ("alignment", "uniformity"))
TRANSLATIONS = Metric("cosine/translations", "cosine")
CONTRAST = Metric("cosine/contrast", "cosine", main=True)  # encoders differ in where their cosines lie
LEAST = Metric("cosine/min", "cosine")
SPREAD = Metric("cosine/std", "cosine", lower_is_better=True)
DISTANCE = Metric("distance", "plain", lower_is_better=True, main=True)
VARIANCE = Metric("variance/meaning", main=True), Metric("variance/language", lower_is_better=True)

Tables = Mapping[str, Doubles]


@dataclass(frozen=True, slots=True)
class Alignment(SetTask):
    """Both values of each subset of a similarity set.

    `pools` are further subsets, each the union of the subsets it names, present if all of them were evaluated. `lists`
    are averages, likewise; the `mean` of several subsets is over all evaluated ones, without the pools.
    """

    merges: ClassVar[bool] = True
    metrics: ClassVar[tuple[Metric, ...]] = ALIGNED
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, ...]]:
        """The subsets whose files are there, then the pools."""
        parts = SetTask.find(self, data, languages)
        unions = {subset: (subset,) for subset in parts} | dict(self.pools)
        return {
            name: tuple(parts[subset] for subset in over) for name, over in unions.items() if parts.keys() >= {*over}
        }

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """Without the pools; no mean of one subset."""
        single = [subset for subset in subsets if subset not in self.pools]
        return single if len(single) > 1 else ()

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """`alignment` and `uniformity` of each subset and pool."""
        for subset, parts in subsets.items():
            where = f"{self.name} {subset}"
            pairs = Rows(row for part in parts for row in part.read(f"{self.name} {part.part.subset}"))
            distinct = np.unique(retrieval.first_places([*pairs.texts(0), *pairs.texts(1)]))
            positive = np.array(pairs.labels) >= POSITIVE
            if len(distinct) < 2:
                raise EvaluationError(f"{where}: all sentences are identical; use another set")
            if not positive.any():
                problem = f"none of its {len(pairs)} labelled pairs has a score of {POSITIVE:g} or more; add some"
                raise EvaluationError(f"{where}: {problem}")
            tables = sts.embed_sides(encode, pairs, where=where, languages=sts.sides(subset))
            squares = alignment(*(table[positive] for table in tables)).astype(np.float32)
            yield ALIGNED[0].mean_of(self.name, subset, squares, item_set=item_set_of(pairs.labels))
            yield ALIGNED[1].score(self.name, subset, uniformity(np.concatenate(tables)[distinct]), len(distinct))


def alignment(first: NDArray[Any], second: NDArray[Any]) -> Doubles:
    """Squared distances (N,) of unit vectors of N pairs (N, D): 0 to 4. Their mean is the alignment."""
    differences = unit(first) - unit(second)
    return np.asarray(np.einsum("nd,nd->n", differences, differences))


def uniformity(rows: NDArray[Any], *, block: int = _BLOCK) -> float:
    """The logarithm of the mean of exp(-2 d²) over all N (N - 1) / 2 pairs of N > 1 vectors, made unit vectors.

    -8 to 0; 0 when all are the same. `block` bounds the memory and changes nothing but the last digits.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    units, total = unit(rows), 0.0
    for start in range(0, len(units), block):
        for other in range(start, len(units), block):
            squares = euclidean_distances(units[start : start + block], units[other : other + block], squared=True)
            kernel = np.exp(-2 * squares)
            total += float(np.triu(kernel, 1).sum() if other == start else kernel.sum())
    return float(np.log(total / (len(units) * (len(units) - 1) / 2)))


ALIGNMENT: tuple[Alignment, ...] = (
    Alignment("alignment", ("senteval-en",), split="sts-b-dev"),
    Alignment("alignment/sts17", sts.STS17_SETS, {"extended-10": sts.EXTENDED_10}, pools={POOLED: sts.EXTENDED_10}),
)


# Groups of translations


@dataclass(frozen=True, slots=True)
class Translations:
    """One meaning: its sentence in each language, by code, with the place (`file:line`) of each.

    Codes are those of the files, in the order of the alphabet, English last. `name` does not depend on the requested
    languages: a line or id of a public set, for user data a digest of all sentences.
    """

    name: str
    sentences: Mapping[str, tuple[str, str]]


def read_groups(
    data: Path, *, task: str, source: str = "", languages: Sequence[str] = (), paraphrases: bool = False
) -> tuple[Translations, ...]:
    """The first `GROUPS` groups that have sentences in two of the `languages`; English need not be named.

    `source` is one of `SOURCES`. Without it they are of what has the most of the languages, and of equals the first:
    the user's groups come before the sets, which keep their order. None when nothing is there. Of a language that a
    group has twice, the first sentence counts; with `paraphrases` the others do too, as `eng:2`, `eng:3`. Raises
    `EvaluationError` naming task, language and line.
    """
    user_groups = () if source else tuple(islice(_narrow(_read_files(data, task, paraphrases), languages), GROUPS))
    most = _count(codes(user_groups), languages) if user_groups else -1
    best: tuple[str, TextSources] | None = None
    for name in ([source] if source else SOURCES) if data.is_dir() else ():
        if most == len(languages):
            break
        texts = N_WAY[name].find(data, task=f"{task}, set {name}", languages=languages)  # judged by file names
        if len(texts) > 1 and (count := _count(texts, languages)) > most:
            best, most = (name, texts), count
    if best is None:
        return user_groups
    return tuple(islice(_narrow(_read_n_way(*best, task), languages), GROUPS))


def codes(groups: Sequence[Translations]) -> tuple[str, ...]:
    """All languages of the groups, English last."""
    return tuple(sorted({code for group in groups for code in group.sentences}, key=_order))


def find_complete(groups: Sequence[Translations], languages: Sequence[str]) -> list[int]:
    """The places of the groups that have all of the languages."""
    return [place for place, group in enumerate(groups) if set(languages) <= group.sentences.keys()]


def pairs(groups: Sequence[Translations]) -> list[tuple[str, str]]:
    """Each two languages that at least two groups have."""
    return [pair for pair in combinations(codes(groups), 2) if len(find_complete(groups, pair)) >= 2]


def find_common(groups: Sequence[Translations], *, minimum: int) -> tuple[str, ...]:
    """All languages if they are `minimum` or more and two groups have every one of them; otherwise none."""
    languages = codes(groups)
    return languages if len(languages) >= minimum and len(find_complete(groups, languages)) >= 2 else ()


def vectors(encode: Encode, groups: Sequence[Translations], *, task: str) -> dict[str, Doubles]:
    """Unit vectors (G, D) of the G groups for each language, zero where a group lacks it. Raises `EvaluationError`."""
    tables: dict[str, Doubles] = {}
    for code in codes(groups):
        places = find_complete(groups, [code])
        texts, read_at = zip(*(groups[place].sentences[code] for place in places), strict=True)
        rows = embed(encode, texts, where=f"{task} {code}", place=read_at.__getitem__)
        tables[code] = np.zeros((len(groups), rows.shape[1]))
        tables[code][places] = unit(rows)
    return tables


def square(
    languages: Sequence[str], values: Mapping[tuple[str, ...], float], *, same: float, names: Sequence[str]
) -> Detail:
    """A table of all languages against all, its rows called by the `names`.

    A pair without a value is an empty cell, `same` stands in the diagonal.
    """

    def cell(a: str, b: str) -> str | float:
        return same if a == b else values.get((a, b), values.get((b, a), ""))

    rows = tuple((name, *(cell(a, b) for b in languages)) for name, a in zip(names, languages, strict=True))
    return Detail("similarity", ("language", *languages), rows)


def _count(present: Iterable[str], languages: Sequence[str]) -> int:
    """The number of the languages among the codes found."""
    return sum(any(among(language_of(code), [language]) for code in present) for language in languages)


def _order(code: str) -> tuple[bool, str]:
    return is_english(language_of(code)), code


def language_of(code: str) -> str:
    """Without the number of a paraphrase."""
    return code.partition(":")[0]


def _narrow(groups: Iterator[Translations], languages: Sequence[str]) -> Iterator[Translations]:
    for group in groups:
        codes = ((code, language_of(code)) for code in sorted(group.sentences, key=_order))
        wanted = [code for code, language in codes if is_english(language) or among(language, languages)]
        if len(wanted) >= 2:
            yield Translations(group.name, {code: group.sentences[code] for code in wanted})


def _read_files(data: Path, task: str, paraphrases: bool) -> Iterator[Translations]:
    for place, group in retrieval.read_groups(data, task=task):
        counts, sentences = Counter[str](), {}
        for code, text in zip(group.langs, group.texts, strict=True):
            counts[code] += 1
            if counts[code] == 1 or paraphrases:
                sentences[code if counts[code] == 1 else f"{code}:{counts[code]}"] = text, place
        yield Translations(item_set_of(group.texts), sentences)


def _read_n_way(source: str, texts_of: TextSources, task: str) -> Iterator[Translations]:
    where = f"{task}, set {source}"
    # TICO-19 has one English text per partner, which differ in a few words: the first one is used.
    tables = {code: N_WAY[source].read(texts_of, code, partner=min(texts_of[code]), where=where) for code in texts_of}
    first, *others = [*tables] or [""]
    for code in others:
        check_alignment((tables[first], tables[code]), where=f"{where}, languages {first} and {code}")
    for rows in zip(*tables.values(), strict=True):
        sentences = {code: (row.texts[0], row.places[0]) for code, row in zip(tables, rows, strict=True)}
        yield Translations(f"{source} {rows[0].id}", sentences)


class Subset(NamedTuple):
    """All groups, the languages of a subset, and the places of the groups that have every one of these."""

    groups: Sequence[Translations]
    languages: tuple[str, ...]
    places: list[int]

    def sides(self, tables: Tables) -> list[Doubles]:
        """The vectors of each language in these groups."""
        return [tables[code][self.places] for code in self.languages]


@dataclass(frozen=True, slots=True)
class OfGroups(BaseTask):
    """Base of the tasks on groups of translations; a subset is a pair of languages, or all languages.

    `source` names the set that is read, one of `SOURCES`; without it that with the most of the languages.
    """

    source: str = ""
    reads: ClassVar[tuple[str, ...]] = tuple(N_WAY[name].source for name in SOURCES)
    needs: ClassVar[str] = (
        "groups of translations: retrieval.jsonl, .tsv, .tmx and so on, or NTREX-128, FLORES-200, SIB-200, TICO-19 or "
        "Multi30k as published"
    )
    name: ClassVar[str]
    reads_one_set: ClassVar[bool] = True  # that with the most of the languages
    paraphrases: ClassVar[bool] = False  # whether all sentences of a language in a group count
    together: ClassVar[bool] = True  # whether three or more languages together are a subset
    table: ClassVar[tuple[Metric, float] | None] = None  # of which metric the mean has one, and its diagonal

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, Subset]:
        """Pairs of languages, and all languages joined."""
        groups = read_groups(
            data, task=self.name, source=self.source, languages=languages, paraphrases=self.paraphrases
        )
        every = find_common(groups, minimum=3) if self.together else ()
        combinations_of_codes = [*pairs(groups), *([every] if every else [])]
        return {"-".join(codes): Subset(groups, codes, find_complete(groups, codes)) for codes in combinations_of_codes}

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """The pairs of languages."""
        return [subset for subset in subsets if subset.count("-") == 1]

    def score(self, encode: Encode, subsets: dict[str, Subset]) -> Iterator[Score]:
        """The scores of each subset, see `compare`; all subsets share their groups."""
        tables = vectors(encode, next(iter(subsets.values())).groups, task=self.name)
        for name, subset in subsets.items():
            yield from self.compare(name, subset, tables)

    def compare(self, name: str, subset: Subset, tables: Tables) -> Iterator[Score]:
        """The scores of a subset."""
        raise NotImplementedError

    def add_details(self, scores: list[Score], subsets: dict[str, Subset]) -> list[Score]:
        """The mean of the metric of `table` has a table of its values in all languages against all."""
        if self.table is None:
            return scores
        metric, same = self.table
        by_subset = {score.subset: score for score in scores if score.metric == metric.name}
        values = {subsets[name].languages: score.value for name, score in by_subset.items() if name in subsets}
        languages = codes(next(iter(subsets.values())).groups)
        table = square(languages, values, same=same, names=languages)
        return [replace(score, details=(table,)) if score is by_subset.get("mean") else score for score in scores]


@dataclass(frozen=True, slots=True)
class Similarity(OfGroups):
    """The task `similarity`: cosines of translations for each pair of languages, then for all languages together.

    Paraphrases of one language in a group are compared like translations, `eng-eng:2` (MPCL, figure 1c).
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TRANSLATIONS, CONTRAST, LEAST, SPREAD)
    name: ClassVar[str] = "similarity"
    paraphrases: ClassVar[bool] = True
    # A sentence is its own translation, so it is not compared with the other sentences of its language.
    table: ClassVar[tuple[Metric, float] | None] = (TRANSLATIONS, 1.0)

    def compare(self, name: str, subset: Subset, tables: Tables) -> Iterator[Score]:
        """`cosine/translations` and `cosine/contrast` of pairs, `cosine/min` and `cosine/std` of all languages."""
        groups, languages, places = subset
        same = [np.einsum("nd,nd->n", a, b) for a, b in combinations(subset.sides(tables), 2)]
        if len(languages) > 2:
            first = (float(cosines[0]) for cosines in same)
            values: dict[tuple[str, ...], float] = dict(zip(combinations(languages, 2), first, strict=True))
            names = [f"{code}: {groups[places[0]].sentences[code][0]}" for code in languages]
            example = square(languages, values, same=1.0, names=names)  # the matrix of one group
            yield LEAST.mean_of(self.name, name, np.min(same, axis=0), details=(example,))
            yield SPREAD.mean_of(self.name, name, np.std(same, axis=0))
            return
        a, b = subset.sides(tables)
        item_set = item_set_of(groups[place].name for place in places)
        # The cosines of a sentence with all of the other language add up to its product with their sum.
        sums = a @ b.sum(axis=0) + b @ a.sum(axis=0) - 2 * same[0]
        for metric, items in ((TRANSLATIONS, same[0]), (CONTRAST, same[0] - sums / (2 * (len(a) - 1)))):
            yield metric.mean_of(self.name, name, items, item_set=item_set)


@dataclass(frozen=True, slots=True)
class Centroids(OfGroups):
    """The task `centroids`: for each pair of languages the distance of their centroids in units of their spread."""

    metrics: ClassVar[tuple[Metric, ...]] = (DISTANCE,)
    name: ClassVar[str] = "centroids"
    together: ClassVar[bool] = False
    table: ClassVar[tuple[Metric, float] | None] = (DISTANCE, 0.0)

    def compare(self, name: str, subset: Subset, tables: Tables) -> Iterator[Score]:
        """`distance` of each pair; an encoder that gives all sentences of a language the same vector is an error."""
        a, b = subset.sides(tables)
        # Between the centres of unit vectors (N, D), over the mean of both root mean square distances from them.
        apart = float(np.linalg.norm(a.mean(axis=0) - b.mean(axis=0)))
        spread = sum(float(np.sqrt(np.square(side - side.mean(axis=0)).sum(axis=1).mean())) for side in (a, b)) / 2
        if spread <= _ROUNDING < apart:
            problem = f"all {len(a)} sentences of a language have the same vector; check the encoder and its tokenizer"
            raise EvaluationError(f"{self.name} {name}: {problem}")
        yield DISTANCE.score(self.name, name, apart / spread if apart > _ROUNDING else 0.0, len(subset.places))


@dataclass(frozen=True, slots=True)
class SentenceMap(OfGroups):
    """The task `map`: pairs of languages, then all languages over the groups that have every one of them."""

    metrics: ClassVar[tuple[Metric, ...]] = VARIANCE
    name: ClassVar[str] = "map"

    def compare(self, name: str, subset: Subset, tables: Tables) -> Iterator[Score]:
        """`variance/meaning` and `variance/language` of each; those of all languages have the two pictures."""
        groups, languages, places = subset
        cube = np.stack(subset.sides(tables), axis=1)  # (groups, languages, D)
        maps = [(FEW, FEW), (max(MARKED, POINTS // len(languages)), MARKED)]
        pictured = languages == find_common(groups, minimum=2)
        for metric, axes, (count, marked) in zip(VARIANCE, ((0, 1, 2), (1, 0, 2)), maps, strict=True):
            details = (_map(groups, tables, places[:count], marked=marked),) if pictured else ()
            value, n = eta_squared(cube.transpose(axes)), len(places) * len(languages)
            yield metric.score(self.name, name, value, n, details=details)


def eta_squared(cube: Doubles) -> float:
    """Eta squared: the share of the variance of vectors (A, B, D) that lies between the means of A; 0 without any."""
    centre = cube.mean(axis=(0, 1))
    total = float(np.square(cube - centre).sum())
    between = float(np.square(cube.mean(axis=1) - centre).sum()) * cube.shape[1]
    return min(1.0, between / total) if total > _SQUARES else 0.0


def _map(groups: Sequence[Translations], tables: Tables, places: Sequence[int], *, marked: int) -> Detail:
    """The sentences of the groups at `places` as points; a group is named by its number if it is of the marked."""
    points = [(number, groups[place], code) for number, place in enumerate(places) for code in groups[place].sentences]
    positions = plane(np.array([tables[code][places[number]] for number, _, code in points])).round(3)
    rows = tuple(
        (str(number + 1) if number < marked else "", code, float(x), float(y), group.sentences[code][0])
        for (number, group, code), (x, y) in zip(points, positions, strict=True)
    )
    return Detail("map", ("group", "language", "x", "y", "text"), rows)
