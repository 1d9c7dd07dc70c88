"""Cuts rows of unequal length into chunks that waste little on padding: sorted by length, bounded by a token budget.

A budget of tokens, not of rows, because a CPU is fastest while a chunk fits its cache (some 512 tokens) and a GPU while
it fills the device, whatever the sentences' lengths. Inference and training cut their rows here alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pack(lengths: NDArray[np.integer], budget: int) -> list[NDArray[np.int64]]:
    """Row indices in chunks, each row in exactly one; rows times longest of a chunk is at most `budget`.

    `lengths` (N,) are token counts. The longest rows come first, so that the peak of memory is met at once and an
    estimate of the time left errs on the long side; equal lengths keep their order. A row longer than the budget is
    a chunk of its own. Raises ValueError if the budget is not positive.
    """
    if budget < 1:
        raise ValueError(f"budget must be at least one token, got {budget}")
    counts = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    chunks, start = [], 0
    while start < len(order):
        longest = max(1, int(counts[order[start]]))  # an empty row still costs its place
        stop = start + max(1, budget // longest)
        chunks.append(order[start:stop])
        start = stop
    return chunks
