"""Batches: N sentences in one flat, ragged table, with integer columns that record which rows belong together.

Flat rather than (anchor, positive, negative) columns, so that ragged groups need no padding rows, the encoder runs
once, and bounding memory is a split of rows. Tokens are ragged too: an encoder pads only the chunk that it receives, so
a chunk of short sentences costs nothing for a long one elsewhere in the batch.

Everything is in the host's memory: sizes, chunks and index pairs depend on values, and reading values from an
accelerator means waiting for it. Only padded ids and indices are sent to it, with `send`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on a device, copied without waiting: copies from pinned memory overlap with the host's work."""
    if tensor.device.type != "cpu" or device.type in ("cpu", "mps"):  # MPS shares the host's memory
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of N sentences, end to end. `ids` (sum of lengths,) and `lengths` (N,), both int64, on the host.

    table   what `padded` gives, if `prepared` has made it
    """

    ids: Tensor
    lengths: Tensor
    table: tuple[Tensor, Tensor | None] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Tensor:
        """(N,) where each sentence begins in `ids`."""
        return self.lengths.cumsum(0) - self.lengths

    def select(self, rows: Tensor) -> Tokens:
        """The sentences at `rows`, in that order."""
        lengths = self.lengths[rows]
        ends = lengths.cumsum(0)
        shift = torch.repeat_interleave(self.starts[rows] - (ends - lengths), lengths)
        return Tokens(self.ids[torch.arange(len(shift)) + shift], lengths)

    @property
    def even(self) -> bool:
        """Whether all sentences have the same length, so that nothing is padded."""
        return not len(self) or bool(self.lengths.min() == self.lengths.max())

    def padded(self, pad: int = 0, device: torch.device | None = None) -> tuple[Tensor, Tensor | None]:
        """`input_ids` and `attention_mask`, both (N, T) int64, T the longest sentence, sent to `device`.

        The mask is None where nothing is padded.
        """
        table, mask = self.table or self._padded(pad)
        if device is None:
            return table, mask
        return send(table, device), None if mask is None else send(mask, device)

    def prepared(self, pad: int, device: torch.device) -> Tokens:
        """The same, padded with `pad` now, in memory that copies to `device` do not wait for; for another thread."""
        table, mask = self._padded(pad)
        if device.type not in ("cpu", "mps"):
            table, mask = table.pin_memory(), None if mask is None else mask.pin_memory()
        return Tokens(self.ids, self.lengths, (table, mask))

    def _padded(self, pad: int) -> tuple[Tensor, Tensor | None]:
        if self.even:
            return (self.ids.view(len(self), -1) if len(self) else self.ids.view(0, 0)), None
        mask = (torch.arange(int(self.lengths.max()))[None, :] < self.lengths[:, None]).long()
        table = torch.full(mask.shape, pad, dtype=torch.long)
        table[mask.bool()] = self.ids
        return table, mask


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

    def select(self, rows: Tensor) -> Batch:
        """The rows at `rows`, in that order, extras included."""
        return Batch(
            tokens=self.tokens.select(rows),
            group=self.group[rows],
            key=self.key[rows],
            slot=self.slot[rows],
            lang=self.lang[rows],
            extras={name: value[rows] for name, value in self.extras.items()},
        )


def pack(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """Row indices in chunks, each row in exactly one; rows times longest of a chunk is at most `budget`.

    `lengths` (N,) are token counts, `most` bounds the rows of a chunk. The longest rows come first, so that the peak of
    memory is reached at the start and the estimated remaining time is too long rather than too short; equal lengths
    keep their order. A row longer than the budget is a chunk of its own. Raises ValueError if the budget is not
    positive.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least one token, got {budget}")
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    chunks, start = [], 0
    while start < len(order):
        longest = max(1, int(counts[order[start]]))  # an empty row still takes one place
        stop = start + min(max(1, budget // longest), most or len(order))
        chunks.append(order[start:stop])
        start = stop
    return chunks
