"""Tables of vectors, one row each: the one place that scales rows to length one and finds rows that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def not_finite(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the rows (N, D) that hold NaN or infinity, ascending."""
    return np.flatnonzero(~np.isfinite(rows).all(axis=1))


def unit(rows: NDArray[Any], dtype: DTypeLike = np.float32) -> NDArray[Any]:
    """A copy of rows (N, D) at length one, computed in `dtype`; a row of zeros stays as it is.

    Raises ValueError, naming the first row, for NaN or infinity.
    """
    table = np.asarray(rows, dtype)
    # Divided by the largest value first: the square of a very small or very large one would leave the range.
    largest = np.maximum(table.max(axis=1, initial=0), -table.min(axis=1, initial=0))[:, None]
    if len(bad := not_finite(largest)):
        raise ValueError(f"row {bad[0]} of the vectors holds NaN or infinity")
    scaled = table / np.where(largest > 0, largest, 1)
    # Summed in float64, so that the sum does not depend on the rows that stand beside it.
    lengths = np.sqrt(np.einsum("nd,nd->n", scaled, scaled, dtype=np.float64)).astype(scaled.dtype)[:, None]
    scaled /= np.where(lengths > 0, lengths, 1)
    return np.asarray(scaled)
