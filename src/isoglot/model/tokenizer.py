"""Trains a subword tokenizer on plain sentences, and applies any tokenizer to many texts at once.

One setting must suit scripts with and without spaces. Text is cut into runs of letters, of digits and of other signs,
each with the space before it, so that a piece never crosses a word of Latin text, while a run of Thai is one stretch in
which training is free to find the words. Each Chinese character and Japanese kana is a piece of its own.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal
from unicodedata import normalize

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from isoglot.core.arguments import PositiveInt, Range, check_arguments
from isoglot.core.errors import EncoderError
from isoglot.data.tokens import Tokens
from isoglot.model.configs import reading

UNKNOWN = "<unk>"
SPACE = "\u2581"  # marks the space before a word
_SIGNS = rf"{SPACE}?\p{{N}}+|{SPACE}?[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]+|{SPACE}"
_WORDS = rf"{SPACE}?[\p{{L}}\p{{M}}]+|{_SIGNS}"
_CHARACTERS = r"\p{Han}\p{Hiragana}\p{Katakana}\u30fc"
_SINGLE = rf"{SPACE}?[{_CHARACTERS}]|{SPACE}?[\p{{L}}\p{{M}}&&[^{_CHARACTERS}]]+|{_SIGNS}"
SPACES = r"[^\S ]\s*| \s+"  # what a tokenizer that is trained reads as one space
SPLITS = (_WORDS, _SINGLE)  # what a tokenizer that is trained cuts by; no match contains a space but in front
_LONGEST = 16  # most characters in a piece of a tokenizer that is trained
_ALPHABET = 6_000  # most characters of a tokenizer that is trained
_BLOCK = 16_384  # texts tokenised at a time: encodings take much memory, so they are reduced to ids block by block

_PROBES = 256  # pieces of the vocabulary that are tokenised to test the tokenizer

_locks = [threading.RLock() for _ in range(61)]  # of the settings of tokenizers, of which two seldom have the same
for _lock in _locks if hasattr(os, "register_at_fork") else ():  # not on Windows, which has no forks
    # No thread tokenises during a fork, or the child would wait for its lock for ever.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(frozen=True, slots=True)
class SavedTokenizer:
    """A tokenizer and the settings that a saved folder has beside it, by the names of transformers.

    backend_tokenizer   the tokenizer itself
    model_max_length    maximum tokens that it was made for
    model_input_names   what the backbone takes, such as input_ids and attention_mask
    special_tokens_map  special tokens by role, such as pad_token
    """

    backend_tokenizer: Tokenizer
    model_max_length: int
    model_input_names: tuple[str, ...]
    special_tokens_map: dict[str, str]

    @property
    def pad_token_id(self) -> int | None:
        """Number of the padding token."""
        token = self.special_tokens_map.get("pad_token")
        number: int | None = None if token is None else self.backend_tokenizer.token_to_id(token)
        return number


@check_arguments()
def train_tokenizer(
    texts: Iterable[str],
    vocabulary: Annotated[int, Range(2)],
    *,
    model: Literal["unigram", "bpe"] = "bpe",
    lowercase: bool = True,
    min_frequency: int = 2,
    sentences: PositiveInt = 1_000_000,
) -> Tokenizer:
    """A tokenizer of at most `vocabulary` pieces, learnt from sentences that are read once.

    vocabulary     includes the piece for unknown characters
    model          bpe: fast, and the same for the same texts. unigram: a unigram language model; at least three times
                   slower, and not exactly reproducible
    lowercase      case is dropped, which suits small vocabularies
    min_frequency  pairs seen less often are not joined (bpe)
    sentences      of more than these, so many are drawn at random, always the same ones, and kept in memory

    Raises ValueError for an impossible vocabulary or number of sentences, EncoderError if the texts contain no words.
    """
    tokenizer = Tokenizer(models.Unigram() if model == "unigram" else models.BPE(unk_token=UNKNOWN, fuse_unk=True))
    case = [normalizers.Lowercase()] if lowercase else []
    spaces = normalizers.Replace(Regex(SPACES), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *case, spaces, normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False),
            pre_tokenizers.Split(Regex(_SINGLE), behavior="isolated"),
        ]
    )
    drawn, most = _draw_sample(texts, sentences), min(vocabulary // 2, _ALPHABET)
    common: dict[str, Any] = {"vocab_size": vocabulary, "special_tokens": [UNKNOWN], "show_progress": False}
    if model == "bpe":
        trainer: trainers.Trainer = trainers.BpeTrainer(
            min_frequency=min_frequency, max_token_length=_LONGEST, limit_alphabet=most,
            initial_alphabet=_alphabet(drawn, most, lowercase=lowercase), **common,
        )  # fmt: skip
    else:
        trainer = trainers.UnigramTrainer(unk_token=UNKNOWN, max_piece_length=_LONGEST, **common)
    tokenizer.train_from_iterator(drawn, trainer)
    if tokenizer.get_vocab_size() <= 1:
        raise EncoderError("the texts contain no words to learn a tokenizer from; give it sentences")
    return tokenizer


def _draw_sample(texts: Iterable[str], size: int) -> list[str]:
    """At most `size` texts, each with equal probability (reservoir sampling)."""
    texts, rng = iter(texts), np.random.default_rng(0)
    drawn = list(islice(texts, size))
    read = len(drawn)
    while block := list(islice(texts, _BLOCK)):
        places = rng.integers(0, np.arange(read, read + len(block)) + 1)
        for text, place in zip(block, places.tolist(), strict=True):
            if place < size:
                drawn[place] = text
        read += len(block)
    return drawn


def _alphabet(texts: Sequence[str], size: int, *, lowercase: bool) -> list[str]:
    """The `size` most frequent characters; none if there are at most so many, and no choice is needed.

    The library has no rule for characters of equal frequency: two runs would keep different ones, and number all pieces
    differently.
    """
    counts = np.zeros(0x110000, np.int64)
    for start in range(0, len(texts), _BLOCK):
        text = normalize("NFKC", SPACE.join(["", *texts[start : start + _BLOCK]])).replace(" ", SPACE)
        text = text.lower() if lowercase else text
        codes = np.frombuffer(text.encode("utf-32-le", "replace"), np.uint32)
        counts += np.bincount(codes, minlength=len(counts))
    order = np.argsort(-counts, kind="stable")
    return [chr(code) for code in order[:size].tolist()] if counts[order[size]] else []


def tokenize_rows(
    tokenizer: Tokenizer, texts: Sequence[str], *, max_length: int, special: bool = False, filler: int | None = None
) -> Tokens:
    """Token ids of each text, at most `max_length`, with or without special tokens.

    A text without tokens gives an empty row, or a row with `filler`. Lone surrogates, which tokenizers reject, are read
    as U+FFFD.
    """
    ids, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(texts), _BLOCK):
        block = list(texts[start : start + _BLOCK])
        with suspend_padding(tokenizer, max_length):
            try:
                encodings = tokenizer.encode_batch_fast(block, add_special_tokens=special)
            except (TypeError, UnicodeEncodeError):
                block = [readable(text) for text in block]
                encodings = tokenizer.encode_batch_fast(block, add_special_tokens=special)
            except Exception as error:  # the library's class for all errors, such as an unk_token without a number
                raise EncoderError(f"the tokenizer can't read a text: {error}; save or download it again") from error
        rows = [encoding.ids for encoding in encodings]
        if filler is not None:
            rows = [row or [filler] for row in rows]
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        lengths.append(counts)
        ids.append(np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=int(counts.sum())))
    return Tokens(np.concatenate(ids), np.concatenate(lengths))


def readable(text: str) -> str:
    """The text as models read it and as UTF-8 can represent it: with U+FFFD instead of lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def disable_extras(tokenizer: Tokenizer) -> None:
    """Switch off what a tokenizer may do besides tokenising: dropout of merges, padding and truncation.

    With dropout every call gives other tokens; padding to a fixed length can take all memory. Every encoder does this
    with the tokenizer that it is made with.
    """
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if getattr(tokenizer.model, "dropout", None) is not None:
        tokenizer.model.dropout = None


def add_prompt(texts: Sequence[str], prompt: str | None, default: str) -> Sequence[str]:
    """The texts without the white space around them, with `prompt` before each; `default` is an encoder's own.

    The line end of a line that was read from a file would be a token of its own in many vocabularies.
    """
    before = default if prompt is None else prompt
    return [before + text.strip() for text in texts]


@contextmanager
def suspend_padding(tokenizer: Tokenizer, max_length: int) -> Iterator[None]:
    """A block in which the tokenizer cuts at `max_length` and pads nothing; afterwards its settings are restored.

    These settings are the tokenizer's own, and encoders of different lengths may share a tokenizer: so one thread at a
    time is in such a block of a tokenizer. Two threads with two tokenizers don't wait for each other. A thread must not
    be in blocks of two tokenizers at once.
    """
    with _locks[id(tokenizer) % len(_locks)]:
        truncation, padding = tokenizer.truncation, tokenizer.padding
        try:
            tokenizer.no_padding()
            tokenizer.enable_truncation(max_length)
            yield
        finally:
            tokenizer.no_truncation() if truncation is None else tokenizer.enable_truncation(**truncation)
            if padding is not None:
                tokenizer.enable_padding(**padding)


def backend_of(tokenizer: Any) -> Any:
    """The tokenizer as `tokenizers` has it, without what transformers or a saved folder puts around it."""
    return getattr(tokenizer, "backend_tokenizer", tokenizer)


def digest(tokenizer: Tokenizer, max_length: int, prompt: str) -> str:
    """Hexadecimal digest of all that decides the ids of a text."""
    with suspend_padding(tokenizer, max_length):
        text = tokenizer.to_str() + "\0" + prompt
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def lowercase(tokenizer: Any) -> None:
    """Make a tokenizer read its texts in lower case."""
    before = [tokenizer.normalizer] if tokenizer.normalizer is not None else []
    tokenizer.normalizer = normalizers.Sequence([normalizers.Lowercase(), *before])


def prepare_tokenizer(tokenizer: Any, rows: int, folder: Path) -> None:
    """Disable the extras of an opened tokenizer.

    Raises EncoderError for ids beyond the embedding table, and for a tokenizer that knows no text: transformers makes
    an empty one where its files are missing.
    """
    disable_extras(tokenizer)
    size = tokenizer.get_vocab_size(with_added_tokens=True)
    numbers: Iterable[int] = range(size)
    if None in map(tokenizer.id_to_token, numbers):  # with gaps; all pieces would be slow
        numbers = sorted(set(tokenizer.get_vocab(with_added_tokens=True).values()))
    largest = max(numbers, default=-1)
    if largest >= rows:
        raise EncoderError(
            f"{folder}: the tokenizer has {size} pieces, of which {tokenizer.id_to_token(largest)!r} is number "
            f"{largest}, and the embedding table has {rows} rows; it belongs to another model"
        )
    named = getattr(tokenizer.model, "unk_token", None)
    unknown = {getattr(tokenizer.model, "unk_id", None), None if named is None else tokenizer.token_to_id(named)}
    nothing = set(tokenizer.get_added_tokens_decoder()) | unknown
    pieces = [number for number in numbers if number not in nothing]
    probes = [tokenizer.decode([number]) for number in pieces[:: max(1, len(pieces) // _PROBES)]]
    with reading(f"{folder}: the tokenizer"):  # such as an unk_token without a number
        encodings = tokenizer.encode_batch(probes, add_special_tokens=False)
    if nothing.issuperset(number for encoding in encodings for number in encoding.ids):
        missing = "its files are missing or damaged; save or download the model again"
        raise EncoderError(f"{folder}: the tokenizer knows no text: every piece is special or unknown; {missing}")
