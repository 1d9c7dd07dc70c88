"""Reduces the vocabulary of an encoder to the tokens of a corpus: a smaller table, the same vectors for that text.

A table of 250,000 pieces is most of a small multilingual model. The rows of the pieces that stay, and everything after
the table, are copied unchanged. Pieces are chosen so that text of the corpus *must* be cut as before; the argument is
given for each of the three algorithms (`find_used`, `find_needed`). A tokenizer is read and written as its
tokenizer.json.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn

from isoglot.core.arguments import NonNegativeInt, PositiveInt, check_arguments
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.core.progress import Progress
from isoglot.encoders.base import Encoder
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.model import Model
from isoglot.model.engine import check_texts, distinct
from isoglot.model.tokenizer import SavedTokenizer, backend_of, readable, tokenize_rows

KINDS = ("Unigram", "WordPiece", "BPE")
_BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # the pieces of byte fallback
_BLOCK = 16_384  # texts at a time
_WHOLE = 1 << 40  # tokens: nothing is cut off, since a later piece may decide where an earlier one ends


@dataclass(frozen=True, slots=True)
class Trimmed:
    """An encoder of V' pieces, where there were `pieces`; row r of its table was row `rows[r]` (V',) int64.

    `texts` is how many were read, `weights` how many the encoder had before.
    """

    encoder: Encoder
    rows: NDArray[np.int64]
    pieces: int
    texts: int
    weights: int
    minimum_count: int

    def __str__(self) -> str:
        rare = "sentences with rarer pieces have other vectors"
        same = "vectors of the corpus unchanged" if self.minimum_count == 1 else rare
        return (
            f"{self.texts:,} sentences use {len(self.rows):,} of {self.pieces:,} pieces: "
            f"{self.weights / 1e6:,.2f} to {self.encoder.parameters_count / 1e6:,.2f} million weights, {same}"
        )


@check_arguments()
def trim(
    model: Model,
    texts: Iterable[str],
    *,
    minimum_count: PositiveInt = 1,
    first: NonNegativeInt = 0,
    keep_characters: bool = True,
    progress: Progress | None = None,
) -> Trimmed:
    """A copy of a transformer or static encoder with only those pieces of its vocabulary that the texts use.

    minimum_count    minimum count of a piece in the corpus. Above 1, vectors of text with rarer pieces change
    first            keep so many of the first pieces of the vocabulary, the most frequent ones, too. These are
                     frequent in the text of the tokenizer: text unlike the corpus is split into fewer pieces
    keep_characters  keep all pieces of one character or byte, so that unseen words can be spelled
    progress         called with (texts read, None) in each of the passes over the texts

    The texts are read with each of the encoder's prompts before them, and without truncation to `max_length`. With a
    count of 1 their vectors equal those of `model` after any of these prompts, which a second pass over the texts
    verifies; an iterator, which can be read only once, is not verified.

    Raises ValueError for a count below 1, EncoderError for an encoder without a vocabulary of pieces (USE, GloVe),
    CorpusError without texts.
    """
    encoder = model.trainable()
    inner = inside(encoder)
    tokenizer, texts = backend_of(inner.tokenizer), check_texts(texts)
    prompts = [*dict.fromkeys([inner.prompt, *inner.prompts.values()])]  # a text may be cut differently after each
    used, count = find_used(tokenizer, texts, prompts=prompts, minimum=minimum_count, progress=progress)
    if not count:
        raise CorpusError("no sentences; pass at least one line of text")
    used |= find_used(tokenizer, prompts)[0] | set(range(min(first, tokenizer.get_vocab_size())))
    trimmed, rows = cut_to(encoder, used, keep_characters=keep_characters)
    result = Trimmed(trimmed, rows, tokenizer.get_vocab_size(), count, encoder.parameters_count, minimum_count)
    if minimum_count == 1 and iter(texts) is not texts:
        check(encoder, result, texts, progress=progress)
    return result


def cut_to(
    encoder: Encoder, pieces: Set[int], *, keep_characters: bool = True, first: Sequence[int] = ()
) -> tuple[Encoder, NDArray[np.int64]]:
    """A copy of an encoder with these pieces and what `find_needed` adds, and the ids (V',) that its rows had.

    first   pieces that get the lowest ids, in this order, after the special ones; the others keep their order

    Raises EncoderError for an encoder without a vocabulary of pieces.
    """
    inner = inside(encoder)
    state = json.loads(backend_of(inner.tokenizer).to_str())
    special = _special_ids(inner) | {token["id"] for token in state["added_tokens"]}
    wanted = find_needed(pieces | special | set(first), state, keep_characters=keep_characters)
    head = [*sorted(special), *first] if first else []
    order = dict.fromkeys([*head, *sorted(wanted)])
    # Tokens that were added behind the vocabulary stay behind it.
    rows = np.array(sorted(order, key=lambda number: number >= len(state["model"]["vocab"])), np.int64)
    new = {old: row for row, old in enumerate(rows.tolist())}
    return _copy_with_rows(encoder, inner, cut(state, new), new), rows


def check(before: Encoder, after: Trimmed, texts: Iterable[str], *, progress: Progress | None = None) -> None:
    """Raise EncoderError for the first text that the trimmed tokenizer splits into other pieces."""
    stream, done = iter(texts), 0
    while block := list(islice(stream, _BLOCK)):
        if not _alike(before, after, block):
            text = next(text for text in block if not _alike(before, after, [text]))
            raise EncoderError(f"the trimmed tokenizer splits {text[:80]!r} differently; this kind cannot be trimmed")
        done += len(block)
        if progress is not None:
            progress(done, None)


def _alike(before: Encoder, after: Trimmed, texts: list[str]) -> bool:
    inner, trimmed = inside(before), inside(after.encoder)
    for prompt in {inner.prompt, *inner.prompts.values()}:
        old, new = inner.tokenize(texts, prompt=prompt), trimmed.tokenize(texts, prompt=prompt)
        if not (np.array_equal(old.lengths, new.lengths) and np.array_equal(old.ids, after.rows[new.ids])):
            return False
    return True


def inside(encoder: Encoder) -> TransformerEncoder | StaticEncoder:
    """The encoder, or the one inside it, that has the vocabulary. Raises EncoderError if there is none to cut."""
    parts = [part for part in encoder.modules() if isinstance(part, TransformerEncoder | StaticEncoder)]
    kinds = " + ".join(type(backend_of(part.tokenizer).model).__name__ for part in parts) or "none"
    if kinds not in KINDS:
        wanted = f"pass a transformer or static encoder with one of {', '.join(KINDS)}"
        raise EncoderError(f"cannot trim the vocabulary of a {type(encoder).__name__}, which is {kinds}; {wanted}")
    return parts[0]


def _special_ids(inner: TransformerEncoder | StaticEncoder) -> set[int]:
    """The special ids in the config of a backbone."""
    if isinstance(inner, StaticEncoder):
        return set()
    named = {inner.pad, *_special(inner.backbone.config).values()}
    # RoBERTa numbers positions from the padding's id onwards: that id must not change, so all before it are kept.
    first = getattr(getattr(inner.backbone, "embeddings", None), "padding_idx", None)
    return named if first is None else named | set(range(int(first) + 1))


def _special(config: Any) -> dict[str, int]:
    """pad_token_id, bos_token_id and so on, as far as they name pieces."""
    named = {name: value for name, value in config.to_dict().items() if name.endswith("_token_id")}
    return {name: value for name, value in named.items() if isinstance(value, int) and 0 <= value < config.vocab_size}


def _copy_with_rows(
    encoder: Encoder, inner: TransformerEncoder | StaticEncoder, tokenizer: Tokenizer, new: dict[int, int]
) -> Encoder:
    """A copy of the encoder with this tokenizer, and the rows of `new` (old to new) of its table."""
    tables: list[Tensor | None]
    whole: Tokenizer | SavedTokenizer = tokenizer
    if isinstance(inner, StaticEncoder):
        tables = [inner.table, inner.token_weights]
    else:
        tables, old = [inner.backbone.get_input_embeddings().weight], inner.tokenizer
        named = {name: token for name, token in old.special_tokens_map.items() if isinstance(token, str)}
        whole = SavedTokenizer(tokenizer, old.model_max_length, tuple(old.model_input_names), named)
    memo: dict[int, Any] = {id(inner.tokenizer): whole}  # deepcopy takes these as copied already
    for table in tables:
        if table is not None:
            memo[id(table)] = nn.Parameter(table.detach()[[*new]], requires_grad=table.requires_grad)
    out = copy.deepcopy(encoder, memo)
    out.card = encoder.card and encoder.card.derive(encoder.name)
    for each in out.modules():
        if isinstance(each, Encoder):
            each.origin = ""
    part = inside(out)
    if isinstance(part, TransformerEncoder):
        words, config = part.backbone.get_input_embeddings(), part.backbone.config
        for name, old in _special(config).items():
            setattr(config, name, new[old])
        config.vocab_size = words.num_embeddings = len(new)
        words.padding_idx = None if words.padding_idx is None else new[words.padding_idx]
        part.pad = new[part.pad]
    return out


# Pieces of a tokenizer


def find_used(
    tokenizer: Tokenizer, texts: Iterable[str], *, prompts: Sequence[str] = ("",), minimum: int = 1,
    progress: Progress | None = None,
) -> tuple[set[int], int]:  # fmt: skip
    """The ids that the texts need after one of the prompts, each used at least `minimum` times, and the number of texts
    that have any after the first.

    **Unigram** takes the path of greatest score. Without pieces that are on no winning path, rivals score what they
    did or are gone. See `find_needed` for the one exception.
    **WordPiece** takes the longest piece that fits; without others, it is still there and still the longest. But a
    word is unknown as a whole when nothing fits its rest, and the pieces before this rest are not seen: without them,
    a shorter one could lead to an end. They are found by walking as it does, and needed too.
    **BPE**: see `find_needed`.
    """
    model = json.loads(tokenizer.to_str())["model"]
    unknown: Any = model["vocab"].get(model["unk_token"]) if model["type"] == "WordPiece" else None
    counts = np.zeros(1 + max(tokenizer.get_vocab().values(), default=0), np.int64)
    words, total = Counter[str](), 0
    stream, first = iter(texts), 0
    while block := list(islice(stream, _BLOCK)):
        distinct(block, first)  # raises for what is not a string
        first += len(block)
        prompted = [[prompt + text for text in block] for prompt in prompts]
        cuts = [tokenize_rows(tokenizer, each, max_length=_WHOLE) for each in prompted]
        total += int((cuts[0].lengths > 0).sum())
        counts += np.max([np.bincount(tokens.ids, minlength=len(counts)) for tokens in cuts], axis=0)
        if progress is not None:
            progress(total, None)
        for each, tokens in zip(prompted, cuts, strict=True) if unknown is not None else ():
            for row in np.unique(np.repeat(np.arange(len(block)), tokens.lengths)[tokens.ids == unknown]):
                words.update(_unknown_words(tokenizer, each[row], unknown))
    walked = (_walk(word, model) for word, times in words.items() if times >= minimum)
    return set(np.flatnonzero(counts >= minimum).tolist()).union(*walked), total


def _unknown_words(tokenizer: Tokenizer, text: str, unknown: int) -> Iterator[str]:
    """The words of a text, after pre-tokenisation, that become the unknown token."""
    text = readable(text)  # as `tokenize_rows` reads it
    encoding = tokenizer.encode(text, add_special_tokens=False)
    for number, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True):
        if number == unknown:
            word = text[start:stop]
            yield from (tokenizer.normalizer.normalize_str(word) if tokenizer.normalizer else word).split()


def _walk(word: str, model: Mapping[str, Any]) -> list[int]:
    """The longest pieces from the front of a word, up to where none fits."""
    numbers, at = [], 0
    while at < len(word):
        start = model["continuing_subword_prefix"] if at else ""
        stops = (stop for stop in range(len(word), at, -1) if start + word[at:stop] in model["vocab"])
        if (stop := next(stops, None)) is None:
            break
        numbers.append(model["vocab"][start + word[at:stop]])
        at = stop
    return numbers


def find_needed(ids: Set[int], state: Mapping[str, Any], *, keep_characters: bool) -> set[int]:
    """These ids, and those that the tokenizer.json `state` cannot do without.

    **Special and added tokens**, all. **Characters**, if they are kept: pieces of one character or byte.
    **Unigram** gives an unknown character the least score of the vocabulary minus 10. The piece of least score is kept,
    so this does not change, and stays below the score of a character's own piece that is gone: no rival gains.
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
    return _close_over_merges(out, model) if model["type"] == "BPE" else out


def _single(piece: str, model: Mapping[str, Any]) -> bool:
    """Whether a piece is one character, at the beginning of a word or inside, or one byte."""
    prefix, suffix = (model.get(name) or "" for name in ("continuing_subword_prefix", "end_of_word_suffix"))
    return len(piece.removeprefix(prefix).removesuffix(suffix)) <= 1 or bool(_BYTE.fullmatch(piece))


def _product(left: str, right: str, model: Mapping[str, Any]) -> str:
    """The piece that a merge makes."""
    return left + right[len(model["continuing_subword_prefix"] or "") :]


def _close_over_merges(ids: Set[int], model: Mapping[str, Any]) -> set[int]:
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
    """Ids that a post-processor adds around a sentence."""
    for part in (processor or {}).get("processors", [processor or {}]):
        yield from (number for token in part.get("special_tokens", {}).values() for number in token["ids"])
        yield from (part[name][1] for name in ("sep", "cls") if name in part)


def cut(state: Mapping[str, Any], new: Mapping[int, int]) -> Tokenizer:
    """The tokenizer of a tokenizer.json with the pieces of `new`, old ids to new, and no others.

    Padding and truncation are left out: the encoder sets them when it is saved.
    """
    model = {**state["model"]}
    if model["type"] == "Unigram":
        model["vocab"] = [model["vocab"][number] for number in new if number < len(model["vocab"])]
        model["unk_id"] = new.get(model["unk_id"])
    else:
        model["vocab"] = {piece: new[number] for piece, number in model["vocab"].items() if number in new}
    if model["type"] == "BPE":
        pieces = model["vocab"].keys()
        model["merges"] = [(a, b) for a, b in model["merges"] if {a, b, _product(a, b, model)} <= pieces]
    added = [{**token, "id": new[token["id"]]} for token in state["added_tokens"]]
    around = _renumber(state["post_processor"], new)
    changes = {"model": model, "added_tokens": added, "post_processor": around, "padding": None, "truncation": None}
    return Tokenizer.from_str(json.dumps({**state, **changes}))


def _renumber(processor: Mapping[str, Any] | None, new: Mapping[int, int]) -> dict[str, Any] | None:
    """A post-processor, or a sequence of them, with new ids for `_around`."""
    if processor is None:
        return None
    out = dict(processor)
    if "processors" in out:
        out["processors"] = [_renumber(part, new) for part in out["processors"]]
    if "special_tokens" in out:
        tokens = out["special_tokens"].items()
        out["special_tokens"] = {name: {**token, "ids": [new[i] for i in token["ids"]]} for name, token in tokens}
    for name in {"sep", "cls"} & out.keys():
        out[name] = [out[name][0], new[out[name][1]]]
    return out
