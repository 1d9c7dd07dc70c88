"""The vectors that mining works with, mapped from a file: those that a model makes, and those that were given.

A model's are made by `encode_file`, so that a run that was killed goes on where it stopped. Beside them stands what
they were made of and, when they are finished, their digest, so that only vectors that are whole are used again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write, digest
from isoglot.data.vectors import open_table, require_finite
from isoglot.encoders import Encoder
from isoglot.encoders.base import identity
from isoglot.encoders.engine import plan
from isoglot.encoders.resumable import encode_file, journal_path, partial_path
from isoglot.errors import EncoderError
from isoglot.search.lines import Lines

_BLOCK = 8192  # rows copied at a time


def encoded(
    encoder: Encoder, text: Path, into: Path, *, dtype: str = "float32", progress: Callable[[int], None] | None = None
) -> NDArray[Any]:
    """Unit vectors (R, D) of the lines of the file `text`, a read-only memory map of the file `into`.

    With other lines, another encoder or type, or if a finished file was damaged, everything is encoded anew.
    `progress` is called with the number of lines done, those of earlier runs counted.
    """
    stamp, before = into.with_suffix(".json"), 0
    key = f"{identity(encoder)} {digest(text)} {plan(encoder, normalize_embeddings=True, dtype=dtype)}"
    known = _read(stamp)
    if known.get("key") != key:
        for path in (into, partial_path(into), journal_path(into)):
            path.unlink(missing_ok=True)
        known = {"key": key}
        _write(stamp, known)

    def resumed(lines: int) -> None:
        nonlocal before
        before = lines

    def tick(done: int, _total: int | None) -> None:
        if progress is not None:
            progress(before + done)

    # A file without a digest was finished, for it has its name, but the run ended before it was looked over.
    if not into.is_file() or known.get("digest") not in (None, digest(into)):
        encode_file(encoder, text, output=into, normalize_embeddings=True, dtype=dtype, progress=tick, resumed=resumed)
        known = {"key": key}
    if "digest" not in known:
        _write(stamp, known | {"digest": digest(into)})
    return open_table(into)


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


def _read(stamp: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(stamp.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _write(stamp: Path, known: dict[str, Any]) -> None:
    with atomic_write(stamp) as stream:
        json.dump(known, stream)
