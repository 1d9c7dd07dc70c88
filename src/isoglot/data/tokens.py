"""Token ids of many sentences in one ragged table, and how its rows are divided into chunks.

Ragged, so that an encoder pads only the chunk that it receives: a chunk of short sentences costs nothing for a long one
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token ids of N sentences, end to end. `ids` (sum of lengths,) and `lengths` (N,), both int64.

    table   what `Encoder.prepared` makes of the ids in advance
    """

    ids: Ids
    lengths: Ids
    table: Any = None

    @classmethod
    def empty(cls, rows: int = 0) -> Tokens:
        """The tokens of `rows` sentences without any."""
        return cls(np.zeros(0, np.int64), np.zeros(rows, np.int64))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Ids:
        """(N,) where each sentence begins in `ids`."""
        starts: Ids = self.lengths.cumsum() - self.lengths
        return starts

    def select(self, rows: ArrayLike) -> Tokens:
        """The sentences at `rows` (M,), in that order."""
        rows = np.asarray(rows)
        lengths = self.lengths[rows]
        shift = np.repeat(self.starts[rows] - (lengths.cumsum() - lengths), lengths)
        return Tokens(self.ids[np.arange(len(shift)) + shift], lengths)

    @property
    def even(self) -> bool:
        """Whether all sentences have the same length, so that nothing is padded."""
        return not len(self) or bool(self.lengths.min() == self.lengths.max())

    def padded(self, pad: int = 0) -> tuple[Ids, Ids | None]:
        """`input_ids` and `attention_mask`, both (N, T) int64, T the longest sentence; no mask if nothing is padded."""
        if self.even:
            return self.ids.reshape(len(self), -1 if len(self) else 0), None
        mask = np.arange(self.lengths.max()) < self.lengths[:, None]
        table = np.full(mask.shape, pad, np.int64)
        table[mask] = self.ids
        return table, mask.astype(np.int64)


def pack(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[Ids]:
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


def concatenate(parts: Sequence[Tokens]) -> Tokens:
    """The sentences of all parts, in order."""
    parts = [Tokens.empty(), *parts]
    return Tokens(np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts]))
