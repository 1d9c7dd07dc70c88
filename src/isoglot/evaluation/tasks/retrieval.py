"""Finding each sentence's translation among all sentences of the other language, both ways.

`nearest` is the core that `tatoeba` shares, `mistakes` the table that `xsim` shares too. `Retrieval` is the task on any
groups of sentences that mean the same, such as a part of the training data held out: the dev score of a run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import ClassVar

import numpy as np

from isoglot.data.groups import Group
from isoglot.errors import CorpusError, EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, units_of
from isoglot.evaluation.codes import among
from isoglot.evaluation.vectors import embed, unit
from isoglot.search.exact import Floats, Ids, neighbours
from isoglot.search.pairs import Doubles

SHOWN = 10  # worst mistakes of a direction that are kept as a detail

# Two sides of a pair of languages, and of the group that each of its rows is of the place and a name.
Aligned = tuple[tuple[list[str], list[str]], list[int], list[str]]

Place = Callable[[int], str]

_COLUMNS = ("sentence", "expected", "found", "cosine expected", "cosine found", "margin")
_SUFFIXES = ("jsonl", "tsv", "tmx")
_ENDINGS = ("", ".gz", ".xz", ".bz2")


def nearest(
    encode: Encode,
    sides: tuple[Sequence[str], Sequence[str]],
    *,
    task: str,
    languages: tuple[str, str],
    names: tuple[str, str] = ("xx", "yy"),
    places: tuple[Place, Place] | None = None,
    f1: bool = False,
) -> list[Score]:
    """Three accuracies of N aligned pairs: first language to second, second to first, and their mean.

    A sentence counts when the sentence of greatest cosine on the other side is its own partner, told by place and not
    by text: where a text stands twice on the other side, the first of them is the one found. `names` are the two
    sides in the metrics (`accuracy/xx-en`); `places` tell where the rows of each side were read (see `embed`). With
    `f1` the main score of MTEB is added for the first direction, the mean over sentences of the F1 of each as a class:
    found too often, it loses precision. The score of a direction has its worst mistakes as a detail. Raises
    `EvaluationError`, see `embed`.
    """
    subset = "-".join(languages)
    tables = [
        embed(encode, side, where=f"{task} {subset}, language {language}", unit="pair", place=place)
        for side, language, place in zip(sides, languages, places or (None, None), strict=True)
    ]
    found = neighbours(tables[0], tables[1], 1, metric="cosine")
    forward, backward = (
        first_places(sides[1])[found.forward_ids[:, 0]],
        first_places(sides[0])[found.backward_ids[:, 0]],
    )
    there, back = (np.equal(ids, np.arange(len(ids))).astype(np.float32) for ids in (forward, backward))
    ways: list[tuple[Floats, tuple[Detail, ...]]] = [
        (there, _mistakes(sides, (tables[0], tables[1]), forward)),
        (back, _mistakes(sides[::-1], (tables[1], tables[0]), backward)),
        (np.divide(there + back, 2, dtype=np.float32), ()),
    ]
    scores = [
        metric.score(task, subset, float(hits.mean(dtype=np.float64)), len(hits), items=hits, details=more)
        for metric, (hits, more) in zip(accuracies(*names), ways, strict=True)
    ]
    if f1:
        items = there * np.divide(2, np.bincount(forward, minlength=len(there)) + 1, dtype=np.float32)
        value = float(items.mean(dtype=np.float64))
        scores.append(Metric(f"f1/{names[0]}-{names[1]}").score(task, subset, value, len(items), items=items))
    return scores


def accuracies(first: str, second: str) -> tuple[Metric, Metric, Metric]:
    """The three accuracies of two sides: from the first, from the second, and their mean, the main number."""
    return (
        Metric(f"accuracy/{first}-{second}"),
        Metric(f"accuracy/{second}-{first}"),
        Metric("accuracy/mean", main=True),
    )


def first_places(texts: Sequence[str]) -> Ids:
    """For each text the place at which it stands first, (N,).

    Equal texts have equal vectors, but a product may round them apart by their place in it; so ties between them are
    settled by text.
    """
    first: dict[str, int] = {}
    return np.array([first.setdefault(text, place) for place, text in enumerate(texts)], np.int64)


def tell_repeated(texts: Sequence[str], *, where: str, place: Place) -> bool:
    """Whether any of N sentences stands twice, which is logged, once, with the places of the first that does.

    No error, since translation memories have such rows; but no encoder can answer all of them rightly: the first of
    equal sentences is the one found, and as queries they find the same.
    """
    first = first_places(texts)
    again = np.flatnonzero(first != np.arange(len(first)))
    if len(again):
        _warn(
            f"{where}: {place(again[0])} repeats the sentence of {place(first[again[0]])}; {len(again)} of {len(first)}"
            " rows do so, and of equal ones at most one is right in either direction, with any encoder; remove them"
        )
    return bool(len(again))


@cache
def _warn(message: str) -> None:
    """Once: a training run evaluates on the same sentences again and again."""
    logging.getLogger(__name__).warning(message)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Retrieval within groups, for each pair of languages that occur together.

    Without `groups` they are read from the data: a file `.jsonl`, `.tsv` or `.tmx`, or a folder that holds one named
    `retrieval`, or a folder `retrieval` of line-aligned files. Of a language that a group has twice, the first
    sentence counts. Hard negatives are not searched. In the subset `kor-eng`, English is last, otherwise the order is
    the alphabet's.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (*accuracies("xx", "en"), *accuracies("xx", "yy")[:2])
    groups: tuple[Group, ...] | None = None
    name: str = "retrieval"

    @property
    def needs(self) -> str:
        """Where groups are looked for."""
        return "a file retrieval.jsonl, .tsv or .tmx (or .gz, .xz), or a folder retrieval/ with line-aligned files"

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """Pairs of languages that occur together in a group."""
        return tuple("-".join(pair) for pair in self._pairs(data, languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """The three accuracies of each pair of languages, then the `mean`."""
        scores: list[Score] = []
        told: set[str] = set()
        for pair, (sides, places, groups) in self._pairs(data, languages).items():
            origins = self._origins(data, places)
            for side, language, place in zip(sides, pair, origins or (), strict=False):
                where = f"{self.name} {'-'.join(pair)}, language {language}"
                if language not in told and tell_repeated(side, where=where, place=place):
                    told.add(language)  # each has many pairs
            found = nearest(encode, sides, task=self.name, languages=pair, names=_names(pair), places=origins)
            scores += [replace(score, units=units_of(groups)) for score in found]
        return scores + averages(scores, "mean")

    def _origins(self, data: Path, places: Sequence[int]) -> tuple[Place, Place] | None:
        if self.groups is not None:
            return None
        return (lambda row: origin(data, places[row]),) * 2

    def _pairs(self, data: Path, languages: Sequence[str]) -> dict[tuple[str, str], Aligned]:
        pairs: dict[tuple[str, str], Aligned] = {}
        numbered = read_groups(data, task=self.name) if self.groups is None else enumerate(self.groups)
        for place, group in numbered:
            firsts = dict(zip(reversed(group.langs), reversed(group.texts), strict=True))
            known = sorted(firsts, key=lambda language: (language == "eng", language))
            named = units_of(group.texts)  # whole, so that it is the same in every pair of languages
            for pair in combinations(known, 2):
                if all(language == "eng" or among(language, languages) for language in pair):
                    sides, places, groups = pairs.setdefault(pair, (([], []), [], []))
                    places.append(place)
                    groups.append(named)
                    for side, language in zip(sides, pair, strict=True):
                        side.append(firsts[language])
        return dict(sorted(pairs.items()))


def _names(pair: tuple[str, str]) -> tuple[str, str]:
    return ("xx", "en") if pair[1] == "eng" else ("xx", "yy")


def _mistakes(
    sides: tuple[Sequence[str], Sequence[str]], tables: tuple[Floats, Floats], found: Ids
) -> tuple[Detail, ...]:
    """Queries (of the first side) that found (N,) another than their partner, by the greatest margin first."""
    wrong = np.flatnonzero(found != np.arange(len(found)))
    queries, expected, taken = (
        unit(table[places]) for table, places in ((tables[0], wrong), (tables[1], wrong), (tables[1], found[wrong]))
    )
    here, there = (np.einsum("nd,nd->n", queries, other) for other in (expected, taken))
    return mistakes(sides, wrong, found[wrong], (here, there))


def mistakes(
    sides: tuple[Sequence[str], Sequence[str]],
    wrong: Ids,
    found: Ids,
    scores: tuple[Doubles, Doubles],
    *,
    columns: tuple[str, ...] = _COLUMNS,
) -> tuple[Detail, ...]:
    """The worst of W wrong answers, by how much they score above the translation; nothing without any.

    `wrong` (W,) are rows of the first side and `found` (W,) rows of the second; `scores` (W,) are those of the
    translations, then of what was found. The last of the `columns` is their difference.
    """
    # Rounded before they are sorted: differences that differ by rounding alone stay in the order of the data.
    expected, taken = (score.round(6) for score in scores)
    above = (taken - expected).round(6)
    rows = tuple(
        (
            sides[0][wrong[at]],
            sides[1][wrong[at]],
            sides[1][found[at]],
            float(expected[at]),
            float(taken[at]),
            float(above[at]),
        )
        for at in np.argsort(-above, kind="stable")[:SHOWN]
    )
    return (Detail("mistakes", columns, rows),) if rows else ()


def read_groups(data: Path, *, task: str) -> Iterator[tuple[int, Group]]:
    """The groups of one's own in a file or folder; none when there is no file of the names that are looked for.

    With each comes the number, from 0, of its line or unit, of which some hold no text and give no group. Raises
    `EvaluationError` naming the task, file and line.
    """
    from isoglot.data.readers import read

    path = _file(data)
    if path is None:
        return
    suffix = next((suffix for suffix in _SUFFIXES if f".{suffix}" in path.suffixes[-2:]), None)
    if suffix is None and not path.is_dir():
        raise EvaluationError(f"{task}: {path}: only .{', .'.join(_SUFFIXES)} are read; rename or convert the file")
    passed = Counter[str]()
    options = {"counts": passed} if suffix == "tmx" else {}
    try:
        for number, group in enumerate(read("folder" if path.is_dir() else str(suffix), path, **options)):
            yield number + passed["empty"], group
    except CorpusError as error:
        raise EvaluationError(f"{task}: {error}") from error


def origin(data: Path, number: int) -> str:
    """Where the group of this number in `read_groups` was read: file and line, or what is nearest to that."""
    path = _file(data)
    if path is None or path.is_dir() or ".tmx" in path.suffixes[-2:]:
        return f"{path}, {'line' if path and path.is_dir() else 'unit'} {number + 1}"
    return f"{path}:{number + 1 + ('.tsv' in path.suffixes[-2:])}"


def _file(data: Path) -> Path | None:
    if data.is_file():
        return data
    names = [f"retrieval.{suffix}{ending}" for suffix in _SUFFIXES for ending in _ENDINGS]
    return next((data / name for name in [*names, "retrieval"] if (data / name).exists()), None)
