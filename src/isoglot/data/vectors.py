"""Tables of vectors that were made elsewhere: opened without running anything that they hold, and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import binary_format, first_bytes
from isoglot.errors import CorpusError

TYPES = ("float16", "float32", "float64")

_MAGIC = b"\x93NUMPY"
_SAVE = "save one table of floats, a row for each text, with numpy.save"
_BLOCK = 1 << 22  # values looked at together


def open_table(path: str | Path) -> NDArray[Any]:
    """A table (N, D) in float16, float32 or float64, mapped from a `.npy` file and read-only.

    Raises `CorpusError` for a missing file, another format, a file that is cut short, and a table of another type or
    shape, one without columns included. Pickles are never loaded.
    """
    head = first_bytes(path)
    if not head.startswith(_MAGIC):
        kind, _ = binary_format(head)
        raise CorpusError(f"is {kind + ', ' if kind else ''}not a NumPy table (.npy); {_SAVE}", file=path)
    try:
        table: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # NumPy reads the header as a Python literal, which can fail in any way
        why = "it holds Python objects" if "object" in str(error) else str(error)
        raise CorpusError(f"is not a NumPy table that can be read ({why}); {_SAVE}", file=path) from None
    if table.dtype.name not in TYPES or table.ndim != 2 or not table.shape[1]:
        raise CorpusError(f"holds {table.dtype} of shape {table.shape}; {_SAVE}", file=path)
    return table


def require_finite(table: NDArray[Any], path: str | Path) -> None:
    """Raise `CorpusError` with the first row, from 0, that holds NaN, infinity or what float32 cannot hold.

    The table is read once, in blocks.
    """
    step = max(1, _BLOCK // table.shape[1])
    for start in range(0, len(table), step):
        with np.errstate(over="ignore"):
            bad = ~np.isfinite(np.asarray(table[start : start + step], np.float32)).all(axis=1)
        if bad.any():
            row = start + int(bad.argmax())
            problem = f"row {row} holds NaN, infinity or a value beyond float32 (rows count from 0); encode it again"
            raise CorpusError(problem, file=path)
