"""Vectors of an index: on disk one `.npy` file that grows in place, memory-mapped, searched block by block.

The database of the index (store.py) records how many rows count: further rows are those of a killed writer, which the
next one removes. The same sentences in the same order give the same file, in however many additions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import CorpusError, SearchError
from isoglot.search.exact import LOWEST, Best
from isoglot.store import has_header, map_rows

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

ROWS = 16_384  # searched at a time: 25 MB of 384 dimensions
NAME = "vectors.npy"
_GROUP = 32  # columns whose maximum is compared first


class Table:
    """The vectors (rows, dim) of an index. Reading a value that is not finite raises `SearchError`."""

    def __init__(self, vectors: Vectors, path: Path | None = None) -> None:
        self._map, self.path = vectors, path
        self._checked = np.full(-(-len(vectors) // ROWS), path is None)  # those in memory were checked when added

    @classmethod
    def open(cls, folder: Path, rows: int, dim: int) -> Table:
        """The memory-mapped file of an index. Raises `SearchError` if it is missing or truncated."""
        path = folder / NAME
        try:
            vectors = map_rows(path, rows, dim)
            if rows and not has_header(path, dim):
                raise SearchError(f"{path}: is not a table of {dim} columns; make the index again")
        except CorpusError as error:
            raise SearchError(f"{path}: is missing or truncated; make the index again") from error
        return cls(vectors, path)

    def __len__(self) -> int:
        return len(self._map)

    def blocks(self, first: int = 0) -> Iterator[tuple[int, Vectors]]:
        """The number of the first row and the rows of each block from row `first` on; read through the first time."""
        for number in range(first // ROWS, len(self._checked)):
            block = self._map[number * ROWS : (number + 1) * ROWS]
            if not self._checked[number]:
                self._require_finite(block)
                self._checked[number] = True
            skipped = max(first - number * ROWS, 0)
            yield number * ROWS + skipped, block[skipped:]

    def __getitem__(self, rows: Rows) -> Vectors:
        """Copies of some rows."""
        found: Vectors = np.array(self._map[rows])
        self._require_finite(found)
        return found

    def _require_finite(self, rows: Vectors) -> None:
        with np.errstate(invalid="ignore"):
            total = rows.sum(dtype=np.float64)  # can't overflow, and is not finite if any value is not
        if not np.isfinite(total):
            raise SearchError(f"{self.path}: contains a vector that is not finite; make the index again")


def nearest(table: Table, queries: Vectors, k: int, *, first: int = 0, keep: NDArray[np.bool_] | None = None) -> Rows:
    """Rows (Q, at most k) of the greatest inner products among rows `first` and on; of equal ones the lower row first.

    `keep` (all rows,) leaves out the rows where it is False.
    """
    wanted = np.arange(first, len(table)) if keep is None else first + np.flatnonzero(keep[first : len(table)])
    best = Best.empty(len(queries), min(k, len(wanted)))
    if not best.ids.size:
        return best.ids
    done = 0
    for start, block in table.blocks(first):
        places = wanted[done : np.searchsorted(wanted, start + len(block))] - start
        if not len(places):
            continue
        among = block if len(places) == len(block) else block[places]
        scores = np.full((len(queries), -(-len(places) // _GROUP) * _GROUP), LOWEST, np.float32)
        scores[:, : len(places)] = queries @ among.T
        maxima = scores.reshape(len(queries), -1, _GROUP).max(axis=2)
        best.take(maxima, lambda row, column, of=scores: of[row, column], group=_GROUP, first=done)  # type: ignore[misc]
        done += len(places)
    return np.asarray(wanted[best.ids])
