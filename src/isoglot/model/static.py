"""A static model in NumPy: the vector of a sentence is the mean of its tokens' rows in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EncoderError
from isoglot.data.tokens import Tokens
from isoglot.model import layout, packed, words
from isoglot.model.backend import Plan, Rows
from isoglot.model.base import Model
from isoglot.model.tokenizer import add_prompt, prepare_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_TOKENS = 512  # rows of the table that are gathered at a time, so that they stay in a core's cache


class StaticModel(Model):
    """A table (V, D) under a tokenizer; a text without tokens has the zero vector."""

    pads = False
    kind = "StaticEncoder"

    def __init__(self, table: NDArray[np.float32], tokenizer: Tokenizer, max_length: int) -> None:
        self.table, self.tokenizer, self.max_length, self.dim = table, tokenizer, max_length, table.shape[1]

    @classmethod
    def open(cls, folder: Path, weights: Mapping[str, NDArray[Any]] | None = None) -> StaticModel:
        """The model whose tokenizer is in a folder, and its table, unless that is in `weights`.

        Raises EncoderError for a damaged folder.
        """
        weights = packed.read_weights(folder) if weights is None else weights
        table = weights.get("embedding.weight", weights.get("embeddings"))
        if table is None or table.ndim != 2:
            raise EncoderError(f"{folder}: the weights have no embedding table, only {', '.join(weights) or 'nothing'}")
        if "embeddings" in weights:  # of model2vec, where tokens may share a row and have weights
            table = table[weights["mapping"].astype(np.int64)] if "mapping" in weights else table
            table = table.astype(np.float32) * weights.get("weights", np.ones(1))[:, None].astype(np.float32)
        if not np.isfinite(table).all():
            raise EncoderError(f"{folder}: the table contains NaN or infinity; save or download the model again")
        tokenizer = packed.read_tokenizer(folder)
        length = (tokenizer.truncation or {}).get("max_length", 8192)
        prepare_tokenizer(tokenizer, len(table), folder)
        return cls(table.astype(np.float32, copy=False), tokenizer, length)

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids without special tokens; an empty text gives an empty row."""
        return words.tokenize(self.tokenizer, add_prompt(texts, prompt, self.prompt), max_length=self.max_length)

    def begin(self, tokens: Tokens, plan: Plan) -> Callable[[], Rows]:
        """The means, which are computed at once. Texts of equal length are summed together."""
        means = np.zeros((len(tokens), plan.width), np.float32)
        order = np.argsort(tokens.lengths, kind="stable")
        lengths, starts = tokens.lengths[order], tokens.starts[order]
        gathered = np.empty((_TOKENS + int(lengths.max(initial=0)), self.dim), np.float32)
        first = 0
        while first < len(order):
            length = int(lengths[first])
            end = int(np.searchsorted(lengths, length, side="right"))
            step = max(1, _TOKENS // max(1, length))
            for start in range(first, end if length else first, step):
                stop = min(end, start + step)
                ids = tokens.ids[starts[start:stop, None] + np.arange(length)].ravel()
                rows = gathered[: len(ids)]
                np.take(self.table, ids, axis=0, out=rows, mode="clip")  # other modes copy once more
                sums = rows.reshape(stop - start, length, self.dim).sum(axis=1)
                means[order[start:stop]] = sums[:, : plan.width] / np.float32(length)
            first = end
        return lambda: means

    @property
    def parameters_count(self) -> int:
        """Number of weights."""
        return self.table.size

    def add_weights(self, checksum: Any) -> None:
        """Update a checksum with the table, as the static encoder of torch does."""
        checksum.update(f"table {self.table.shape} torch.float32".encode())
        checksum.update(np.ascontiguousarray(self.table))


def is_static(modules: Sequence[layout.Module]) -> bool:
    """Whether a model consists of a table and nothing but Normalize after it."""
    kinds = [module.kind for module in modules]
    return kinds[:1] == ["StaticEmbedding"] and not set(kinds[1:]) - {"Normalize"}
