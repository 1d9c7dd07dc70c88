"""Opening a `.npy` file that somebody else wrote: no pickles, and one kind of error whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def open_array(path: Path, *, mapped: bool = True) -> NDArray[Any]:
    """The array of a `.npy` file, as a read-only memory map unless `mapped` is False.

    Raises `OSError` for a file that can't be read and `ValueError` for all else: numpy evaluates the header, and of a
    damaged one its parser raises errors of its own, such as `tokenize.TokenError`.
    """
    try:
        found = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:
        pickled = isinstance(error, ValueError) and "pickle" in str(error)  # numpy's guess at any unknown file
        raise ValueError("not a NumPy array" if pickled else f"not a NumPy array: {error}") from error
    if not isinstance(found, np.ndarray):
        raise ValueError("several arrays in one file")
    return found
