"""The static encoder: the vector of a sentence is the mean of its tokens' rows in one table.

It has no attention and no padding and ignores word order; it is about a thousand times faster than a transformer, and
trainable from scratch in minutes. Gradients are row-sparse: a step touches the rows of the tokens it saw, not the
table. Each token may carry a trained weight, w_t, so that the vector is (1/n) sum of w_t e_t. Saving folds the weights
into the rows, after which the plain mean of sentence-transformers' StaticEmbedding is the same vector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.data.batch import send
from isoglot.data.tokens import Tokens
from isoglot.encoders.base import Encoder
from isoglot.model import layout
from isoglot.model.tokenizer import add_prompt, disable_extras, tokenize_rows

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class StaticEncoder(Encoder):
    """A table of V rows and D dims under a tokenizer; a text without tokens has the zero vector.

    table          (V, D) trained rows, V at least the tokenizer's vocabulary
    token_weights  train one weight per token next to the rows; all begin at one
    sparse         give row-sparse gradients (for `torch.optim.SparseAdam`), else dense ones
    prompt         put before every text
    prompts        further prompts by name
    normalizes     saved with a Normalize module, so that `encode` gives unit vectors by default
    """

    pads = False

    @check_arguments()
    def __init__(
        self,
        table: Tensor,
        tokenizer: Tokenizer,
        *,
        token_weights: bool = False,
        sparse: bool = True,
        max_length: PositiveInt = 512,
        prompt: str = "",
        prompts: Mapping[str, str] | None = None,
        normalizes: bool = True,
    ) -> None:
        super().__init__()
        if table.ndim != 2 or len(table) < tokenizer.get_vocab_size():
            raise ValueError(
                f"the table must be (V, D) with V at least the tokenizer's {tokenizer.get_vocab_size()} tokens, "
                f"got shape {tuple(table.shape)}"
            )
        self.table = nn.Parameter(table)
        self.token_weights = nn.Parameter(table.new_ones(len(table), 1)) if token_weights else None
        self.sparse, self.prompt, self.normalizes = sparse, prompt, normalizes
        self.prompts = dict(prompts or {})
        self.dim, self.max_length, self.tokenizer = table.shape[1], max_length, tokenizer
        disable_extras(tokenizer)

    @classmethod
    @check_arguments()
    def create(
        cls,
        tokenizer: Tokenizer,
        dim: int,
        *,
        seed: int = 0,
        std: float = 0.1,
        token_weights: bool = True,
        max_length: PositiveInt = 512,
    ) -> StaticEncoder:
        """A new encoder whose rows are drawn from a normal distribution of mean zero and deviation `std`."""
        draw = torch.Generator().manual_seed(seed)
        table = torch.randn(tokenizer.get_vocab_size(), dim, generator=draw) * std
        return cls(table, tokenizer, token_weights=token_weights, max_length=max_length)

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids without special tokens; an empty text gives an empty row."""
        return tokenize_rows(self.tokenizer, add_prompt(texts, prompt, self.prompt), max_length=self.max_length)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D): the mean of each sentence's weighted rows."""
        device = self.table.device
        counts = torch.from_numpy(tokens.lengths)
        ids, offsets = send(torch.from_numpy(tokens.ids), device), send(F.pad(counts.cumsum(0), (1, 0)), device)
        lengths = offsets.diff()
        weights, is_mean = None, self.token_weights is None
        if self.token_weights is not None:
            weights = F.embedding(ids, self.token_weights, sparse=self.sparse).squeeze(1)
        try:
            total = F.embedding_bag(
                ids,
                self.table,
                offsets,
                mode="mean" if is_mean else "sum",
                sparse=self.sparse,
                per_sample_weights=weights,
                include_last_offset=True,
            )
        except NotImplementedError:  # for accelerators without this kernel; takes the memory of all tokens' rows
            rows = F.embedding(ids, self.table)
            number = send(torch.arange(len(tokens)).repeat_interleave(counts), device)
            rows = rows if weights is None else rows * weights[:, None]
            total, is_mean = rows.new_zeros(len(tokens), self.dim).index_add(0, number, rows), False
        return total if is_mean else total / lengths.clamp(min=1)[:, None]

    def fold(self) -> Tensor:
        """(V, D) rows times their weights, without a gradient: the table whose plain mean is this encoder."""
        table = self.table.detach()
        return table.clone() if self.token_weights is None else table * self.token_weights.detach()

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write the folder of a sentence-transformers StaticEmbedding, the weights folded in."""
        from safetensors.torch import save_file

        save_file({"embedding.weight": self.fold().float().cpu().contiguous()}, folder / "model.safetensors")
        layout.write_backend(folder, self.tokenizer, self.max_length)
        kinds = [("StaticEmbedding", ""), *([("Normalize", "1_Normalize")] if self.normalizes else [])]
        layout.write_modules(folder, kinds, prompt=self.prompt, prompts=self.prompts, name=name)
