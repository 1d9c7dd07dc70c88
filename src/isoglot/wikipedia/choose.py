"""From parsed articles to the training set: frequency cut, hard negatives, caps, sample, files.

There are three passes over the pages: count links, draw the sample, write it. Memory holds a count for each
linked entity, the types of those above the cut, and the numbers of the sample; never the text.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.errors import RecipeError
from isoglot.wikipedia.negatives import candidates, hard, members
from isoglot.wikipedia.sample import Sample, number_of
from isoglot.wikipedia.shards import read_shards
from isoglot.wikipedia.tables import has_types, labels_of, types_of
from isoglot.wikipedia.titles import key_of

SENTENCES, ENTITIES, REPORT = "sentences.jsonl", "entities.tsv", "report.json"
ONE_LANGUAGE, EACH_LANGUAGE = 1_000_000, 50_000  # instances sampled in the paper's two settings


@dataclass(frozen=True, slots=True)
class Choice:
    """The settings of the sample; the defaults are the paper's.

    `min_links`: entities linked more often are kept. `count_language`: count links of this Wikipedia only.
    `all_pages`: also use pages whose own entity was cut. `keep_lonely`: also keep instances without hard negatives.
    `candidates`: entities drawn per type. `share`: maximum instances per entity and language. `size`: instances per
    language; None: a million for one language, 50,000 each for several. `seed`: random seed.
    """

    min_links: int = 10
    count_language: str | None = None
    all_pages: bool = False
    keep_lonely: bool = False
    candidates: int = 10
    share: int = 10_000
    size: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """The articles read from one dump: its Wikipedia, language code and folder of shards."""

    wiki: str
    lang: str
    folder: Path


@dataclass(frozen=True, slots=True)
class _Instance:
    number: int
    entity: str
    hard: list[str]
    text: str
    start: int
    end: int


def write_choice(
    parts: list[Part], tables: sqlite3.Connection, output: Path, choice: Choice, progress: Callable[[str], None]
) -> dict[str, Any]:
    """Write the sentences and entities into the folder and return the counts. Raises `RecipeError`."""
    progress("counting links")
    counts = _link_counts(parts, choice.count_language)
    vocabulary = {entity: row for row, entity in enumerate(sorted(e for e in counts if counts[e] > choice.min_links))}
    met: dict[str, Counter[str]] = defaultdict(Counter)
    rule = _Rule(vocabulary, types_of(tables, vocabulary), choice, typed=has_types(tables))
    progress("drawing the sample")
    languages = sorted({part.lang for part in parts})
    size = choice.size if choice.size is not None else ONE_LANGUAGE if len(languages) == 1 else EACH_LANGUAGE
    samples = {lang: Sample(size, share=choice.share) for lang in languages}
    for part, _, instance in _instances(parts, rule, met):
        samples[part.lang].add(instance.number, vocabulary[instance.entity])
    progress("writing the sentences")
    wanted = {lang: set(sample.numbers().tolist()) for lang, sample in samples.items()}
    written = {lang: len(numbers) for lang, numbers in wanted.items()}
    used = _write_sentences(output / SENTENCES, parts, rule, wanted)
    _write_entities(output / ENTITIES, used, counts, labels_of(tables, used))
    return {
        "entities linked": len(counts),
        "entities above the cut": len(vocabulary),
        "entities written": len(used),
        "instances": {lang: {**dict(sorted(met[lang].items())), "written": written[lang]} for lang in languages},
    }


class _Rule:
    """Which links are instances, and with which hard negatives."""

    def __init__(
        self, vocabulary: Collection[str], types: Mapping[str, tuple[str, ...]], choice: Choice, *, typed: bool
    ) -> None:
        of_type = members(types)
        self.vocabulary, self.choice, self.typed = vocabulary, choice, typed

        @lru_cache(maxsize=1 << 16)
        def drawn(entity: str) -> tuple[str, ...]:
            return candidates(entity, types, of_type=of_type, seed=choice.seed, size=choice.candidates)

        self.drawn = drawn

    def instances(self, part: Part, record: dict[str, Any], met: Counter[str]) -> Iterator[_Instance]:
        """Those of one page."""
        if not self.choice.all_pages and record["own"] not in self.vocabulary:
            met["on pages below the cut"] += sum(len(places) for _, places in record["sentences"])
            return
        linked = frozenset(record["linked"])
        for text, places in record["sentences"]:
            for start, end, entity in places:
                if entity not in self.vocabulary:
                    met["entity below the cut"] += 1
                    continue
                chosen = hard(self.drawn(entity), linked)
                if self.typed and not chosen and not self.choice.keep_lonely:
                    met["without hard negative"] += 1
                    continue
                met["eligible"] += 1
                number = number_of(self.choice.seed, part.wiki, record["page"], text, start)
                yield _Instance(number, entity, chosen, text, start, end)


def _records(parts: list[Part]) -> Iterator[tuple[Part, dict[str, Any]]]:
    for part in parts:
        for line in read_shards(part.folder):
            record = json.loads(line)
            if "counts" not in record:
                yield part, record


def _instances(
    parts: list[Part], rule: _Rule, met: Mapping[str, Counter[str]]
) -> Iterator[tuple[Part, dict[str, Any], _Instance]]:
    for part, record in _records(parts):
        for instance in rule.instances(part, record, met[part.lang]):
            yield part, record, instance


def _link_counts(parts: list[Part], language: str | None) -> Counter[str]:
    counted = [part for part in parts if language is None or key_of(part.wiki) == key_of(language)]
    if not counted:
        have = ", ".join(sorted({part.wiki for part in parts}))
        raise RecipeError(f"count_language: no dump of {language!r} was passed; choose one of: {have}")
    counts: Counter[str] = Counter()
    for _, record in _records(counted):
        counts.update(record["links"])
    return counts


def _write_sentences(path: Path, parts: list[Part], rule: _Rule, wanted: Mapping[str, set[int]]) -> set[str]:
    used: set[str] = set()
    with atomic_write(path) as file:
        for part, record, one in _instances(parts, rule, defaultdict(Counter)):
            if one.number not in wanted[part.lang]:
                continue
            wanted[part.lang].discard(one.number)
            used.update([one.entity, *one.hard])
            row: dict[str, Any] = {"text": one.text, "lang": part.lang, "entity": one.entity, "hard": one.hard}
            row |= {"page": record["page"], "start": one.start, "end": one.end}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return used


def _write_entities(path: Path, used: set[str], counts: Counter[str], labels: Mapping[str, str]) -> None:
    with atomic_write(path) as file:
        for entity in sorted(used, key=lambda one: (-counts[one], one)):
            label = " ".join(labels.get(entity, "").split())
            file.write(f"{entity}\t{counts[entity]}\t{label}\n")
