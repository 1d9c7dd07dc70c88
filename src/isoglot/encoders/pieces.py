"""Which pieces of a tokenizer a corpus needs, and the tokenizer with no others.

A tokenizer is read and written as its tokenizer.json. What is special here: pieces are chosen so that text of the
corpus *must* be cut as before; the argument stands beside each of the three algorithms.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from isoglot.encoders.tokenizer import ragged

KINDS = ("Unigram", "WordPiece", "BPE")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # what byte fallback falls back to
_BLOCK = 16_384  # texts tokenised at a time
_WHOLE = 1 << 40  # tokens: nothing is cut off, since a later piece may decide where an earlier one ends


def kind_of(tokenizer: Tokenizer) -> str:
    """Unigram, WordPiece, BPE or WordLevel."""
    return str(type(tokenizer.model).__name__)


def used(tokenizer: Tokenizer, texts: Iterable[str], *, minimum: int = 1) -> tuple[set[int], int]:
    """The ids that the texts need, each met at least `minimum` times, and the number of texts that have any.

    **Unigram** takes the path of greatest score. Without pieces that are on no winning path, rivals score what they
    did or are gone. See `needed` for the one exception.
    **WordPiece** takes the longest piece that fits; without others, it is still there and still the longest. But a
    word is unknown as a whole when nothing fits its rest, and the pieces before this rest are not seen: without them,
    a shorter one could lead to an end. They are found by walking as it does, and needed too.
    **BPE**: see `needed`.
    """
    model = json.loads(tokenizer.to_str())["model"]
    unknown = model["vocab"].get(model["unk_token"]) if model["type"] == "WordPiece" else None
    counts, words, total = np.zeros(0, np.int64), Counter[str](), 0
    stream = iter(texts)
    while block := list(islice(stream, _BLOCK)):
        tokens = ragged(tokenizer, block, max_length=_WHOLE)
        ids, lengths = tokens.ids.numpy(), tokens.lengths.numpy()
        total += int((lengths > 0).sum())
        seen = np.bincount(ids, minlength=len(counts))
        seen[: len(counts)] += counts
        counts = seen
        if unknown is not None:
            for row in np.unique(np.repeat(np.arange(len(block)), lengths)[ids == unknown]):
                words.update(_unknown_words(tokenizer, block[row], unknown))
    walked = (_walk(word, model) for word, times in words.items() if times >= minimum)
    return set(np.flatnonzero(counts >= minimum).tolist()).union(*walked), total


def _unknown_words(tokenizer: Tokenizer, text: str, unknown: int) -> Iterator[str]:
    """The words of a text, as the model meets them, that are the unknown token."""
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # as `ragged` reads it
    encoding = tokenizer.encode(text, add_special_tokens=False)
    for number, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
        if number == unknown:
            word = text[start:stop]
            yield from (tokenizer.normalizer.normalize_str(word) if tokenizer.normalizer else word).split()


def _walk(word: str, model: Mapping[str, Any]) -> list[int]:
    """The longest pieces from the front of a word, up to where none fits."""
    found, at = [], 0
    while at < len(word):
        start = model["continuing_subword_prefix"] if at else ""
        stops = (stop for stop in range(len(word), at, -1) if start + word[at:stop] in model["vocab"])
        if (stop := next(stops, None)) is None:
            break
        found.append(model["vocab"][start + word[at:stop]])
        at = stop
    return found


def needed(ids: Set[int], state: Mapping[str, Any], *, keep_characters: bool) -> set[int]:
    """These ids, and those that the tokenizer.json `state` cannot do without.

    **Special and added tokens**, all. **Characters**, if they are kept: pieces of one character or byte.
    **Unigram** gives an unknown character the least score of the vocabulary minus 10. The piece of least score is kept,
    so this stays what it was, and stays below the score of a character's own piece that is gone: no rival gains.
    **BPE** makes, again and again, the merge of least rank that fits. All that it made of a covered word is part of a
    piece in the end, so pieces are kept with everything that merges to them, and merges in their order. At each step
    the merge that was the least of all is there still, and the least of fewer.
    """
    model = state["model"]
    out: set[int] = {*ids} | {token["id"] for token in state["added_tokens"]} | set(_around(state["post_processor"]))
    if model["type"] == "Unigram":
        vocabulary = {piece: number for number, (piece, _) in enumerate(model["vocab"])}
        out.add(min(range(len(model["vocab"])), key=lambda number: model["vocab"][number][1]))
        unknown = model["unk_id"]
    else:
        vocabulary = model["vocab"]
        unknown = vocabulary.get(model["unk_token"])
    if unknown is not None:
        out.add(unknown)
    if keep_characters:
        out |= {number for piece, number in vocabulary.items() if _single(piece, model)}
    return _closed(out, model) if model["type"] == "BPE" else out


def _single(piece: str, model: Mapping[str, Any]) -> bool:
    """Whether a piece is one character, at the beginning of a word or inside, or one byte."""
    prefix, suffix = (model.get(name) or "" for name in ("continuing_subword_prefix", "end_of_word_suffix"))
    return len(piece.removeprefix(prefix).removesuffix(suffix)) <= 1 or bool(_BYTE.fullmatch(piece))


def _product(left: str, right: str, model: Mapping[str, Any]) -> str:
    """The piece that a merge makes."""
    return left + right[len(model["continuing_subword_prefix"] or "") :]


def _closed(ids: Set[int], model: Mapping[str, Any]) -> set[int]:
    """These ids and those of all pieces that any merge makes one of them from."""
    parts: dict[int, set[int]] = {}
    for left, right in model["merges"]:
        made = model["vocab"][_product(left, right, model)]
        parts.setdefault(made, set()).update((model["vocab"][left], model["vocab"][right]))
    closed, waiting = set(ids), [*ids]
    while waiting:
        new = parts.get(waiting.pop(), set()) - closed
        closed |= new
        waiting += new
    return closed


def _around(processor: Mapping[str, Any] | None) -> Iterator[int]:
    """Ids that a post-processor puts around a sentence."""
    for part in (processor or {}).get("processors", [processor or {}]):
        yield from (number for token in part.get("special_tokens", {}).values() for number in token["ids"])
        yield from (part[name][1] for name in ("sep", "cls") if name in part)


def cut(state: Mapping[str, Any], new: Mapping[int, int]) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the pieces of `new`, old ids to new, and no others.

    Padding and truncation are left out: they are the encoder's affair, and set when it is saved.
    """
    model = {**state["model"]}
    if model["type"] == "Unigram":
        model["vocab"] = [entry for number, entry in enumerate(model["vocab"]) if number in new]
        model["unk_id"] = new.get(model["unk_id"])
    else:
        model["vocab"] = {piece: new[number] for piece, number in model["vocab"].items() if number in new}
    if model["type"] == "BPE":
        there = model["vocab"].keys()
        model["merges"] = [(a, b) for a, b in model["merges"] if {a, b, _product(a, b, model)} <= there]
    added = [{**token, "id": new[token["id"]]} for token in state["added_tokens"]]
    around = _renumbered(state["post_processor"], new)
    whole = {
        **state,
        "padding": None,
        "truncation": None,
        "model": model,
        "added_tokens": added,
        "post_processor": around,
    }
    return Tokenizer.from_str(json.dumps(whole))


def _renumbered(processor: Mapping[str, Any] | None, new: Mapping[int, int]) -> dict[str, Any] | None:
    """A post-processor, or a sequence of them, with new ids for `_around`."""
    if processor is None:
        return None
    out = dict(processor)
    if "processors" in out:
        out["processors"] = [_renumbered(part, new) for part in out["processors"]]
    if "special_tokens" in out:
        tokens = out["special_tokens"].items()
        out["special_tokens"] = {name: {**token, "ids": [new[i] for i in token["ids"]]} for name, token in tokens}
    for name in {"sep", "cls"} & out.keys():
        out[name] = [out[name][0], new[out[name][1]]]
    return out
