"""Vectors in a byte or a bit for each dimension, as sentence-transformers' `quantize_embeddings` makes them."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import as_array, check_arguments
from isoglot.core.errors import quote
from isoglot.data.vectors import not_finite

OUTPUT_PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
_FEW = 100  # vectors whose ranges say little about others


def check_output_precision(kind: str) -> None:
    """Raise ValueError for an unknown type of the output."""
    if kind not in OUTPUT_PRECISIONS:
        raise ValueError(
            f"output_precision is the type of the vectors that are returned, one of {', '.join(OUTPUT_PRECISIONS)}, "
            f"got {kind!r}; how they are computed is precision="
        )


@check_arguments()
def find_ranges(vectors: Any, *, dim: int | None = None) -> NDArray[np.float32]:
    """(2, D) the least and greatest value of each dimension of vectors (N, D), for `calibration`.

    Save them with `numpy.save`. Raises ValueError for anything but finite vectors, for none, and if D is not dim.
    """
    table = as_array(vectors)
    if table.ndim != 2 or not len(table) or table.dtype.kind not in "fiu" or len(not_finite(table)):
        raise ValueError(f"calibration needs finite vectors (N, D), got {quote(vectors)}")
    if dim is not None and table.shape[1] != dim:
        raise ValueError(f"calibration must be vectors of {dim} dimensions, got {table.shape[1]}")
    return np.stack([table.min(axis=0), table.max(axis=0)]).astype(np.float32)


@check_arguments()
def quantize_vectors(vectors: Any, kind: str, *, calibration: Any = None) -> NDArray[Any]:
    """Vectors (N, D), or a single one (D,), in fewer bits.

    kind         binary, ubinary: a bit for each dimension, 1 for values above 0, eight to a byte, the first dimension
                 highest, (N, ceil(D / 8)); as int8 (the byte less 128) or uint8. int8, uint8: the range of each
                 dimension in 256 steps, (N, D); what lies outside becomes the nearest step. float32: only the type
    calibration  vectors (M, D) like those that are to be stored, or their `find_ranges` (2, D). None: the ranges of
                 these vectors, with a warning if they are few. Only int8 and uint8 need it; vectors that are compared
                 with each other must have the same

    Raises ValueError for an unknown kind, values that are not finite, and a calibration of another width.
    """
    check_output_precision(kind)
    table = as_array(vectors)
    if table.ndim not in (1, 2) or table.dtype.kind not in "fiu":
        raise ValueError(f"vectors must be numbers (N, D) or (D,), got {quote(vectors)}")
    rows = np.atleast_2d(table)
    if len(bad := not_finite(rows)):
        raise ValueError(f"row {bad[0]} of the vectors contains NaN or infinity")
    if kind == "float32":
        result: NDArray[Any] = rows.astype(np.float32)
    else:
        result = np.packbits(rows > 0, axis=1) if kind.endswith("binary") else _in_steps(rows, kind, calibration)
        if not kind.startswith("u"):
            result = (result ^ 128).view(np.int8)
    return result[0] if table.ndim == 1 else result


def _in_steps(rows: NDArray[Any], kind: str, calibration: Any) -> NDArray[Any]:
    if calibration is None and len(rows) < _FEW:
        problem = f"the ranges of {kind} are those of {len(rows)} vectors, too few to suit others"
        logging.getLogger("isoglot").warning("warning: %s; pass a calibration", problem)
    if calibration is None and not len(rows):
        return rows.astype(np.uint8)
    lowest, highest = find_ranges(rows if calibration is None else calibration, dim=rows.shape[1])
    step = (highest - lowest) / np.float32(255)
    steps = (rows - lowest) / np.where(step > 0, step, 1)
    rounded: NDArray[np.uint8] = steps.clip(0, 255).astype(np.uint8)
    return rounded
