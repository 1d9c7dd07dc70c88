r"""JSON lines: one object a line, in one of five shapes.

    {"eng": "Hello.", "deu": "Hallo.", "score": 1.2}                         translations; numbers become extras
    {"translation": {"en": "Hello.", "de": "Hallo."}}                        the same, as OPUS writes it
    {"texts": [...], "langs": [...], "key": "...", "hard_negatives": [...], "hard_langs": [...], "extras": {...}}
    {"query": "...", "pos": [...], "neg": [...]}   or   {"anchor": ..., "positive": ..., "negative": ...}
    {"text": "..."}

The third is a `Group` written out. The last two, and a `texts` without `langs`, are in the language of the option
`language`. A null or blank sentence is left out; an object without any text is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isoglot.data.files import json_object, read_lines
from isoglot.data.languages import UNKNOWN, canonical
from isoglot.data.numbers import fits, shown
from isoglot.data.records import Group
from isoglot.errors import CorpusError

_TRIPLETS = (("query", "pos", "neg"), ("anchor", "positive", "negative"))


def read_jsonl(path: str | Path, *, language: str = UNKNOWN) -> Iterator[Group]:
    """One group a line, from any of the shapes above, told apart by their names, which may differ between lines.

    Raises `CorpusError` for a line that is blank, no JSON object, of no known shape, names an unknown
    language, or holds a number that is not finite.
    """
    code = canonical(language, file=path)
    for number, text in read_lines(path):
        item = json_object(text, file=path, line=number)
        try:
            group = _group(item, code)
        except CorpusError as error:
            raise CorpusError(str(error), file=path, line=number) from None
        if not group.texts:
            raise CorpusError("holds no text in any language; remove the line", file=path, line=number)
        yield group


def _group(item: dict[str, Any], code: str) -> Group:
    if "texts" in item:
        return _written_out(item, code)
    for query, positive, negative in _TRIPLETS:
        if query in item and positive in item:
            texts = [*_sentences(item, query), *_sentences(item, positive)]
            negatives = _sentences(item, negative)
            return _same_language(texts, negatives, code)
    if "text" in item:
        return _same_language(_sentences(item, "text"), [], code)
    return _translations(_unnested(item))


def _unnested(item: dict[str, Any]) -> dict[str, Any]:
    if "translation" not in item:
        return item
    if not isinstance(item["translation"], dict):
        raise CorpusError("'translation' must hold an object of language and sentence")
    # Beside a translation stand ids and file names of all kinds; only the key and numbers mean something here.
    others = {name: value for name, value in item.items() if name == "key" or isinstance(value, (int, float))}
    return others | item["translation"]


def _same_language(texts: list[str], negatives: list[str], code: str) -> Group:
    texts, negatives = _not_blank(texts), _not_blank(negatives)
    return Group(tuple(texts), (code,) * len(texts), "", tuple(negatives), (code,) * len(negatives))


def _written_out(item: dict[str, Any], code: str) -> Group:
    texts, negatives = _sentences(item, "texts"), _sentences(item, "hard_negatives")
    known = {"texts", "langs", "key", "hard_negatives", "hard_langs", "extras"}
    if unknown := sorted(item.keys() - known):
        raise CorpusError(f"{unknown[0]!r} is not a part of a group; the parts are {', '.join(sorted(known))}")
    pairs = _with_languages(texts, item, "langs", code)
    hard = _with_languages(negatives, item, "hard_langs", code)
    return Group(
        tuple(text for text, _ in pairs),
        tuple(language for _, language in pairs),
        str(item.get("key") or ""),
        tuple(text for text, _ in hard),
        tuple(language for _, language in hard),
        _extras(item.get("extras") or {}),
    )


def _with_languages(texts: list[str], item: dict[str, Any], name: str, code: str) -> list[tuple[str, str]]:
    codes = _sentences(item, name) if item.get(name) is not None else [code] * len(texts)
    if len(codes) != len(texts):
        raise CorpusError(f"{len(texts)} sentences with {len(codes)} languages in {name!r}; each needs one")
    return [(text, canonical(language)) for text, language in zip(texts, codes, strict=True) if text.strip()]


def _translations(item: dict[str, Any]) -> Group:
    texts: list[tuple[str, str]] = []
    numbers: dict[str, float] = {}
    for name, value in item.items():
        if isinstance(value, (int, float)):
            numbers[name] = _number(value, name)
        elif isinstance(value, str) and name != "key":
            texts.append((value, canonical(name)))
        elif value is not None and name != "key":
            raise CorpusError(f"{name!r} holds a {type(value).__name__} where a sentence is expected")
    kept = [(text, language) for text, language in texts if text.strip()]
    sentences, languages = tuple(text for text, _ in kept), tuple(language for _, language in kept)
    return Group(sentences, languages, str(item.get("key") or ""), extras=numbers)


def _sentences(item: Mapping[str, Any], name: str) -> list[str]:
    value = item.get(name)
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(sentence, str) for sentence in found):
        raise CorpusError(f"{name!r} must hold a sentence or a list of sentences")
    return found


def _not_blank(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text.strip()]


def _extras(values: Any) -> dict[str, float | tuple[float, ...]]:
    if not isinstance(values, dict):
        raise CorpusError("'extras' must hold an object of name and number, or name and list of numbers")
    extras: dict[str, float | tuple[float, ...]] = {}
    for name, value in values.items():
        numbers = value if isinstance(value, list) else [value]
        if not all(isinstance(number, (int, float)) for number in numbers):
            raise CorpusError(f"the extra {name!r} must be a number or a list of numbers, not {value!r}")
        for number in numbers:
            _number(number, name)
        extras[name] = tuple(value) if isinstance(value, list) else value
    return extras


def _number(value: float, name: str) -> float:
    if not fits(value):
        problem = f"{name!r} holds {shown(str(value))}; a number must be finite in float32, or a whole one of 64 bits"
        raise CorpusError(problem)
    return value
