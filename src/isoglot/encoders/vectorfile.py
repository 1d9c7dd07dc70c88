"""A .npy file whose number of rows is not known until its end: room for the header first, then rows, then the header.

Until the header is written the file begins with zeros, which no reader takes for NumPy's format.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np

HEADER = 128  # bytes; NumPy pads the header of a table to a multiple of 64 and leaves room for it to grow


def header(count: int, width: int, dtype: str) -> bytes:
    """The 128 bytes that stand before `count` rows of `width` values."""
    stream = BytesIO()
    shape = {"descr": dtype, "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_1_0(stream, shape)
    made = stream.getvalue()
    assert len(made) == HEADER, "NumPy's header of a table has another length than ever"
    return made
