"""Cuts rows of unequal length into chunks with little padding: sorted by length, bounded by a budget of tokens.

A budget of tokens, not of rows, because a CPU is fastest while a chunk fits its cache (some 512 tokens) and a GPU while
it fills the device, whatever the sentences' lengths. Inference and training cut their rows here alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pack(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """Row indices in chunks, each row in exactly one; rows times longest of a chunk is at most `budget`.

    `lengths` (N,) are token counts, `most` bounds the rows of a chunk. The longest rows come first, so that the peak of
    memory comes at once and an estimate of the time left errs on the long side; equal lengths keep their order. A row
    longer than the budget is a chunk of its own. Raises ValueError if the budget is not positive.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least one token, got {budget}")
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    chunks, start = [], 0
    while start < len(order):
        longest = max(1, int(counts[order[start]]))  # an empty row still costs its place
        stop = start + min(max(1, budget // longest), most or len(order))
        chunks.append(order[start:stop])
        start = stop
    return chunks
