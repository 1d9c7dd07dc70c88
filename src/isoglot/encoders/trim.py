"""Cuts the vocabulary of an encoder to what a corpus uses: a smaller table, the same vectors for that text.

A table of 250,000 pieces is most of a small multilingual model. The rows of the pieces that stay, and everything behind
the table, are copied as they are; which pieces stay, and why covered text is cut as before, is told in pieces.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import nn

from isoglot.encoders.base import Encoder
from isoglot.encoders.pieces import KINDS, cut, kind_of, needed, used
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import CorpusError, EncoderError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_BLOCK = 16_384  # texts compared at a time


@dataclass(frozen=True, slots=True)
class Trimmed:
    """An encoder of V' pieces, where there were `pieces`; row r of its table was row `rows[r]` (V',) int64.

    `texts` is how many were read.
    """

    encoder: Encoder
    rows: NDArray[np.int64]
    pieces: int
    texts: int


def trim(encoder: Encoder, texts: Iterable[str], *, minimum_count: int = 1, keep_characters: bool = True) -> Trimmed:
    """A copy of a transformer or static encoder with only those pieces of its vocabulary that the texts use.

    minimum_count    keep pieces met at least so often; above 1, covered text with rarer pieces has other vectors
    keep_characters  keep all pieces of one character or byte too, so that unseen words are spelt and seldom unknown

    The texts are read once, with the encoder's prompt before each, and whole, whatever `max_length` is. Their vectors
    are those of `encoder`. Raises ValueError for a count below 1, EncoderError for an encoder without a vocabulary of
    pieces (USE, GloVe), CorpusError if there are no texts.
    """
    if minimum_count < 1:
        raise ValueError(f"minimum_count must be at least 1, got {minimum_count}")
    inner = inside(encoder)
    met, count = used(_backend(inner), (inner.prompt + text for text in texts), minimum=minimum_count)
    if not count:
        raise CorpusError("the corpus holds no sentences; give files with at least one line of text")
    state = json.loads(_backend(inner).to_str())
    rows = np.array(sorted(needed(met | _named_in(inner), state, keep_characters=keep_characters)), np.int64)
    new = {old: row for row, old in enumerate(rows.tolist())}
    trimmed = _copied(encoder, inner, cut(state, new), new)
    return Trimmed(trimmed, rows, _backend(inner).get_vocab_size(), count)


def check(before: Encoder, after: Trimmed, texts: Iterable[str]) -> None:
    """Raise EncoderError, naming it, for a text that is not cut into the same pieces as before."""
    stream = iter(texts)
    while block := list(islice(stream, _BLOCK)):
        if not _alike(before, after, block):
            text = next(text for text in block if not _alike(before, after, [text]))
            raise EncoderError(f"the trimmed tokenizer cuts {text[:80]!r} otherwise; this kind cannot be trimmed")


def _alike(before: Encoder, after: Trimmed, texts: list[str]) -> bool:
    old, new = before.tokenize(texts), after.encoder.tokenize(texts)
    same = np.array_equal(old.lengths, new.lengths)
    return same and np.array_equal(old.ids, after.rows[new.ids.numpy()])


def inside(encoder: Encoder) -> TransformerEncoder | StaticEncoder:
    """The encoder, or the one inside it, that has the vocabulary. Raises EncoderError if there is none to cut."""
    found = [part for part in encoder.modules() if isinstance(part, TransformerEncoder | StaticEncoder)]
    kinds = " + ".join(kind_of(_backend(part)) for part in found) or "none"
    if kinds not in KINDS:
        raise EncoderError(
            f"there is no vocabulary to cut: it must be one of {', '.join(KINDS)}, and this {type(encoder).__name__} "
            f"has {kinds}; give a transformer or static encoder of pieces"
        )
    return found[0]


def _backend(inner: TransformerEncoder | StaticEncoder) -> Tokenizer:
    return inner.tokenizer.backend_tokenizer if isinstance(inner, TransformerEncoder) else inner.tokenizer


def _named_in(inner: TransformerEncoder | StaticEncoder) -> set[int]:
    """The ids that a backbone speaks of by number."""
    if isinstance(inner, StaticEncoder):
        return set()
    named = {inner.pad, *_special(inner.backbone.config).values()}
    # RoBERTa numbers positions from the padding's id onwards: that id must stay what it is, so all before it are kept.
    first = getattr(getattr(inner.backbone, "embeddings", None), "padding_idx", None)
    return named if first is None else named | set(range(int(first) + 1))


def _special(config: Any) -> dict[str, int]:
    """pad_token_id, bos_token_id and so on, as far as they name pieces."""
    named = {name: value for name, value in config.to_dict().items() if name.endswith("_token_id")}
    return {name: value for name, value in named.items() if isinstance(value, int) and 0 <= value < config.vocab_size}


def _copied(
    encoder: Encoder, inner: TransformerEncoder | StaticEncoder, tokenizer: Tokenizer, new: dict[int, int]
) -> Encoder:
    """A copy of the encoder with this tokenizer, and the rows of `new` (old to new) of its table."""
    if isinstance(inner, StaticEncoder):
        tables, whole = [inner.table, inner.token_weights], tokenizer
    else:
        tables, whole = [inner.backbone.get_input_embeddings().weight], _fast(tokenizer, inner.tokenizer)
    memo: dict[int, Any] = {id(inner.tokenizer): whole}  # what deepcopy holds for copied already
    for table in tables:
        if table is not None:
            memo[id(table)] = nn.Parameter(table.detach()[[*new]], requires_grad=table.requires_grad)
    out = copy.deepcopy(encoder, memo)
    if isinstance(part := inside(out), TransformerEncoder):
        _renumber(part, new)
    return out


def _renumber(encoder: TransformerEncoder, new: dict[int, int]) -> None:
    words, config = encoder.backbone.get_input_embeddings(), encoder.backbone.config
    for name, old in _special(config).items():
        setattr(config, name, new[old])
    config.vocab_size = words.num_embeddings = len(new)
    words.padding_idx = None if words.padding_idx is None else new[words.padding_idx]
    encoder.pad = new[encoder.pad]


def _fast(tokenizer: Tokenizer, old: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """The tokenizer in the clothes of transformers, with the special tokens by their names."""
    from transformers import PreTrainedTokenizerFast

    named = {name: token for name, token in old.special_tokens_map.items() if isinstance(token, str)}
    inputs = list(old.model_input_names)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=old.model_max_length, model_input_names=inputs, **named
    )
