"""Token ids of many sentences in one ragged table, and how its rows are divided into chunks.

Ragged, so that an encoder pads only the chunk that it receives: a chunk of short sentences costs nothing for a long one
elsewhere.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.int64]

_DEVICE_PADDING = 1.1  # on an accelerator, where a chunk is so large that it would have sentences of all lengths
# Positions that a cut must save there. A chunk takes the host some 20 ms in a training step of 12 layers, a third of
# it forward, whatever its size; an H100 computes 400,000 to 2,000,000 positions a second meanwhile. More layers take
# the host longer and the device too.
_WORTH = 8192


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

    def pad(self, pad: int = 0) -> tuple[Ids, Ids | None]:
        """`input_ids` and `attention_mask`, both (N, T) int64, T the longest sentence; no mask if nothing is padded."""
        if not len(self) or self.lengths.min() == self.lengths.max():
            return self.ids.reshape(len(self), -1 if len(self) else 0), None
        mask = np.arange(self.lengths.max()) < self.lengths[:, None]
        table = np.full(mask.shape, pad, np.int64)
        table[mask] = self.ids
        return table, mask.astype(np.int64)


def padding_on(device: Any) -> float:
    """The `padding` of `pack` on a device: unlimited on a CPU, whose chunks are small."""
    return math.inf if str(device) == "cpu" else _DEVICE_PADDING


def pack(lengths: NDArray[np.integer], budget: int, *, most: int | None = None, padding: float = math.inf) -> list[Ids]:
    """Row indices in chunks, each row in exactly one; rows times longest of a chunk is at most `budget`.

    `lengths` (N,) are token counts, `most` bounds the rows of a chunk. The longest rows come first, so that the peak of
    memory is reached at the start and the estimated remaining time is too long rather than too short; equal lengths
    keep their order. A row longer than the budget is a chunk of its own. Raises ValueError if the budget is not
    positive.

    With `padding`, chunks are cut further, each time where most positions are saved, until all of them together have at
    most `padding` times as many positions as tokens, or no cut saves `_WORTH` positions.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least one token, got {budget}")
    order = np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")
    counts = np.maximum(lengths[order], 1)  # an empty row still takes one place
    stops, positions, bound = [0], 0, padding * counts.sum() if len(order) else math.inf
    while stops[-1] < len(order):
        start, longest = stops[-1], int(counts[stops[-1]])
        stops.append(min(start + min(max(1, budget // longest), most or len(order)), len(order)))
        positions += (stops[-1] - start) * longest

    def best_cut(start: int, stop: int) -> tuple[int, int, int, int]:
        """The positions that it saves, the chunk's first row, the cut and the chunk's end."""
        saved = np.arange(stop - start, 0, -1) * (counts[start] - counts[start:stop])
        return int(saved.max()), start, start + int(saved.argmax()), stop

    cuts = sorted(map(best_cut, stops, stops[1:])) if positions > bound else []
    while positions > bound and cuts[-1][0] >= _WORTH:
        saved, start, cut, stop = cuts.pop()
        positions -= saved
        stops.append(cut)
        for half in ((start, cut), (cut, stop)):
            insort(cuts, best_cut(*half))
    return np.split(order, sorted(stops)[1:-1]) if len(order) else []


def concatenate(parts: Sequence[Tokens]) -> Tokens:
    """The sentences of all parts, in order."""
    parts = [Tokens.empty(), *parts]
    return Tokens(np.concatenate([part.ids for part in parts]), np.concatenate([part.lengths for part in parts]))
