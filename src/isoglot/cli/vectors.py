"""The vectors that mining works with, mapped from a file: those that a model makes, and those that were given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write
from isoglot.data.vectors import open_table, require_finite
from isoglot.encoders import Encoder
from isoglot.encoders.resumable import encode_file
from isoglot.errors import EncoderError
from isoglot.search.lines import Lines

_BLOCK = 8192  # rows copied at a time


def encoded(
    encoder: Encoder, text: Path, into: Path, *, dtype: str = "float32", progress: Callable[[int], None] | None = None
) -> NDArray[Any]:
    """Unit vectors (R, D) of the lines of the file `text`, a read-only memory map of the file `into`.

    What is there and whole is kept; with other lines, another encoder or type, everything is encoded again. `progress`
    is called with the number of lines done, those of earlier runs counted.
    """

    def tick(done: int, _total: int | None) -> None:
        if progress is not None:
            progress(done)

    return encode_file(encoder, text, output=into, normalize_embeddings=True, dtype=dtype, keep=True, progress=tick)


def select(vectors: NDArray[Any], lines: Lines, path: Path, into: Path) -> NDArray[Any]:
    """The vectors of the rows of `lines`, given those of all lines of its file, which `path` names.

    They are copied to `into` if lines are left out. Raises `EncoderError` for another number of vectors than lines,
    `CorpusError` for a row that is not finite.
    """
    if len(vectors) != len(lines.rows):
        raise EncoderError(
            f"{path}: has {len(vectors)} rows for the {len(lines.rows)} lines of {lines.path}; encode that file"
        )
    require_finite(vectors, path)
    if len(lines) == len(vectors):
        return vectors
    shape = (len(lines), vectors.shape[1])
    with atomic_write(into, binary=True) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(vectors.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, len(lines), _BLOCK):
            stream.write(np.ascontiguousarray(vectors[lines.numbers[start : start + _BLOCK] - 1]).data)
    return open_table(into)
