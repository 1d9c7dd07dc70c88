"""Builds the training set from parsed articles: frequency cut, hard negatives, caps, sample, files.

There are three passes over the pages: count links, draw the sample, write it. Memory holds a count for each
linked entity, the types of those above the cut, and the numbers of the sample; never the text.

Hard negatives are entities of the same type that are not linked on the page (Nishikawa et al. 2022, EASE, section 3.2),
with the numbers of its code: one of the entity's types at random, at most ten entities of it at random, both once for
each entity; then, for each sentence, without those that its page links anywhere.

Deviation: types come with the entity itself, as titles do; the published code looks its types up by the English label,
which several entities may share.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import NonNegativeInt, PositiveInt, check_fields
from isoglot.core.errors import RecipeError
from isoglot.data.files import atomic_write
from isoglot.data.readers.entities import SENTENCES, TABLE
from isoglot.wikipedia.dump import Dump
from isoglot.wikipedia.entities import find_labels, find_types, has_types
from isoglot.wikipedia.shards import read_shards
from isoglot.wikipedia.titles import make_key

REPORT = "report.json"
ONE_LANGUAGE, EACH_LANGUAGE = 1_000_000, 50_000  # instances sampled in the paper's two settings
_SLACK = 1 << 18  # instances beyond twice the sample that are gathered before a cut

Part = tuple[Dump, Path]  # a dump and the folder of its articles in shards
Draw = Callable[[str], tuple[str, ...]]  # the hard negative entities of an entity


@check_fields
@dataclass(frozen=True, slots=True)
class Choice:
    """The settings of the sample; the defaults are the paper's.

    min_links       minimum number of links per entity, exclusive
    count_language  count links only in this Wikipedia, such as en; None: all
    all_pages       include pages of removed entities
    keep_lonely     keep sentences without hard negatives
    candidates      number of hard negative entities per sentence, of the same type
    share           maximum sentences per entity and language
    size            maximum sentences per language; None: 1,000,000 for one language, 50,000 for several
    seed            random seed for hard negatives and samples
    """

    min_links: NonNegativeInt = 10
    count_language: str | None = None
    all_pages: bool = False
    keep_lonely: bool = False
    candidates: PositiveInt = 10
    share: PositiveInt = 10_000
    size: PositiveInt | None = None
    seed: NonNegativeInt = 0


def write_choice(
    parts: Sequence[Part], tables: sqlite3.Connection, output: Path, choice: Choice, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Write the sentences and entities into the folder and return the counts. Raises `RecipeError`."""
    progress("counting links")
    counts = _link_counts(parts, choice.count_language)
    vocabulary = {entity: row for row, entity in enumerate(sorted(e for e in counts if counts[e] > choice.min_links))}
    types = find_types(tables, vocabulary)
    draw = partial(candidates, types=types, of_type=members(types), seed=choice.seed, size=choice.candidates)
    choice = replace(choice, keep_lonely=choice.keep_lonely or not has_types(tables))
    instances = partial(_instances, parts, vocabulary, lru_cache(1 << 16)(draw), choice)

    progress("drawing the sample")
    languages = sorted({dump.lang for dump, _ in parts})
    size = choice.size if choice.size is not None else ONE_LANGUAGE if len(languages) == 1 else EACH_LANGUAGE
    samples = {lang: Sample(size, share=choice.share) for lang in languages}
    met: dict[str, Counter[str]] = defaultdict(Counter)
    for number, row in instances(met):
        samples[row["lang"]].add(number, vocabulary[row["entity"]])

    progress("writing the sentences")
    wanted = {lang: set(sample.numbers().tolist()) for lang, sample in samples.items()}
    written = {lang: len(numbers) for lang, numbers in wanted.items()}
    used: set[str] = set()
    with atomic_write(output / SENTENCES) as file:
        for number, row in instances(defaultdict(Counter)):
            if number in wanted[row["lang"]]:
                wanted[row["lang"]].discard(number)  # an article in two dumps is read twice
                used.update([row["entity"], *row["hard"]])
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    labels = find_labels(tables, used)
    with atomic_write(output / TABLE) as file:
        for entity in sorted(used, key=lambda one: (-counts[one], one)):
            file.write(f"{entity}\t{counts[entity]}\t{' '.join(labels.get(entity, '').split())}\n")
    return {
        "entities linked": len(counts),
        "entities above the cut": len(vocabulary),
        "entities written": len(used),
        "instances": {lang: {**dict(sorted(met[lang].items())), "written": written[lang]} for lang in languages},
    }


def _instances(
    parts: Sequence[Part], vocabulary: Collection[str], drawn: Draw, choice: Choice, met: Mapping[str, Counter[str]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The random number and the row of each instance; `met` counts them by language, and those that are none."""
    for dump, record in _records(parts):
        counts = met[dump.lang]
        if not choice.all_pages and record["own"] not in vocabulary:
            counts["on pages below the cut"] += sum(len(places) for _, places in record["sentences"])
            continue
        linked, page = frozenset(record["linked"]), record["page"]
        for text, start, end, entity in ((text, *place) for text, places in record["sentences"] for place in places):
            if entity not in vocabulary:
                counts["entity below the cut"] += 1
                continue
            hard = [one for one in drawn(entity) if one not in linked]
            if not hard and not choice.keep_lonely:
                counts["without hard negative"] += 1
                continue
            counts["eligible"] += 1
            row = {"text": text, "lang": dump.lang, "entity": entity, "hard": hard, "page": page}
            yield draw_number(choice.seed, dump.names.wiki, page, text, start), {**row, "start": start, "end": end}


def _records(parts: Sequence[Part]) -> Iterator[tuple[Dump, dict[str, Any]]]:
    for dump, folder in parts:
        for line in read_shards(folder):
            record = json.loads(line)
            if "counts" not in record:
                yield dump, record


def _link_counts(parts: Sequence[Part], language: str | None) -> Counter[str]:
    counted = [part for part in parts if language is None or make_key(part[0].names.wiki) == make_key(language)]
    if not counted:
        have = ", ".join(sorted({dump.names.wiki for dump, _ in parts}))
        raise RecipeError(f"count_language: no dump of {language!r} was passed; choose one of: {have}")
    counts: Counter[str] = Counter()
    for _, record in _records(counted):
        counts.update(record["links"])
    return counts


def members(types: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Entities of each type in ascending order, from the types of each entity."""
    groups: dict[str, list[str]] = {}
    for entity in sorted(types):
        for kind in types[entity]:
            groups.setdefault(kind, []).append(entity)
    return groups


def candidates(
    entity: str, types: Mapping[str, Sequence[str]], *, of_type: Mapping[str, Sequence[str]], seed: int, size: int = 10
) -> tuple[str, ...]:
    """At most `size` entities of one type of the entity, without itself; none if it has no type.

    A function of the seed and the entity: it does not matter in which order, or where, entities are requested.
    """
    kinds = types.get(entity, ())
    if not kinds:
        return ()
    draw = Random(_hash(seed, entity))
    same = of_type[kinds[draw.randrange(len(kinds))]]
    return tuple(one for one in draw.sample(same, min(size, len(same))) if one != entity)


def draw_number(seed: int, *place: object) -> int:
    """The random number of an instance, 63 bits, from its place: Wikipedia, page, text, start of the link."""
    return _hash(seed, *place) >> 1


def _hash(*parts: object) -> int:
    digest = hashlib.blake2b("\t".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class Sample:
    """A random sample in one pass: at most `size` instances, at most `share` of one entity.

    Instances are taken in the order of their random numbers. One that is excluded from the sample of some instances is
    also excluded from that of any superset, so the arrays are cut back whenever they have grown, and the memory does
    not depend on the number of instances.
    """

    def __init__(self, size: int, *, share: int) -> None:
        self._size, self._share = size, share
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._entities: NDArray[np.int64] = np.empty(0, np.int64)
        self._new: list[tuple[int, int]] = []

    def add(self, number: int, entity: int) -> None:
        """An instance by its random number, and the row of its entity."""
        self._new.append((number, entity))
        if len(self._new) > self._size + _SLACK:
            self._cut()

    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the instances kept, ascending."""
        self._cut()
        return self._numbers

    def _cut(self) -> None:
        new = np.asarray(self._new, np.int64).reshape(-1, 2)
        self._new = []
        numbers = np.concatenate([self._numbers, new[:, 0]])
        # An article in two dumps is read twice; its instances have the same numbers.
        numbers, first = np.unique(numbers, return_index=True)
        entities = np.concatenate([self._entities, new[:, 1]])[first]
        is_allowed = _rank(entities) < self._share
        self._numbers, self._entities = numbers[is_allowed][: self._size], entities[is_allowed][: self._size]


def _rank(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many equal values come before each value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)  # from the first of its equals
    return ranks
