"""Units: the entries of an index, each with an id and the sentences that mean the same; sentences from arguments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import groupby, islice, repeat

from isoglot.core.errors import CorpusError, SearchError, quote
from isoglot.data.groups import plain_cell
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.index.store import Sentence
from isoglot.model.base import readable

COLUMNS = ("languages", "translations", "translation_languages", "ids")
_NO_ID = (bool, float, bytes, list, dict, type(None))  # types whose text is not an id
_TYPES = {"id": object, "text": str, "translation": str | None, "language": str | None,
          "translation_language": str | None}  # fmt: skip
_Column = str | Iterable[str | None] | None
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
        yield Unit(key, tuple(sides.values()), digest_content(sides.values()))


def digest_content(sentences: Iterable[Sentence]) -> int:
    """The `content` of a unit of these sentences."""
    sides = {(one.language, one.text) for one in sentences}
    sides |= {(one.translation_language, one.translation) for one in sentences if one.translation is not None}
    return int.from_bytes(_digest(sorted(sides)), "big") >> 1  # SQLite's integers have a sign


def _digest(rows: Sequence[Sequence[str]]) -> bytes:
    return sha256(json.dumps(rows).encode()).digest()[:8]


def make_sentences(sentences: Iterable[str | Sentence], *columns: _Column) -> Iterator[Sentence]:
    """Sentences with `COLUMNS`, each of which is None, parallel to the sentences, or one value for all; blank ones are
    left out.
    """
    parallel = {
        name: repeat(values) if isinstance(values, str) else iter(values)
        for name, values in zip(COLUMNS, columns, strict=True)
        if values is not None
    }
    missing = object()
    for at, text in enumerate(sentences):
        row = {name: plain_cell(next(values, missing)) for name, values in parallel.items()}
        if short := [name for name, value in row.items() if value is missing]:
            raise ValueError(f"{short[0]} has only {at} entries; pass one for each sentence")
        if isinstance(text, Sentence):
            if ignored := [name for name, value in row.items() if value is not None]:
                raise ValueError(f"sentences[{at}] is a Sentence, with its own {ignored[0]}; leave it out")
            one = clean(text, at)
        elif isinstance(text, str):
            translation = row.get("translations")
            other = row.get("translation_languages") if translation is not None else UNKNOWN
            one = clean(Sentence(row.get("ids", ""), text, row.get("languages"), translation, other), at)  # type: ignore[arg-type]
        else:
            raise TypeError(f"sentences[{at}] is {quote(text)}, a {type(text).__name__}; pass strings")
        if one.text.strip():
            yield one if one.id else identify([one])[0]
    for name, values in parallel.items():
        if not isinstance(values, repeat) and next(values, missing) is not missing:
            raise ValueError(f"{name} has more entries than there are sentences; pass one for each")


def clean(sentence: Sentence, at: int) -> Sentence:
    """The sentence with canonical language codes, `und` for None, and without lone surrogates, which SQLite rejects.

    Raises `TypeError` for values of other types and `CorpusError` for an unknown language; both name the place `at`.
    """
    for name, kinds in _TYPES.items():
        value = getattr(sentence, name)
        if isinstance(value, _NO_ID) if name == "id" else not isinstance(value, kinds):
            raise TypeError(f"sentences[{at}]: the {name} is {quote(value)}, a {type(value).__name__}; pass a string")
    languages = (sentence.language, sentence.translation_language)
    try:
        codes = [UNKNOWN if code is None else canonical(code) for code in languages]
    except CorpusError as error:
        raise CorpusError(str(error), file=f"sentences[{at}]") from None
    text = readable(sentence.translation or "")
    translation, code = (text, codes[1]) if text.strip() else (None, UNKNOWN)
    return Sentence(readable(str(sentence.id)), readable(sentence.text), codes[0], translation, code)
