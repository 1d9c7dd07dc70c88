"""Vectors of an index on disk: one `.npy` file that grows in place, memory-mapped, searched block by block.

The database of the index (store.py) records how many rows count: further rows are of a writer that was killed, and
the next one cuts them off. However the sentences came in, the same ones in the same order make the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import CorpusError, SearchError
from isoglot.store import has_header, map_rows

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

ROWS = 16_384  # searched at a time: 25 MB of 384 dimensions
NAME = "vectors.npy"


class Table:
    """The vectors (rows, dim) of an index, memory-mapped. Whatever is read of it is finite, or `SearchError` is raised.

    Raises `SearchError` for a file that is missing or cut short.
    """

    def __init__(self, folder: Path, rows: int, dim: int) -> None:
        self.path = folder / NAME
        try:
            self._map: Vectors = map_rows(self.path, rows, dim)
            if rows and not has_header(self.path, dim):
                raise SearchError(f"{self.path}: is not a table of {dim} columns; make the index again")
        except CorpusError as error:
            raise SearchError(f"{self.path}: is missing or cut short; make the index again") from error
        self._checked = np.zeros(-(-rows // ROWS), bool)

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
            raise SearchError(f"{self.path}: holds a vector that is not finite; make the index again")


def faiss_module() -> Any:
    """FAISS. Raises `SearchError` with the line to type if it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise SearchError('indexes are searched with FAISS: pip install "isoglot[faiss]"') from error
    return faiss


def nearest(
    table: Table, queries: Vectors, k: int, *, first: int = 0, keep: NDArray[np.bool_] | None = None
) -> tuple[Vectors, Rows]:
    """Scores and rows, both (Q, at most k), of the greatest inner products among rows `first` and on; exact.

    `keep` (all rows,) leaves out the rows where it is false.
    """
    faiss = faiss_module()
    scores, rows = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    for start, block in table.blocks(first):
        chosen = np.arange(len(block)) if keep is None else np.flatnonzero(keep[start : start + len(block)])
        if len(chosen):
            among = block if len(chosen) == len(block) else block[chosen]
            found, places = faiss.knn(queries, among, min(k, len(chosen)), metric=faiss.METRIC_INNER_PRODUCT)
            scores, rows = best(scores, rows, found, start + chosen[places], k)
    return scores, rows


def best(
    scores: NDArray[Any], rows: Rows, more_scores: NDArray[Any], more_rows: Rows, k: int
) -> tuple[NDArray[Any], Rows]:
    """The k greatest of two tables, best first, of equal scores the lower row first."""
    scores, rows = np.concatenate([scores, more_scores], axis=1), np.concatenate([rows, more_rows], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)
