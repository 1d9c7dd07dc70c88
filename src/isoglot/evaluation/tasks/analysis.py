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
from itertools import chain, combinations, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.data.languages import canonical, is_language
from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, item_set_of
from isoglot.evaluation.sets import among, needs
from isoglot.evaluation.tasks import retrieval, sts
from isoglot.evaluation.tasks.retrieval import N_WAY, check_aligned
from isoglot.evaluation.vectors import embed, unit

POSITIVE = 4.0  # minimum gold score of a pair with the same meaning
POOLED = "pooled-10"
GROUPS = 200
SOURCES = ("ntrex", "flores-devtest", "sib", "tico", "multi30k")
FEW = 15  # groups in the map of translations
POINTS = 400  # sentences in the map of languages, over all of them
MARKED = 3  # groups marked there

NEEDS = (
    "groups of translations: retrieval.jsonl, .tsv or .tmx, or NTREX-128, FLORES-200, SIB-200, TICO-19 or Multi30k in "
    "the layout they are published in"
)

_BLOCK = 2048  # sentences on each side of a block of distances: 32 MiB
_ROUNDING = 1e-6  # unit vectors that differ by less are the same
_SQUARES = 1e-9  # a sum of squares below is that of equal vectors

ALIGNED = tuple(
    Metric(name, "plain", lower_is_better=True, main=True) for name in ("alignment", "uniformity")
)  # each of the two alone is easy to optimise
TRANSLATIONS = Metric("cosine/translations", "cosine")
CONTRAST = Metric("cosine/contrast", "cosine", main=True)  # encoders differ in where their cosines lie
LEAST = Metric("cosine/min", "cosine")
SPREAD = Metric("cosine/std", "cosine", lower_is_better=True)
DISTANCE = Metric("distance", "plain", lower_is_better=True, main=True)
VARIANCE = Metric("variance/meaning", main=True), Metric("variance/language", lower_is_better=True)

Doubles = NDArray[np.float64]
Tables = Mapping[str, Doubles]


@dataclass(frozen=True, slots=True)
class Alignment:
    """Both values of each subset of a similarity set.

    `pools` are further subsets, each the union of the subsets it names, present if all of them were evaluated. `lists`
    are averages, likewise; the `mean` of several subsets is over all evaluated ones, without the pools.
    """

    metrics: ClassVar[tuple[Metric, ...]] = ALIGNED
    name: str
    sets: tuple[str, ...]
    split: str = "test"
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def needs(self) -> str:
        """The files of its sets."""
        return needs(*self.sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The subsets whose files are there, then the pools."""
        single = tuple(sts.split_sources(self.name, self.sets, self.split, data, languages=languages))
        return (*single, *(pool for pool, parts in self.pools.items() if set(parts) <= set(single)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`alignment` and `uniformity` of each subset and pool, then the averages."""
        found = sts.split_sources(self.name, self.sets, self.split, data, languages=languages)
        pairs = {subset: source.read(f"{self.name} {subset}") for subset, source in found.items()}
        single = tuple(pairs)
        pools = {pool: over for pool, over in self.pools.items() if set(over) <= set(single)}
        pairs |= {pool: sts.joined(pairs[part] for part in over) for pool, over in pools.items()}
        scores = [
            score for subset in pairs for score in _aligned_scores(encode, pairs[subset], task=self.name, subset=subset)
        ]
        lists = {**self.lists, **({"mean": single} if len(single) > 1 else {})}
        return [*scores, *(average for name, over in lists.items() for average in averages(scores, name, over=over))]


def alignment(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
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


def _aligned_scores(encode: Encode, pairs: Rows, *, task: str, subset: str) -> list[Score]:
    texts = list(chain(pairs.texts(0), pairs.texts(1)))
    distinct = sorted({text: row for row, text in reversed(list(enumerate(texts)))}.values())
    positive = np.array(pairs.labels) >= POSITIVE
    if len(distinct) < 2:
        raise EvaluationError(f"{task} {subset}: all sentences are identical; use another set")
    if not positive.any():
        raise EvaluationError(
            f"{task} {subset}: none of its {len(pairs)} labelled pairs has a score of {POSITIVE:g} or more; "
            "give a set with pairs of one meaning, on the scale 0 to 5"
        )
    first, second = sts.embed_sides(encode, pairs, where=f"{task} {subset}", languages=sts.sides(subset))
    squares = alignment(first[positive], second[positive]).astype(np.float32)
    rows = np.concatenate([first, second])[distinct]
    return [
        ALIGNED[0].mean_of(task, subset, squares, item_set=item_set_of(pairs.labels)),
        ALIGNED[1].score(task, subset, uniformity(rows), len(rows)),
    ]


ALIGNMENT: dict[str, Alignment] = {
    task.name: task
    for task in (
        Alignment("alignment", ("senteval-en",), "sts-b-dev"),
        Alignment(
            "alignment/sts17",
            sts.STS17_SETS,
            pools={POOLED: sts.EXTENDED_10},
            lists={"extended-10": sts.EXTENDED_10},
        ),
    )
}


# Groups of translations


@dataclass(frozen=True, slots=True)
class Translations:
    """One meaning: its sentence in each language, by code, and the place (`file:line`) of each.

    Codes are those of the files, in the order of the alphabet, English last. `name` does not depend on the requested
    languages: a line or id of a public set, for user data a digest of all sentences.
    """

    name: str
    texts: Mapping[str, str]
    places: Mapping[str, str]


def read_groups(
    data: Path, *, task: str, source: str = "", languages: Sequence[str] = (), paraphrases: bool = False
) -> tuple[Translations, ...]:
    """The first `GROUPS` groups that have sentences in two of the `languages`; English need not be named.

    `source` is one of `SOURCES`. Without it they are of what has the most of the languages, and of equals the first:
    the user's groups come before the sets, which keep their order. None when nothing is there. Of a language that a
    group has twice, the first sentence counts; with `paraphrases` the others do too, as `eng:2`, `eng:3`. Raises
    `EvaluationError` naming task, language and line.
    """
    own = () if source else tuple(islice(_narrow(_own(data, task, paraphrases), languages), GROUPS))
    chosen, most = "", _count(codes(own), languages) if own else -1
    for name in ([source] if source else SOURCES) if data.is_dir() else ():
        if most == len(languages):
            break
        found = N_WAY[name].find(data, task=f"{task}, set {name}", languages=languages)  # judged by file names
        if len(found) > 1 and (there := _count(found, languages)) > most:
            chosen, most = name, there
    return tuple(islice(_narrow(_aligned(data, chosen, task, languages), languages), GROUPS)) if chosen else own


def codes(groups: Sequence[Translations]) -> tuple[str, ...]:
    """All languages of the groups, English last."""
    return tuple(sorted({code for group in groups for code in group.texts}, key=_order))


def shared(groups: Sequence[Translations], languages: Sequence[str]) -> list[int]:
    """The places of the groups that have all of the languages."""
    return [place for place, group in enumerate(groups) if set(languages) <= group.texts.keys()]


def pairs(groups: Sequence[Translations]) -> list[tuple[str, str]]:
    """Each two languages that at least two groups have."""
    return [pair for pair in combinations(codes(groups), 2) if len(shared(groups, pair)) >= 2]


def everyone(groups: Sequence[Translations], *, least: int) -> tuple[str, ...]:
    """All languages if they are `least` or more and two groups have every one of them; otherwise none."""
    found = codes(groups)
    return found if len(found) >= least and len(shared(groups, found)) >= 2 else ()


def vectors(encode: Encode, groups: Sequence[Translations], *, task: str) -> dict[str, Doubles]:
    """Unit vectors (G, D) of the G groups for each language, zero where a group lacks it. Raises `EvaluationError`."""
    tables: dict[str, Doubles] = {}
    for code in codes(groups):
        places = shared(groups, [code])
        rows = _embed(encode, [groups[place] for place in places], code, f"{task} {code}")
        table = np.zeros((len(groups), rows.shape[1]))
        table[places] = unit(rows)
        tables[code] = table
    return tables


def square(languages: Sequence[str], values: Mapping[tuple[str, str], float], *, same: float) -> Detail:
    """A table of all languages against all; a pair without a value is an empty cell, `same` stands in the diagonal."""

    def cell(a: str, b: str) -> str | float:
        return same if a == b else values.get((a, b), values.get((b, a), ""))

    rows = tuple((a, *(cell(a, b) for b in languages)) for a in languages)
    return Detail("similarity", ("language", *languages), rows)


def _count(found: Iterable[str], languages: Sequence[str]) -> int:
    """The number of the languages among the codes found."""
    return sum(any(among(_language(code), [language]) for code in found) for language in languages)


def _order(code: str) -> tuple[bool, str]:
    return _english(code), code


def _english(code: str) -> bool:
    code = _language(code)
    return is_language(code) and canonical(code) == "eng"


def _language(code: str) -> str:
    """Without the number of a paraphrase."""
    return code.partition(":")[0]


def _embed(encode: Encode, groups: Sequence[Translations], code: str, where: str) -> NDArray[np.float32]:
    texts = [group.texts[code] for group in groups]
    return embed(encode, texts, where=where, place=lambda row: groups[row].places[code])


def _narrow(groups: Iterator[Translations], languages: Sequence[str]) -> Iterator[Translations]:
    for group in groups:
        kept = sorted((code for code in group.texts if _english(code) or among(_language(code), languages)), key=_order)
        if len(kept) >= 2:
            texts, places = ({code: by_code[code] for code in kept} for by_code in (group.texts, group.places))
            yield Translations(group.name, texts, places)


def _own(data: Path, task: str, paraphrases: bool) -> Iterator[Translations]:
    for number, group in retrieval.read_groups(data, task=task):
        met, texts = Counter[str](), {}
        for code, text in zip(group.langs, group.texts, strict=True):
            met[code] += 1
            if met[code] == 1 or paraphrases:
                texts[code if met[code] == 1 else f"{code}:{met[code]}"] = text
        yield Translations(item_set_of(group.texts), texts, dict.fromkeys(texts, retrieval.origin(data, number)))


def _aligned(data: Path, source: str, task: str, languages: Sequence[str]) -> Iterator[Translations]:
    where = f"{task}, set {source}"
    found = N_WAY[source].find(data, task=where, languages=languages)
    # TICO-19 has one English text per partner, which differ in a few words: the first one is used.
    tables = {code: N_WAY[source].read(found, code, partner=min(found[code]), where=where) for code in found}
    first, *others = [*tables] or [""]
    for code in others:
        check_aligned((tables[first], tables[code]), where=f"{where}, languages {first} and {code}")
    for rows in zip(*tables.values(), strict=True):
        sentences, places = ([row[at][0] for row in rows] for at in (0, 1))
        yield Translations(
            f"{source} {rows[0].id}",
            dict(zip(tables, sentences, strict=True)),
            dict(zip(tables, places, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class OfGroups:
    """Base of the tasks on groups of translations.

    `source` names the set that is read, one of `SOURCES`; without it that with the most of the languages.
    """

    source: str = ""
    sets: ClassVar[tuple[str, ...]] = tuple(retrieval.N_WAY[name].source for name in SOURCES)
    needs: ClassVar[str] = NEEDS
    name: ClassVar[str]
    paraphrases: ClassVar[bool] = False  # whether all sentences of a language in a group count

    def groups(self, data: Path, languages: Sequence[str]) -> tuple[Translations, ...]:
        """The groups that it is about."""
        return read_groups(data, task=self.name, source=self.source, languages=languages, paraphrases=self.paraphrases)


@dataclass(frozen=True, slots=True)
class Similarity(OfGroups):
    """The task `similarity`: cosines of translations for each pair of languages, then for all languages together.

    Paraphrases of one language in a group are compared like translations, `eng-eng:2` (MPCL, figure 1c).
    """

    metrics: ClassVar[tuple[Metric, ...]] = (TRANSLATIONS, CONTRAST, LEAST, SPREAD)
    name: ClassVar[str] = "similarity"
    paraphrases: ClassVar[bool] = True

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages, and all languages joined if they are three or more."""
        groups = self.groups(data, languages)
        together = everyone(groups, least=3)
        return (*("-".join(pair) for pair in pairs(groups)), *(["-".join(together)] if together else []))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`cosine/translations` and `cosine/contrast` of pairs, `cosine/min` and `cosine/std` of all, then the `mean`.

        The mean is over the pairs and has a table of all languages against all. Raises `EvaluationError`.
        """
        groups = self.groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        scores: list[Score] = []
        for pair in pairs(groups):
            places = shared(groups, pair)
            item_set = item_set_of(groups[place].name for place in places)
            scores += self._pair(pair, tables[pair[0]][places], tables[pair[1]][places], item_set=item_set)
        means = [self._with_table(mean, scores, codes(groups)) for mean in averages(scores, "mean")]
        return [*scores, *self._together(groups, tables), *means]

    def _pair(self, pair: tuple[str, str], a: Doubles, b: Doubles, *, item_set: str) -> list[Score]:
        same, others = np.einsum("nd,nd->n", a, b), len(a) - 1
        # The cosines of a sentence with all of the other language add up to its product with their sum.
        rest = a @ b.sum(axis=0) + b @ a.sum(axis=0) - 2 * same
        items = {TRANSLATIONS: same, CONTRAST: same - rest / (2 * others)}
        subset = "-".join(pair)
        return [metric.mean_of(self.name, subset, row, item_set=item_set) for metric, row in items.items()]

    def _together(self, groups: Sequence[Translations], tables: Mapping[str, Doubles]) -> list[Score]:
        together = everyone(groups, least=3)
        if not together:
            return []
        places = shared(groups, together)
        cosines = np.array(
            [np.einsum("nd,nd->n", tables[a][places], tables[b][places]) for a, b in combinations(together, 2)]
        )
        example = _example(groups[places[0]], together, cosines[:, 0])
        return [
            LEAST.mean_of(self.name, "-".join(together), cosines.min(axis=0), details=(example,)),
            SPREAD.mean_of(self.name, "-".join(together), cosines.std(axis=0)),
        ]

    def _with_table(self, mean: Score, scores: Sequence[Score], languages: Sequence[str]) -> Score:
        values = {score.subset: score.value for score in scores if score.metric == mean.metric}
        table = {pair: values["-".join(pair)] for pair in combinations(languages, 2) if "-".join(pair) in values}
        # A sentence is its own translation, so it is not compared with the other sentences of its language.
        return (
            replace(mean, details=(square(languages, table, same=1.0),)) if mean.metric == TRANSLATIONS.name else mean
        )


def _example(group: Translations, languages: Sequence[str], cosines: Doubles) -> Detail:
    """The matrix of one group, its sentences naming the rows."""
    values = dict(zip(combinations(languages, 2), map(float, cosines), strict=True))
    table = square(languages, values, same=1.0)
    rows = tuple((f"{code}: {group.texts[code]}", *row[1:]) for code, row in zip(languages, table.rows, strict=True))
    return replace(table, rows=rows)


@dataclass(frozen=True, slots=True)
class Centroids(OfGroups):
    """The task `centroids`: for each pair of languages the distance of their centroids in units of their spread."""

    metrics: ClassVar[tuple[Metric, ...]] = (DISTANCE,)
    name: ClassVar[str] = "centroids"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages."""
        return tuple("-".join(pair) for pair in pairs(self.groups(data, languages)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`distance` of each pair, then the `mean` with a table of all languages against all.

        Raises `EvaluationError`, also for an encoder that gives all sentences of a language the same vector.
        """
        groups = self.groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        values: dict[tuple[str, str], float] = {}
        scores: list[Score] = []
        for pair in pairs(groups):
            places = shared(groups, pair)
            values[pair] = self._distance(pair, *(tables[code][places] for code in pair))
            scores.append(DISTANCE.score(self.name, "-".join(pair), values[pair], len(places)))
        table = square(codes(groups), values, same=0.0)
        return [*scores, *(replace(mean, details=(table,)) for mean in averages(scores, "mean"))]

    def _distance(self, pair: tuple[str, str], a: Doubles, b: Doubles) -> float:
        """Between the centres of unit vectors (N, D), over the mean of both root mean square distances from them."""
        apart = float(np.linalg.norm(a.mean(axis=0) - b.mean(axis=0)))
        spread = sum(float(np.sqrt(np.square(side - side.mean(axis=0)).sum(axis=1).mean())) for side in (a, b)) / 2
        if apart <= _ROUNDING:
            return 0.0
        if spread <= _ROUNDING:
            raise EvaluationError(
                f"{self.name} {'-'.join(pair)}: all {len(a)} sentences of a language have the same vector, and the "
                "languages differ; check the encoder's weights and its tokenizer"
            )
        return apart / spread


@dataclass(frozen=True, slots=True)
class SentenceMap(OfGroups):
    """The task `map`: pairs of languages, then all languages over the groups that have every one of them."""

    metrics: ClassVar[tuple[Metric, ...]] = VARIANCE
    name: ClassVar[str] = "map"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages, and all languages joined if they are three or more."""
        return tuple("-".join(chosen) for chosen in _chosen(self.groups(data, languages)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`variance/meaning` and `variance/language` of each, then the `mean` over pairs.

        The two of all languages have the pictures: that of translations and that of languages. Raises
        `EvaluationError`.
        """
        groups = self.groups(data, languages)
        tables = vectors(encode, groups, task=self.name)
        scores = {chosen: self._shares(groups, tables, chosen) for chosen in _chosen(groups)}
        means = averages([score for chosen, both in scores.items() if len(chosen) == 2 for score in both], "mean")
        if together := everyone(groups, least=2):
            few, many = _maps(groups, tables, together)
            meaning, language = scores[together]
            scores[together] = [replace(meaning, details=(few,)), replace(language, details=(many,))]
        return [*(score for both in scores.values() for score in both), *means]

    def _shares(self, groups: Sequence[Translations], tables: Tables, chosen: tuple[str, ...]) -> list[Score]:
        places = shared(groups, chosen)
        cube = np.stack([tables[code][places] for code in chosen], axis=1)  # (groups, languages, D)
        shares = explained(cube), explained(cube.transpose(1, 0, 2))
        subset, n = "-".join(chosen), len(places) * len(chosen)
        return [metric.score(self.name, subset, value, n) for metric, value in zip(VARIANCE, shares, strict=True)]


def explained(cube: Doubles) -> float:
    """Eta squared: the share of the variance of vectors (A, B, D) that lies between the means of A; 0 without any."""
    centre = cube.mean(axis=(0, 1))
    total = float(np.square(cube - centre).sum())
    between = float(np.square(cube.mean(axis=1) - centre).sum()) * cube.shape[1]
    return min(1.0, between / total) if total > _SQUARES else 0.0


def plane(points: Doubles) -> Doubles:
    """Points (N, D) laid into a plane (N, 2) by t-SNE, the same for the same points; all at 0 where none differ."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    if np.square(points - points.mean(axis=0)).sum() <= _SQUARES:
        return np.zeros((len(points), 2))
    points = np.pad(points, ((0, 0), (0, max(0, 2 - points.shape[1]))))  # vectors of one value lie on a line
    with threadpool_limits(1):  # threads would add up in the order in which they finish
        layout = TSNE(init="pca", perplexity=min(30.0, (len(points) - 1) / 3), random_state=0)
        return np.asarray(layout.fit_transform(points), np.float64)


def _chosen(groups: Sequence[Translations]) -> list[tuple[str, ...]]:
    together = everyone(groups, least=3)
    return [*pairs(groups), *([together] if together else [])]


def _maps(groups: Sequence[Translations], tables: Tables, together: tuple[str, ...]) -> tuple[Detail, Detail]:
    places = shared(groups, together)
    many = max(MARKED, POINTS // len(together))
    return _map(groups, tables, places[:FEW], marked=FEW), _map(groups, tables, places[:many], marked=MARKED)


def _map(groups: Sequence[Translations], tables: Tables, places: Sequence[int], *, marked: int) -> Detail:
    """The sentences of the groups at `places` as points; a group is named by its number if it is of the marked."""
    points = [(number, groups[place], code) for number, place in enumerate(places) for code in groups[place].texts]
    laid = plane(np.array([tables[code][places[number]] for number, _, code in points])).round(3)
    rows = tuple(
        (str(number + 1) if number < marked else "", code, float(x), float(y), group.texts[code])
        for (number, group, code), (x, y) in zip(points, laid, strict=True)
    )
    return Detail("map", ("group", "language", "x", "y", "text"), rows)
