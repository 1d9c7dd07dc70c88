"""Twins: two copies of one encoder, trained against each other (Contrastive Tension, Carlsson et al. 2021).

The width depends on the mode. In training a sentence's vector is the concatenation of both copies' vectors, so that one
objective over a batch's vectors sees f1 and f2; in evaluation it is the vector of the first copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from isoglot.data.tokens import Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.layers import Wrapper
from isoglot.encoders.transformer import TransformerEncoder


class Twins(Wrapper):
    """Two encoders with the same tokenization. Training keeps the one with the better dev score, or the first.

    The copies stay in evaluation mode while the twins are trained: CT trains without any dropout.

    Raises ValueError for two encoders of different width or tokens, and for one with a layer used in training only.
    """

    parts = ("first", "second")

    def __init__(self, first: Encoder, second: Encoder) -> None:
        super().__init__()
        if first.dim != second.dim or first.fingerprint != second.fingerprint:
            raise ValueError(f"twins must have one tokenizer and one width; their widths are {first.dim}, {second.dim}")
        if any(isinstance(twin, TransformerEncoder) and twin.head is not None for twin in (first, second)):
            raise ValueError('twins are trained as they are saved, without a head; write head = "none"')
        self.first, self.second = first, second
        self.pads, self.concurrent, self.name = first.pads, first.concurrent, first.name
        self.train(self.training)

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Width of what forward gives: 2D in training, D in evaluation."""
        return 2 * self.first.dim if self.training else self.first.dim

    def train(self, mode: bool = True) -> Twins:
        """Set the mode of the twins; the copies never draw dropout masks."""
        super().train(mode)
        self.first.eval()
        self.second.eval()
        return self

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, 2D) in training: f1, then f2; (N, D) in evaluation: f1."""
        if not self.training:
            return self.first(tokens)
        return torch.cat([self.first(tokens), self.second(tokens)], dim=1)

    def write(self, folder: Path, *, name: str | None = None) -> None:
        """Write the first copy."""
        self.first.write(folder, name=name)

    def exports(self) -> Sequence[Encoder]:
        """Both copies; the dev score selects one."""
        return (self.first, self.second)
