"""Vectors of an index on disk: `.npy` files of at most `ROWS` rows, memory-mapped, searched one after another.

Files never change: adding to a shard that is not full writes it anew under another name, `NUMBER-ROWS.npy`. However
the sentences came in, the same ones in the same order make the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write
from isoglot.errors import SearchError

Vectors = NDArray[np.float32]
Rows = NDArray[np.int64]

ROWS = 16_384  # 25 MB of 384 dimensions: what the smallest addition may have to write again


def path_of(folder: Path, number: int, rows: int) -> Path:
    """Where a shard is kept."""
    return folder / "vectors" / f"{number:05}-{rows}.npy"


def write(path: Path, vectors: Vectors) -> None:
    """Write a shard, whole and synced, or nothing."""
    with atomic_write(path, binary=True) as stream:
        np.save(stream, vectors)


class Shard:
    """A file of vectors (rows, dim), memory-mapped. Whatever is read of it is finite, or `SearchError` is raised.

    Raises `SearchError` for a file that is cut or another, FileNotFoundError for none.
    """

    def __init__(self, path: Path, rows: int, dim: int) -> None:
        try:
            table = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise
        except Exception as error:  # the header is a Python literal: damaged bytes can raise whatever its parser can
            raise SearchError(f"{path}: can't be read as vectors ({error}); make the index again") from error
        if table.shape != (rows, dim) or table.dtype != np.float32 or not table.flags.c_contiguous:
            raise SearchError(f"{path}: holds {table.dtype} {table.shape}, not ({rows}, {dim}); make the index again")
        self.path = path
        self._table: Vectors = table
        self._checked = False

    def __len__(self) -> int:
        return len(self._table)

    def all(self) -> Vectors:
        """The map itself; the first time it is read through."""
        if not self._checked:
            self._require_finite(self._table)
            self._checked = True
        return self._table

    def some(self, places: Rows) -> Vectors:
        """Copies of some rows."""
        rows = self._table[places]
        if not self._checked:
            self._require_finite(rows)
        return rows

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
    shards: Sequence[Shard],
    queries: Vectors,
    k: int,
    *,
    first: int = 0,
    keep: NDArray[np.bool_] | None = None,
) -> tuple[Vectors, Rows]:
    """Scores and rows, both (Q, at most k), of the greatest inner products among rows `first` and on; exact.

    `keep` (all rows,) leaves out the rows where it is false.
    """
    faiss = faiss_module()
    scores, rows = np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
    start = 0
    for shard in shards:
        chosen = np.arange(max(first - start, 0), len(shard))
        if keep is not None:
            chosen = chosen[keep[start + chosen]]
        if len(chosen):
            block = shard.all() if len(chosen) == len(shard) else shard.some(chosen)
            found, places = faiss.knn(queries, block, min(k, len(chosen)), metric=faiss.METRIC_INNER_PRODUCT)
            scores, rows = best(scores, rows, found, start + chosen[places], k)
        start += len(shard)
    return scores, rows


def best(
    scores: NDArray[Any], rows: Rows, more_scores: NDArray[Any], more_rows: Rows, k: int
) -> tuple[NDArray[Any], Rows]:
    """The k greatest of two tables, best first, of equal scores the lower row first."""
    scores, rows = np.concatenate([scores, more_scores], axis=1), np.concatenate([rows, more_rows], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1)


def gather(shards: Sequence[Shard], rows: Rows, dim: int) -> Vectors:
    """Copies (len(rows), dim) of some rows."""
    out = np.empty((len(rows), dim), np.float32)
    number, place = np.divmod(rows, ROWS)
    for shard in np.unique(number).tolist():
        out[number == shard] = shards[shard].some(place[number == shard])
    return out
