"""Tokenises with sentencepiece what a tokenizer.json like that of XLM-R describes.

`tokenizers` keeps a node of a tree for every prefix of a piece: 190 MB for 170,000 pieces, half a second to build them.
sentencepiece needs 34 MB and half of the time, and tokenises three to nine times as fast. A folder may have its file,
`tokenizer.model`, beside tokenizer.json, which stays what other programs read, and what is trained with. Both give the
same ids; of 511,259 sentences in 240 languages 11 had two cuts of the same score, and got the other one.

They differ in one step. Both replace characters by a table, but `tokenizers` looks up whole letters with their marks,
or else single characters, and sentencepiece the longest sequence that the table has. Texts in which that may matter go
through the step of `tokenizers`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from isoglot.data.tokens import Tokens
from isoglot.model import configs, packed
from isoglot.model.tokenizer import SPACE, disable_extras, readable
from isoglot.model.wire import message, read_fields

FILE = "tokenizer.model"

_BLOCK = 16_384  # texts tokenised at a time
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3  # kinds of pieces
_UNIGRAM = 1
_AS_THEY_ARE = ((3, 0), (4, 0), (5, 0))  # settings for spaces: none is added, removed or marked
_ABSENT = (1 << 64) - 1  # -1 as a varint
_SPACES = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
_WORDS = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True}
_PLAIN = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)  # of tokens added to a vocabulary

# Characters that join the one before them, and of which the table may have a sequence: marks below U+0800, whose
# letters with marks have fewer than six bytes and so are looked up whole, and the second ones of compositions.
_JOINING = (
    "\r\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0600-\u061c\u064b-\u065f\u0670\u06d6-\u06ed\u070f\u0711\u0730-\u074a"
    "\u07a6-\u07b0\u07eb-\u07fd\u093c\u09bc\u09be\u09d7\u0a3c\u0b3c\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0c56\u0cc2\u0cd5\u0cd6"
    "\u0d3e\u0d57\u0dca\u0dcf\u0ddf\u0f72\u0f74\u0f80\u0fb5\u0fb7\u102e\u1100-\u11ff\u1b35\u3099\u309a\u314f-\u3163\ua960-\ua97c"
    "\ud7b0-\ud7fb\uff9e\uff9f\uffc2-\uffdc\U000110ba\U00011127\U0001133e\U00011357\U000114b0\U000114ba\U000114bd\U000115af\U00011930\U0001d165-\U0001d172"
)
# Blocks with other marks: those matter only behind a short character, with which they have fewer than six bytes.
_MARKS = (
    "\u0800-\u1fff\u200b-\u200f\u2028-\u202f\u2060-\u206f\u20d0-\u20ff\u302a-\u302f\ua66f-\uabff\ufb1e\ufe00-\ufe2f\ufeff"
    "\ufff0-\ufffb\U00010000-\U00011fff\U00016af0-\U00016fff\U0001bc9d-\U0001bca3\U0001d165-\U0001e9ff"
    "\U0001f3fb-\U0001f3ff\U000e0000-\U000e0fff"
)
_SEQUENCE = re.compile(f"[{_JOINING}]|[\\x00-\\x1f\\x21-\\u07ff][{_MARKS}]")
_SEVERAL = re.compile(" +")
_BEGINNING = re.compile(rb'(\{"version":"1\.0","truncation":)(?:null|\{[^{}]*\})(,"padding":null,)')


class PieceTokenizer:
    """The tokenizer of a folder with a `tokenizer.model`. Raises EncoderError for a damaged file."""

    def __init__(self, folder: Path) -> None:
        import sentencepiece

        self.folder = folder
        with configs.reading(folder / FILE):
            table, pieces = _split_table((folder / FILE).read_bytes())
            unchanged = message(3, (1, b"identity"), *_AS_THEY_ARE)
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=pieces + unchanged)
            named = message(1, (1, b"<unk>"), (3, _UNKNOWN))  # a model without it is refused
            changed = message(3, (2, table), *_AS_THEY_ARE)
            self._normalizer = sentencepiece.SentencePieceNormalizer(model_proto=named + changed)
        self._table, self._digests = table, dict[tuple[int, str], str]()
        count = self._processor.vocab_size()
        control = [number for number in range(count) if self._processor.is_control(number)]
        self._specials = {self._processor.id_to_piece(number): number for number in control}
        self._specials[self._processor.id_to_piece(self._processor.unk_id())] = self._processor.unk_id()
        self._special = re.compile(f"({'|'.join(map(re.escape, self._specials))})")

    def __reduce__(self) -> tuple[Any, ...]:
        return PieceTokenizer, (self.folder,)

    def __len__(self) -> int:
        """Number of pieces."""
        return int(self._processor.vocab_size())

    def number(self, piece: str) -> int | None:
        """The id of a special token."""
        return self._specials.get(piece)

    def tokenize(self, texts: Sequence[str], *, max_length: int) -> Tokens:
        """Ids of each text between those of the special tokens, at most `max_length` in all."""
        first, last = self._processor.bos_id(), self._processor.eos_id()
        rows: list[list[int]] = []
        for start in range(0, len(texts), _BLOCK):
            block = texts[start : start + _BLOCK]
            rows += self._rows([*map(readable, block)])
        room = max(0, max_length - 2)
        lengths = np.fromiter((min(len(row), room) + 2 for row in rows), np.int64, len(rows))
        ids = chain.from_iterable((first, *row[:room], last) for row in rows)
        return Tokens(np.fromiter(ids, np.int64, int(lengths.sum())), lengths)

    def _rows(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text, without special tokens but those that it contains."""
        parts = [self._split(text) for text in texts]
        words = self._words([part for split in parts for part in split[::2]])
        if len(words) == len(texts) and not any("<" in word for word in words):
            plain: list[list[int]] = self._processor.encode(words)
            return plain
        again = map(self._split, words)  # the table makes special tokens, too, such as of fullwidth letters
        parts = [_fill(split, again, lambda special: [special]) for split in parts]
        ids = iter(self._processor.encode([part for split in parts for part in split[::2]]))
        return [_fill(split, ids, lambda special: [self._specials[special]]) for split in parts]

    def _split(self, text: str) -> list[str]:
        """Parts of a text in turn with the special tokens between them."""
        return self._special.split(text) if "<" in text else [text]

    def _words(self, texts: Sequence[str]) -> list[str]:
        """The texts after the table, with a mark instead of the spaces before each word."""
        changed: list[str] = self._normalizer.normalize(list(texts))
        for place, text in enumerate(texts):
            if not text.isascii() and _SEQUENCE.search(text):
                changed[place] = self._by_letters.normalize_str(text)
        marked = (_SEVERAL.sub(SPACE, text) for text in changed)
        return [text if not text or text[0] == SPACE else SPACE + text for text in marked]

    @cached_property
    def _by_letters(self) -> Any:
        from tokenizers import normalizers

        return normalizers.Precompiled(self._table)

    @cached_property
    def backend(self) -> Any:
        """The same tokenizer as `tokenizers` has it, from tokenizer.json."""
        tokenizer = packed.read_tokenizer(self.folder)
        disable_extras(tokenizer)
        return tokenizer

    def digest(self, max_length: int, prompt: str) -> str:
        """That of `tokenizer.digest` for `backend`, which is not made for it."""
        key = max_length, prompt
        if key not in self._digests:
            truncation = {"direction": "Right", "max_length": max_length, "strategy": "LongestFirst", "stride": 0}
            content = packed.read_tokenizer_file(self.folder)
            beginning = _BEGINNING.match(content)
            if beginning is None:  # it has line ends, or pads: slower
                content = _compact(packed.read_description(self.folder) | {"truncation": None, "padding": None})
                beginning = _BEGINNING.match(content)
                assert beginning is not None
            checksum = hashlib.sha256(beginning[1] + _compact(truncation) + beginning[2])
            checksum.update(memoryview(content)[beginning.end() :])
            checksum.update(f"\0{prompt}".encode("utf-8", "surrogatepass"))
            self._digests[key] = checksum.hexdigest()
        return self._digests[key]


def _fill(split: list[str], plain: Iterator[list[Any]], read_special: Callable[[str], list[Any]]) -> list[Any]:
    """One list of what `plain` has for each text, and `read_special` gives for each special token between them."""
    return [*chain.from_iterable(read_special(part) if at % 2 else next(plain) for at, part in enumerate(split))]


def _compact(state: Mapping[str, Any]) -> bytes:
    """JSON as `tokenizers` writes it without line ends."""
    return json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode()


def write(folder: Path) -> bool:
    """Write the `tokenizer.model` of a folder's tokenizer, if it is one that sentencepiece can be given."""
    model = build(packed.read_description(folder))
    if model is not None:
        (folder / FILE).write_bytes(model)
    return model is not None


def build(state: Mapping[str, Any]) -> bytes | None:
    """The model for sentencepiece of a tokenizer.json; None if its steps are others than those of XLM-R.

    Its first field is the table of characters, which `PieceTokenizer` takes out of it.
    """
    model, vocabulary = state["model"], state["model"].get("vocab", ())
    steps = (state["normalizer"] or {}).get("normalizers", [{}])
    around = [next(iter(part.values()))["id"] for part in (state["post_processor"] or {}).get("single", [])]
    added = {token["id"]: token for token in state["added_tokens"]}
    if (
        (model["type"], model.get("byte_fallback")) != ("Unigram", False)
        or [step.get("type") for step in steps] != ["Precompiled", "Replace"]
        or steps[1] != _SPACES
        or state["pre_tokenizer"] != _WORDS
        or len(around) != 3
        or around[1] != "A"
        or any(token.items() & _PLAIN.items() != _PLAIN.items() for token in added.values())
        or any("<" not in token["content"] for token in added.values())
        or any(number >= len(vocabulary) for number in added)
        or any(SPACE in piece[1:] for piece, _ in vocabulary)
    ):
        return None
    numbers = {vocabulary[number][0]: number for number in added}
    kinds = dict.fromkeys(added, _CONTROL) | {model["unk_id"]: _UNKNOWN}
    if model["unk_id"] not in added or not {around[0], around[2]} <= numbers.keys():
        return None
    table = base64.b64decode(steps[0]["precompiled_charsmap"])
    ids = (40, model["unk_id"]), (41, numbers[around[0]]), (42, numbers[around[2]]), (43, _ABSENT)
    pieces = (
        message(1, (1, piece.encode()), (2, float(score)), (3, kinds.get(number, _NORMAL)))
        for number, (piece, score) in enumerate(vocabulary)
    )
    settings = message(2, (3, _UNIGRAM), *ids, (46, around[0].encode()), (47, around[2].encode()))
    return b"".join([message(3, (1, b"nmt_nfkc"), (2, table)), *pieces, settings])


def _split_table(model: bytes) -> tuple[bytes, bytes]:
    """The table of characters of a model of `build`, and the model without it. Raises ValueError for another model."""
    settings = next(read_fields(model), None)
    if settings is None or settings.number != 3:
        raise ValueError("its first field is not the table of characters that isoglot writes there")
    *_, table = read_fields(model, settings.start, settings.end)
    if table.number != 2:
        raise ValueError("it is incomplete")
    return model[table.start : table.end], model[settings.end :]
