"""Sentences into a memory map of vectors, shard by shard, so that a run that was killed goes on where it stopped.

What is special here: a journal beside the vectors holds a checksum of every finished shard, and a run believes what
both agree on, no more.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write, digest
from isoglot.encoders import Encoder, encode
from isoglot.encoders.identity import identity
from isoglot.errors import EncoderError
from isoglot.search.lines import Lines

SHARD = 8192  # sentences; half a minute of a small transformer's work on two cores


def encode_lines(
    encoder: Encoder,
    lines: Lines,
    text: Path,
    into: Path,
    *,
    dtype: str = "float32",
    shard: int = SHARD,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[Any]:
    """Unit vectors (R, D) of the sentences, a read-only memory map of the file `into`.

    `text` is the file that the sentences lie in: with other sentences, another encoder or type, everything is encoded
    anew. `progress` is called with (sentences done, sentences in all).
    """
    journal = into.with_suffix(".json")
    key = f"{identity(encoder)} {digest(text)} {dtype} {shard}"
    sums = _finished(journal, into, key, (len(lines), encoder.dim), dtype, shard)
    mode = "r+" if sums else "w+"
    table = np.lib.format.open_memmap(into, mode=mode, dtype=dtype, shape=(len(lines), encoder.dim))
    for start in range(len(sums) * shard, len(lines), shard):
        part = encode(encoder, lines.part(start, start + shard), normalize=True, dtype=dtype)
        table[start : start + shard] = part
        table.flush()
        sums.append(_sum(part))
        _write(journal, key, sums)
        if progress is not None:
            progress(min(start + shard, len(lines)), len(lines))
    del table
    return open_vectors(into)


def open_vectors(path: Path) -> NDArray[Any]:
    """A table of vectors (N, D) in float16, float32 or float64, mapped. Raises `EncoderError` for anything else."""
    try:
        table: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise EncoderError(f"{path}: is no NumPy table ({error}); save the vectors with numpy.save") from error
    if table.ndim != 2 or table.dtype.kind != "f" or not table.shape[1]:
        raise EncoderError(f"{path}: holds {table.dtype} of shape {table.shape}; rows of floats are needed")
    return table


def select(vectors: NDArray[Any], lines: Lines, path: Path, into: Path) -> NDArray[Any]:
    """The vectors of the rows of `lines`, given those of all lines of its file, which `path` names.

    They are copied to `into` if lines are left out. Raises `EncoderError` for another number of vectors than lines.
    """
    if len(vectors) != len(lines.rows):
        raise EncoderError(
            f"{path}: has {len(vectors)} rows for the {len(lines.rows)} lines of {lines.path}; encode that file"
        )
    if len(lines) == len(vectors):
        return vectors
    shape = (len(lines), vectors.shape[1])
    table = np.lib.format.open_memmap(into, mode="w+", dtype=vectors.dtype, shape=shape)
    for start in range(0, len(lines), SHARD):
        table[start : start + SHARD] = vectors[lines.numbers[start : start + SHARD] - 1]
    del table
    return open_vectors(into)


def _finished(journal: Path, into: Path, key: str, shape: tuple[int, int], dtype: str, shard: int) -> list[int]:
    """The checksums of the shards that are there and right, from the first on."""
    try:
        known = json.loads(journal.read_text(encoding="utf-8"))
        table = np.load(into, mmap_mode="r", allow_pickle=False)
        if known["key"] != key or table.shape != shape or table.dtype != np.dtype(dtype):
            return []
        sums = [int(one) for one in known["sums"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    for place, one in enumerate(sums):
        if _sum(table[place * shard : (place + 1) * shard]) != one:
            return sums[:place]
    return sums


def _sum(part: NDArray[Any]) -> int:
    return zlib.crc32(np.ascontiguousarray(part).data)


def _write(journal: Path, key: str, sums: list[int]) -> None:
    with atomic_write(journal) as stream:
        json.dump({"key": key, "sums": sums}, stream)
