"""Batches: N sentences in one flat, ragged table, with integer columns that record which rows belong together.

Flat rather than (anchor, positive, negative) columns, so that ragged groups need no padding rows, the encoder runs
once, and bounding memory is a split of rows. Tokens are ragged too: an encoder pads only the chunk that it receives, so
a chunk of short sentences costs nothing for a long one elsewhere in the batch.

Everything is in the host's memory: sizes, chunks and index pairs depend on values, and reading values from an
accelerator means waiting for it. Only padded ids and indices are sent to it, with `send`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from isoglot.data.tokens import Tokens


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device, copied without waiting: copies from pinned memory overlap with the host's work."""
    if tensor.device.type != "cpu" or device.type in ("cpu", "mps"):  # MPS shares the host's memory
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass(slots=True)
class Batch:
    """N rows. Objectives read the columns and never the tokens.

    Columns are on the host; only what `annotate` computes may be on the encoder's device.

    group  (N,) int64: rows of one group are positives of each other
    key    (N,) int64: rows of equal key mean the same; of different group, they are neither positive nor negative
    slot   (N,) int64: place in the group, 0 is the anchor's; -1, -2, ... are the group's hard negatives
    lang   (N,) int64: index into the corpus's list of languages
    extras name -> tensor of N rows
    """

    tokens: Tokens
    group: Tensor
    key: Tensor
    slot: Tensor
    lang: Tensor
    extras: dict[str, Tensor] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.group)
