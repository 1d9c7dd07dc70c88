"""Finds each sentence's translation among all sentences of the other language: Tatoeba and the user's groups.

One nearest neighbour by cosine, no margin, judged by line number. Tatoeba is the test of LASER (Artetxe and Schwenk
2019, "Massively Multilingual Sentence Embeddings for Zero-Shot Cross-Lingual Transfer and Beyond") in the protocol of
XTREME. Published numbers differ in direction, so all three are always given: foreign to English (`accuracy/xx-en`, as
MTEB does), English to foreign (`accuracy/en-xx`, as XTREME's script does) and their mean (as EASE and mSimCSE do). Each
language is divided by its own number of pairs, below 1000 for 40 of them.

The worst mistakes of a direction are the detail of its score.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations, count, islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.data.files import locate
from isoglot.data.formats import DOCUMENTS, FORMATS, PAIRS, TABLES, table_cells
from isoglot.data.groups import Group
from isoglot.data.sets.normal import Columns, Texts
from isoglot.evaluation.base import BaseTask, Cells, Details, Encode, Metric, Score, item_set_of, worst
from isoglot.evaluation.sets import SetTask, Source, among, is_english, reading, words
from isoglot.evaluation.vectors import embed_rows, unit
from isoglot.search.best import Floats, Ids
from isoglot.search.exact import neighbours
from isoglot.search.pairs import Doubles

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


_PART = 4096  # wrong answers whose cosines are computed together


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

    def metrics(self, other: str) -> tuple[Metric, ...]:
        """The metrics from `xx` to the other side (`en` or `yy`), back, and their mean."""
        forward, backward = (Metric(f"{self.name}/{way}") for way in (f"xx-{other}", f"{other}-xx"))
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
    encode: Encode, pair: tuple[str, str], rows: Texts, *, task: str, measures: Sequence[Measure], item_set: str = ""
) -> Iterator[Score]:
    """The scores of N aligned sentences of a pair of languages.

    A sentence is correct if the sentence of greatest cosine on the other side is its partner, compared by row and not
    by text: if a text occurs twice on the other side, the first one is found. The first measure has the worst mistakes
    of each direction as a detail. Raises `EvaluationError`, see `embed`.
    """
    subset, texts = "-".join(pair), (rows.texts(0), rows.texts(1))
    where = f"{task} {subset}, language"
    tables = [embed_rows(encode, rows, where=f"{where} {language}", side=side) for side, language in enumerate(pair)]
    near = neighbours(tables[0], tables[1], max(measure.depth for measure in measures), metric="cosine")
    nearest = first_places(texts[1])[near.forward_ids], first_places(texts[0])[near.backward_ids]
    details = []
    for way, answers in zip((1, -1), nearest, strict=True):
        wrong = np.flatnonzero(answers[:, 0] != np.arange(len(answers)))
        details.append(cosine_mistakes(texts[::way], tables[::way], wrong, wrong, answers[wrong, 0]))
    for measure in measures:
        items = [measure.outcome(answers).astype(np.float32) for answers in nearest]
        items.append(np.divide(items[0] + items[1], 2, dtype=np.float32))
        metrics = measure.metrics("en" if is_english(pair[1]) else "yy")
        for metric, outcomes, shown in zip(metrics, items, (*details, ()), strict=False):
            yield metric.mean_of(task, subset, outcomes, item_set=item_set, details=shown)
        details = [(), ()]


def first_places(texts: Sequence[str]) -> Ids:
    """The first index of each text, (N,).

    Equal texts have equal vectors, but a product may round them apart by their place in it; so ties between them are
    settled by text.
    """
    first: dict[str, int] = {}
    return np.array([first.setdefault(text, place) for place, text in enumerate(texts)], np.int64)


def warn_of_duplicates(rows: Texts, side: int, *, where: str) -> bool:
    """Whether any sentence of one side stands twice, which is logged, once, with the places of the first that does.

    Not an error, since translation memories have such rows; but no encoder can get all of them right: the first of
    equal sentences is the one found, and equal queries find the same sentence.
    """
    first, place = first_places(rows.texts(side)), rows.place(side)
    repeated = np.flatnonzero(first != np.arange(len(first)))
    if len(repeated):
        others = f"{len(repeated)} of {len(first)} rows do so, and of equal ones at most one can be right; remove them"
        _warn(f"{where}: {place(repeated[0])} repeats the sentence of {place(first[repeated[0]])}; {others}")
    return bool(len(repeated))


# Each once: a training run evaluates on the same sentences again and again.
_warn = cache(logging.getLogger(__name__).warning)


@dataclass(frozen=True, slots=True)
class Tatoeba(SetTask):
    """The task `tatoeba`. Subsets are named by the codes of the files: `kor-eng`, `cmn-eng`."""

    metrics: ClassVar[tuple[Metric, ...]] = tuple(m for one in MTEB_MEASURES for m in one.metrics("en"))
    name: str = "tatoeba"
    reads: tuple[str, ...] = ("tatoeba-laser",)
    lists: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {name: tuple(f"{code}-eng" for code in codes) for name, codes in AVERAGES.items()}
    )

    def score(self, encode: Encode, subsets: dict[str, Source]) -> Iterator[Score]:
        """Three accuracies of each language, and the F1 of MTEB."""
        for subset, source in subsets.items():
            rows = source.read(f"{self.name} {subset}")
            pair = subset.removesuffix("-eng"), "eng"
            for side, language in enumerate(pair):
                warn_of_duplicates(rows, side, where=f"{self.name} {subset}, language {language}")
            yield from score_pair(encode, pair, rows, task=self.name, measures=MTEB_MEASURES)


@dataclass(frozen=True, slots=True)
class Retrieval(BaseTask):
    """Retrieval within groups, for each pair of languages that occur together.

    Without `groups` they are read from the data: what `needs` lists, or one such file of any name. Of a language that
    a group has twice, the first sentence counts. Hard negatives are not searched. In the subset `kor-eng`, English is
    last, otherwise the order is the alphabet's.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(
        dict.fromkeys(m for other in ("en", "yy") for one in MEASURES for m in one.metrics(other))
    )
    needs: ClassVar[str] = (
        "retrieval.jsonl, .parquet, .tsv, .csv, .xlsx, .tmx, .po or .xliff, or a folder retrieval/ of aligned files"
    )
    reads: ClassVar[tuple[str, ...]] = ()
    groups: tuple[Group, ...] | None = None
    name: str = "retrieval"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[tuple[str, str], Columns, str]]:
        """Pairs of languages that occur together in a group, their sentences, and the id of their item set."""
        pairs: dict[tuple[str, str], tuple[Columns, list[str]]] = {}
        in_memory = ((f"row {number}", group) for number, group in enumerate(self.groups or (), 1))
        for place, group in read_groups(data, task=self.name) if self.groups is None else in_memory:
            firsts = dict(zip(reversed(group.langs), reversed(group.texts), strict=True))
            codes = [language for language in firsts if is_english(language) or among(language, languages)]
            codes.sort(key=lambda language: (is_english(language), language))
            key = item_set_of(group.texts)  # of the whole group, so that it is the same in every pair of languages
            for pair in combinations(codes, 2):
                columns, keys = pairs.setdefault(pair, (Columns(), []))
                for side, language in zip(columns.sides, pair, strict=True):
                    side.append(firsts[language])
                keys.append(key)
                columns.places.append(place)
        return {"-".join(pair): (pair, columns, item_set_of(keys)) for pair, (columns, keys) in sorted(pairs.items())}

    def score(self, encode: Encode, subsets: dict[str, tuple[tuple[str, str], Columns, str]]) -> Iterator[Score]:
        """The three accuracies of each pair of languages."""
        warned: set[str] = set()
        for subset, (pair, rows, item_set) in subsets.items():
            for side, language in enumerate(pair):
                where = f"{self.name} {subset}, language {language}"
                if language not in warned and warn_of_duplicates(rows, side, where=where):
                    warned.add(language)  # once, as a language has many pairs
            yield from score_pair(encode, pair, rows, task=self.name, measures=MEASURES, item_set=item_set)


def cosine_mistakes(
    texts: Sequence[Sequence[str]], tables: Sequence[Floats], wrong: Ids, expected: Ids, answers: Ids
) -> Details:
    """The worst of W wrong answers by cosine, see `mistakes`; `tables` are the vectors of the texts of each side."""

    def cosines(others: Ids) -> Doubles:  # by parts, since the vectors of all in float64 take more than the tables
        values = np.empty(len(wrong))
        for part in (slice(at, at + _PART) for at in range(0, len(wrong), _PART)):
            values[part] = np.einsum("nd,nd->n", unit(tables[0][wrong[part]]), unit(tables[1][others[part]]))
        return values

    scores, names = (cosines(expected), cosines(answers)), ("cosine expected", "cosine found", "margin")
    return mistakes(texts, (wrong, expected, answers), scores, names)


def mistakes(
    texts: Sequence[Sequence[str]], rows: tuple[Ids, Ids, Ids], scores: tuple[Doubles, Doubles], names: Sequence[str]
) -> Details:
    """The worst of W wrong answers, by how much they score above the expected one; nothing without any.

    `rows` (W,) are those of the sentences, on the first side, and of what was expected and found, on the second;
    `scores` (W,) are those of the expected and of the found. `names` are the columns of the scores and of their
    difference.
    """
    # Rounded before they are sorted: differences that differ by rounding alone stay in the order of the data.
    expected_scores, answer_scores = (score.round(6) for score in scores)
    excess = (answer_scores - expected_scores).round(6)

    def row(at: int) -> Cells:
        sentences = (side[places[at]] for side, places in zip((texts[0], texts[1], texts[1]), rows, strict=True))
        return *sentences, float(expected_scores[at]), float(answer_scores[at]), float(excess[at])

    return worst(("sentence", "expected", "found", *names), excess, row)


def read_groups(data: Path, *, task: str) -> Iterator[tuple[str, Group]]:
    """The user's groups in a file or folder; none if the folder has no file with one of the expected names.

    Each comes with its place, file and line or unit; lines without text give no group. Raises `EvaluationError` naming
    the task, file and line.
    """
    from isoglot.data.readers import READERS, read

    kinds = ("jsonl", *(name for name in FORMATS if name in READERS and name not in ("jsonl", *DOCUMENTS)))
    files = [data] if data.is_file() else [locate(data, f"retrieval.{kind}") for kind in kinds]
    path = next(filter(None, files), data / "retrieval")
    if not path.exists():
        return
    suffixes = () if path.is_dir() else path.suffixes[-2:]
    kind = next((kind for kind in kinds if f".{kind}" in suffixes), "folder" if path.is_dir() else "")
    if not kind:
        raise EvaluationError(f"{task}: {path}: only .{', .'.join(kinds)} are read; rename or convert the file")
    unit = FORMATS[kind].unit if kind in PAIRS else {"folder": "line", "parquet": "row"}.get(kind)
    passed = Counter[str]()
    numbers: Iterator[int] = count(1)
    if kind in TABLES:  # a row of CSV may have several lines, and blank ones before it; the first has the names
        numbers = (line for line, _ in islice(table_cells(path), 1, None))
    with reading(task):
        groups = read(kind, path, **({"counts": passed} if unit == "unit" else {}))
        for group, number in zip(groups, numbers, strict=False):
            number += passed.total()
            yield f"{path}, {unit} {number}" if unit else f"{path}:{number}", group
