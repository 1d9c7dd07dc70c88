"""Vectors of an index: on disk one `.npy` file that grows in place, read and searched block by block.

The file is not memory-mapped: if it were truncated, the next access to a missing page would end the process. The
database of the index (store.py) records which file it is and how many rows count: further rows are those of a killed
writer, which the next one removes. The same sentences in the same order give the same file, in however many additions.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import SearchError
from isoglot.core.plugins import torch_half
from isoglot.data.store import HEADER, is_header
from isoglot.search.best import LOWEST, Best
from isoglot.search.exact import accelerator

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

ROWS = 16_384  # added at a time: 25 MB of 384 dimensions
BLOCK = 4_096  # read and searched at a time: 6 MB
_GROUP = 32  # columns whose maximum is compared first
_MANY = 64  # queries for which the products of a block take longer than reading it


class Table:
    """The vectors (rows, dim) of an index, in memory or in a file. Reading a damaged file raises `SearchError`."""

    def __init__(self, vectors: Vectors) -> None:
        self._vectors, self.shape = vectors, (len(vectors), vectors.shape[1])

    @staticmethod
    def open(path: Path, rows: int, dim: int) -> Table:
        """A file, which stays open. Raises `SearchError` if it is truncated, `FileNotFoundError` if it is missing."""
        return _FileTable(path, rows, dim) if rows else Table(np.empty((0, dim), np.float32))

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, first: int = 0) -> Iterator[tuple[int, Vectors]]:
        """The number of the first row and the rows of each block from row `first` on, valid until the next one."""
        room = np.empty((BLOCK, self.shape[1]), np.float32)
        for start in range(first // BLOCK * BLOCK, len(self), BLOCK):
            skipped = max(first - start, 0)
            yield start + skipped, self._block(start, room[: len(self) - start])[skipped:]

    def _block(self, start: int, room: Vectors) -> Vectors:
        return self._vectors[start : start + len(room)]

    def __getitem__(self, rows: Rows) -> Vectors:
        """Copies of some rows."""
        return np.asarray(self._vectors[rows])


class _FileTable(Table):
    """Rows of an open file, which others may truncate: that, and a value that is not finite, are a `SearchError`."""

    def __init__(self, path: Path, rows: int, dim: int) -> None:
        self.path, self.shape = path, (rows, dim)
        self._width, self._seeking = dim * np.dtype(np.float32).itemsize, threading.Lock()
        self._checked = np.zeros(-(-rows // BLOCK), np.bool_)
        try:
            self._stream = path.open("rb", buffering=0)
        except FileNotFoundError:  # compaction by another process may have replaced it
            raise
        except OSError as error:
            raise self._size_error() from error
        weakref.finalize(self, self._stream.close)
        if os.fstat(self._stream.fileno()).st_size < HEADER + rows * self._width:
            raise self._size_error()
        if not is_header(self._stream.read(HEADER), dim):
            raise SearchError(f"{path}: is not a table of {dim} columns; make the index again")

    def _block(self, start: int, room: Vectors) -> Vectors:
        """The rows of a block, whose values are checked the first time."""
        self._read(room, start)
        if not self._checked[start // BLOCK]:
            self._require_finite(room)
            self._checked[start // BLOCK] = True
        return room

    def __getitem__(self, rows: Rows) -> Vectors:
        vectors: Vectors = np.empty((len(rows), self.shape[1]), np.float32)
        for place, row in enumerate(rows.tolist()):
            self._read(vectors[place], row)
        self._require_finite(vectors)
        return vectors

    def _read(self, out: Vectors, first: int) -> None:
        start = HEADER + first * self._width
        if hasattr(os, "preadv"):
            size = os.preadv(self._stream.fileno(), [out.data], start)
        else:  # Windows, and macOS before 11
            with self._seeking:
                self._stream.seek(start)
                size = self._stream.readinto(out.data) or 0
        if size < out.nbytes:
            raise self._size_error()

    def _require_finite(self, rows: Vectors) -> None:
        with np.errstate(invalid="ignore"):
            total = rows.sum(dtype=np.float64)  # can't overflow, and is not finite if any value is not
        if not np.isfinite(total):
            raise SearchError(f"{self.path}: contains a vector that is not finite; make the index again")

    def _size_error(self) -> SearchError:
        return SearchError(f"{self.path}: is missing or truncated; make the index again")


def find_nearest(
    table: Table,
    queries: Vectors,
    k: int,
    *,
    first: int = 0,
    keep: NDArray[np.bool_] | None = None,
    device: str | None = None,
) -> Rows:
    """Rows (Q, at most k) of the greatest inner products among rows `first` and on; of equal ones the lower row first.

    `keep` (all rows,) leaves out the rows where it is False. `device` computes the products, as in `search.neighbours`,
    of so many queries that it pays.
    """
    wanted = np.arange(first, len(table)) if keep is None else first + np.flatnonzero(keep[first : len(table)])
    k = min(k, len(wanted))
    if not k or not len(queries):
        return np.empty((len(queries), k), np.int64)
    place = accelerator(device) if len(queries) >= _MANY else None
    blocks = _read_blocks(table, first, wanted)
    if place is not None:
        return np.asarray(wanted[torch_half("search.device").nearest(queries, blocks, k, place)])
    best = Best.empty(len(queries), k)
    for done, block in blocks:
        scores = np.full((len(queries), -(-len(block) // _GROUP) * _GROUP), LOWEST, np.float32)
        scores[:, : len(block)] = queries @ block.T
        maxima = scores.reshape(len(queries), -1, _GROUP).max(axis=2)
        best.take(maxima, lambda row, column, of=scores: of[row, column], group=_GROUP, first=done)  # type: ignore[misc]
    return np.asarray(wanted[best.ids])


def _read_blocks(table: Table, first: int, wanted: Rows) -> Iterator[tuple[int, Vectors]]:
    """The vectors of the wanted rows, block by block, with the number of wanted rows before."""
    done = 0
    for start, block in table.blocks(first):
        places = wanted[done : np.searchsorted(wanted, start + len(block))] - start
        if len(places):
            yield done, block if len(places) == len(block) else block[places]
            done += len(places)
