"""A faster product for mining, by torch: half the bits, and on processors that have bfloat16 a fraction of the time."""

from __future__ import annotations

import numpy as np

from isoglot.search.top import Floats


def bfloat16(rows: Floats, columns: Floats, out: Floats) -> None:
    """Inner products of rows (H, D) with columns (W, D) in bfloat16, into `out` (H, W) float32.

    For `product` of `neighbours`: eight bits of each score are right, and `neighbours` scores its candidates again.
    Without hardware for bfloat16 this is slower than float32.
    """
    import torch

    # What the caller hands over may be read-only, which torch only warns about; nothing is written to it.
    left, right = (torch.from_numpy(np.require(part, requirements="W")).bfloat16() for part in (rows, columns))
    torch.from_numpy(out).copy_(left @ right.T)
