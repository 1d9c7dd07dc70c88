"""Units: the entries of an index, each with an id and the sentences that mean the same."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby, islice

from isoglot.core.errors import SearchError
from isoglot.index.store import Sentence

_MOST = 10_000  # sentences of a unit, which are in memory together


@dataclass(frozen=True, slots=True)
class Unit:
    """An entry of an index: its id and its sentences, none of which is there twice.

    `content` is a number that is the same for units with the same sentences and translations, whatever their ids.
    """

    id: str
    sentences: tuple[Sentence, ...]
    content: int


def identify(sentences: Sequence[Sentence], key: str | None = None) -> list[Sentence]:
    """The sentences of a unit with its id; without one it is a digest of what they contain, whatever their order."""
    if not key:
        rows = sorted([one.language, one.text, one.translation_language, one.translation or ""] for one in sentences)
        key = _digest(rows).hex()
    return [replace(one, id=key) for one in sentences]


def group(sentences: Iterable[Sentence]) -> Iterator[Unit]:
    """Sentences that follow each other and have one id are a unit; of equal ones the last counts.

    Raises `SearchError` for an id of more than 10,000 sentences.
    """
    for key, run in groupby(sentences, key=lambda one: one.id):
        sides = {(one.language, one.text): one for one in islice(run, _MOST)}
        if next(run, None) is not None:
            raise SearchError(f"the id {key!r} has more than {_MOST:,} sentences; each entry needs its own id")
        yield Unit(key, tuple(sides.values()), content_of(sides.values()))


def content_of(sentences: Iterable[Sentence]) -> int:
    """The `content` of a unit of these sentences."""
    sides = {(one.language, one.text) for one in sentences}
    sides |= {(one.translation_language, one.translation) for one in sentences if one.translation is not None}
    return int.from_bytes(_digest(sorted(sides)), "big") >> 1  # SQLite's integers have a sign


def _digest(rows: Sequence[Sequence[str]]) -> bytes:
    return sha256(json.dumps(rows).encode()).digest()[:8]
