"""Tokenises texts word by word and remembers the words, for tokenizers whose pieces never cross a space.

Most words of a text were seen before, and to look up a word is far faster than to cut it. That the ids are those of the
tokenizer follows from its description: its normalizer changes each character alone or with the marks after it, or white
space into one space, and it cuts before every space, so that the first piece of a word, and no other, begins with the
sign for a space. Words with signs that become a space depend on their neighbours, and so do words with a special token:
texts with such words, with two spaces in a row, or with very long words are left to the tokenizer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import repeat
from typing import Any
from unicodedata import normalize
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from isoglot.data.tokens import Tokens, concatenate
from isoglot.model.tokenizer import SPACE, SPACES, SPLITS, suspend_padding, tokenize_rows

_FEWEST = 64  # texts; fewer are left to the tokenizer, since the first look at its vocabulary takes longer
_BLOCK = 4_096  # texts at a time
_MOST = 1 << 18  # remembered words, typically 50 MB and at most 120; when there are more, all are forgotten
_LONGEST = 24  # characters of a remembered word: a sentence without spaces is seldom seen again
_LINE = 64  # new words that are tokenised as one text
_WHOLE = 1 << 31  # a length that cuts no text
_NORMALIZERS = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase", "Strip", None}


def tokenize(tokenizer: Tokenizer, texts: Sequence[str], *, max_length: int) -> Tokens:
    """The same as `tokenize_rows` without special tokens, faster where words occur again."""
    if len(texts) < _FEWEST:
        return tokenize_rows(tokenizer, texts, max_length=max_length)
    parts = []
    for start in range(0, len(texts), _BLOCK):
        block = texts[start : start + _BLOCK]
        tokens, is_odd = _look_up(tokenizer, block, max_length)
        if is_odd.any():
            odd = tokenize_rows(tokenizer, [block[row] for row in is_odd.nonzero()[0].tolist()], max_length=max_length)
            order = np.argsort(np.argsort(is_odd, kind="stable"), kind="stable")
            tokens = concatenate([tokens, odd]).select(order)
        parts.append(tokens)
    return concatenate(parts)


def _look_up(tokenizer: Tokenizer, texts: Sequence[str], max_length: int) -> tuple[Tokens, NDArray[np.bool_]]:
    """The ids of the texts whose words are all remembered, and for every text whether it is not one of these."""
    with suspend_padding(tokenizer, _WHOLE):  # one thread at a time, and none during a fork
        steps = (tokenizer.normalizer, tokenizer.pre_tokenizer)  # what may be changed in a tokenizer that is in use
        description = (*(step and step.__getstate__() for step in steps), tokenizer.get_vocab_size())
        memory = _memories.get(tokenizer)
        if memory is None or memory.description != description:
            memory = _memories[tokenizer] = _Memory(tokenizer, description)
        if not memory.is_possible:
            return Tokens.empty(), np.ones(len(texts), bool)
        counts = np.fromiter((text.count(" ") + 1 for text in texts), np.int64, len(texts))
        numbers = memory.numbers(tokenizer, " ".join(texts).split(" "))
        starts = counts.cumsum() - counts
        is_odd = np.minimum.reduceat(numbers, starts) < 0
        if is_odd.any():
            numbers, counts = numbers[np.repeat(~is_odd, counts)], counts[~is_odd]
        words = memory.words.select(numbers)
    if not len(counts):
        return Tokens.empty(), is_odd
    lengths = np.add.reduceat(words.lengths, counts.cumsum() - counts)
    tokens = Tokens(words.ids, lengths)
    if lengths.max() > max_length:
        place = np.arange(len(tokens.ids)) - np.repeat(tokens.starts, lengths)
        tokens = Tokens(tokens.ids[place < max_length], np.minimum(lengths, max_length))
    return tokens, is_odd


class _Memory:
    """The words that a tokenizer, described by `description`, has cut, and their ids. Its caller holds the lock."""

    def __init__(self, tokenizer: Tokenizer, description: tuple[Any, ...]) -> None:
        self.description, self.is_possible = description, _never_crosses(tokenizer)
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self.odd = re.compile("|".join([r"\s", SPACE, "[\ud800-\udfff]", *map(re.escape, added)]))
        self.begins = np.zeros(0, bool)  # which pieces begin a word
        if self.is_possible:
            vocabulary = tokenizer.get_vocab()
            self.begins = np.zeros(max(vocabulary.values(), default=0) + 1, bool)
            self.begins[[number for piece, number in vocabulary.items() if piece.startswith(SPACE)]] = True
        self.forget()

    def forget(self) -> None:
        self.places: dict[str, int] = {}
        self.words = Tokens.empty()

    def numbers(self, tokenizer: Tokenizer, words: list[str]) -> NDArray[np.int64]:
        """The place of each word among those that are remembered, which may have been learnt just now, or -1."""
        places = self._find_places(words)
        missing = (places < 0).nonzero()[0].tolist()
        new = list({word for place in missing if self._can_be_learnt(word := words[place])})
        if self.places and len(self.places) + len(new) > _MOST:
            self.forget()
            return self.numbers(tokenizer, words)
        if new:
            self._learn(tokenizer, new[:_MOST])
            places[missing] = self._find_places([words[place] for place in missing])
        return places

    def _find_places(self, words: list[str]) -> NDArray[np.int64]:
        return np.fromiter(map(self.places.get, words, repeat(-1)), np.int64, len(words))

    def _can_be_learnt(self, word: str) -> bool:
        if not word or len(word) > _LONGEST or self.odd.search(word):
            return False
        return word.isascii() or not self.odd.search(normalize("NFKC", word))

    def _learn(self, tokenizer: Tokenizer, words: list[str]) -> None:
        lines = [words[start : start + _LINE] for start in range(0, len(words), _LINE)]
        try:
            encodings = tokenizer.encode_batch_fast([" ".join(line) for line in lines], add_special_tokens=False)
        except Exception:  # the library's class for all errors: `tokenize_rows` meets it again, and reports it
            return
        parts, learnt = [self.words], list[str]()
        for line, encoding in zip(lines, encodings, strict=True):
            ids = np.array(encoding.ids, np.int64)
            begins = self.begins[ids].nonzero()[0]
            if len(begins) == len(line) and begins[0] == 0:  # else a word has no piece that begins with a space
                parts.append(Tokens(ids, np.diff(begins, append=len(ids))))
                learnt += line
        self.places.update(zip(learnt, range(len(self.places), len(self.places) + len(learnt)), strict=True))
        self.words = concatenate(parts)


_memories: WeakKeyDictionary[Tokenizer, _Memory] = WeakKeyDictionary()  # used under the tokenizer's lock


def _never_crosses(tokenizer: Tokenizer) -> bool:
    """Whether the ids of a text are those of its words, by the description of the tokenizer."""
    described: list[dict[str, Any]] = [
        {"type": None} if step is None else json.loads(step.__getstate__())
        for step in (tokenizer.normalizer, tokenizer.pre_tokenizer)
    ]
    normalizer, pre = described
    steps = pre.get("pretokenizers", [pre])
    metaspace = {key: steps[0].get(key) for key in ("type", "replacement", "prepend_scheme")} if steps else {}
    splits = [step.get("pattern", {}).get("Regex") in SPLITS and step["behavior"] == "Isolated" for step in steps[1:]]
    return (
        all(
            step["type"] in _NORMALIZERS or (step.get("pattern"), step.get("content")) == ({"Regex": SPACES}, " ")
            for step in normalizer.get("normalizers", [normalizer])
        )
        and metaspace == {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"}
        and all(splits)
        and (steps[0]["split"] or bool(splits))
        and not any(
            token.normalized or token.lstrip or token.rstrip or token.single_word or " " in token.content
            for token in tokenizer.get_added_tokens_decoder().values()
        )
    )
