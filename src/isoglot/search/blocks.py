"""Blocks of vectors, as they are compared, and the names of how."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoglot.data.vectors import not_finite, unit
from isoglot.search.best import Floats

Metric = Literal["dot", "cosine"]
Margin = Literal["absolute", "distance", "ratio"]
Direction = Literal["max", "forward", "backward", "intersection"]


def load(vectors: NDArray[Any], start: int, stop: int, metric: Metric) -> Floats:
    """Rows of a table as float32, for "cosine" normalised. Raises `ValueError` for a value that is not finite."""
    rows = vectors[start:stop] if metric == "cosine" else np.asarray(vectors[start:stop], np.float32)
    if len(bad := not_finite(rows)):
        raise ValueError(f"row {start + bad[0]} of the vectors contains a value that is not finite")
    return unit(rows) if metric == "cosine" else rows


def round_up(size: int, group: int) -> int:
    """The next multiple of a group, at least one."""
    return max(1, -(-size // group)) * group
