"""Groups of translations and their vectors, for the tasks that look at where the vectors of a meaning lie.

The groups are one's own, as `retrieval` reads them, or else those of the first public set that is there, found and
read as `xsim` does; where languages are asked for, those of whatever has the most of them. Only the first `GROUPS` are
used, so that many languages stay quick. Two groups are two meanings, even where a sentence stands in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.data.languages import canonical, is_language
from isoglot.evaluation.base import Detail, Encode, units_of
from isoglot.evaluation.codes import among
from isoglot.evaluation.tasks import retrieval
from isoglot.evaluation.tasks.xsim_sets import SETS, Texts
from isoglot.evaluation.vectors import embed, unit

GROUPS = 200
NEEDS = (
    "groups of translations: retrieval.jsonl, .tsv or .tmx, or NTREX-128, FLORES-200, SIB-200, TICO-19 or Multi30k in "
    "the layout they are published in"
)

Doubles = NDArray[np.float64]

_MULTI30K = Texts(
    "multi30k",
    "files test_2016_flickr.<xx> of Multi30k, in task1/raw/",
    places=("multi30k/task1/raw", "", "task1/raw", "data/task1/raw", "multi30k/data/task1/raw"),
    glob="test_2016_flickr.*",
    patterns=(r"test_2016_flickr\.(?P<code>[a-z]{2})(?:\.(?:gz|xz|bz2))?",),
)
_BY_NAME = {texts.name: texts for texts in (*SETS, _MULTI30K)}
SOURCES = ("ntrex", "flores-devtest", "sib", "tico", "multi30k")


@dataclass(frozen=True, slots=True)
class Translations:
    """One meaning: its sentence in each language, by code, and where (`file:line`) that was read.

    Codes are those of the files, in the order of the alphabet, English last. `name` is the same whichever languages are
    asked for: a line or id of a public set, a digest of all sentences of one's own.
    """

    name: str
    texts: Mapping[str, str]
    places: Mapping[str, str]


def read_groups(
    data: Path, *, task: str, source: str = "", languages: Sequence[str] = (), limit: int = GROUPS
) -> tuple[Translations, ...]:
    """The first `limit` groups that have sentences in two of the `languages`; English need not be named.

    `source` is one of `SOURCES`. Without it they are of what has the most of the languages, and of equals the first:
    one's own groups come before the sets, those in that order. None when nothing is there. Of a language that a group
    has twice, the first sentence counts. Raises `EvaluationError` naming task, language and line.
    """
    own = () if source else tuple(islice(_narrow(_own(data, task), languages), limit))
    chosen, most = "", _count(codes(own), languages) if own else -1
    for name in ([source] if source else SOURCES) if data.is_dir() else ():
        if most == len(languages):
            break
        found = _BY_NAME[name].find(data, where=f"{task}, set {name}", languages=languages)  # by their names alone
        if len(found) > 1 and (there := _count(found, languages)) > most:
            chosen, most = name, there
    return tuple(islice(_narrow(_aligned(data, chosen, task, languages), languages), limit)) if chosen else own


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
    """How many of the languages are among the codes found."""
    return sum(any(among(code, [language]) for code in found) for language in languages)


def _order(code: str) -> tuple[bool, str]:
    return _english(code), code


def _english(code: str) -> bool:
    return is_language(code) and canonical(code) == "eng"


def _embed(encode: Encode, groups: Sequence[Translations], code: str, where: str) -> NDArray[np.float32]:
    texts = [group.texts[code] for group in groups]
    return embed(encode, texts, where=where, place=lambda row: groups[row].places[code])


def _narrow(groups: Iterator[Translations], languages: Sequence[str]) -> Iterator[Translations]:
    for group in groups:
        kept = sorted((code for code in group.texts if _english(code) or among(code, languages)), key=_order)
        if len(kept) >= 2:
            texts, places = ({code: by_code[code] for code in kept} for by_code in (group.texts, group.places))
            yield Translations(group.name, texts, places)


def _own(data: Path, task: str) -> Iterator[Translations]:
    for number, group in retrieval.read_groups(data, task=task):
        firsts = dict(reversed(list(zip(group.langs, group.texts, strict=True))))
        yield Translations(units_of(group.texts), firsts, dict.fromkeys(firsts, retrieval.origin(data, number)))


def _aligned(data: Path, source: str, task: str, languages: Sequence[str]) -> Iterator[Translations]:
    texts, where = _BY_NAME[source], f"{task}, set {source}"
    found = texts.find(data, where=where, languages=languages)
    # TICO-19 has an English for each partner, a few words apart: the first of them stands for all.
    files = {code: texts.files(found, code, partner=min(found[code]), where=where) for code in found}
    tables = {code: texts.read(files[code], where=f"{where}, language {code}") for code in found}
    first, *others = [*tables] or [""]
    for code in others:
        both = (tables[first], tables[code])
        texts.align(both, files=(files[first], files[code]), where=f"{where}, languages {first} and {code}")
    places = {code: texts.origins(files[code], table) for code, table in tables.items()}
    for number in tables.get(first, {}):
        sentences = {code: table[number] for code, table in tables.items()}
        yield Translations(f"{source} {number}", sentences, {code: places[code][number] for code in tables})
