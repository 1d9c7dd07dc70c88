"""Exact nearest neighbours between two sets of vectors, in both directions, in bounded memory.

What is special here: *one* product of each pair of blocks serves both directions, where two searches would multiply
everything twice; top k is two-level (see `top`), so it costs little beside the product; and it runs in a second
thread while the next product is made. Blocks come straight from the arrays given, which may be memory maps larger
than the machine's memory, in float16, float32 or float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.search.top import LOWEST, Best, Floats, Ids

Metric = Literal["dot", "cosine"]

BUDGET = 1 << 28

# Found by measuring. A tile of 2048 x 4096 scores stays in a large cache; groups along rows may be larger than along
# columns, where every element looked at lies in another cache line.
_ROWS, _COLUMNS = 2048, 4096
_ROW_GROUP, _COLUMN_GROUP = 32, 16


class Neighbours(NamedTuple):
    """The nearest of N rows among M, and of M among N; best first, of equal scores the lowest id first."""

    forward_scores: Floats
    forward_ids: Ids
    backward_scores: Floats
    backward_ids: Ids


def neighbours(x: NDArray[Any], y: NDArray[Any], k: int, *, metric: Metric = "dot", budget: int = BUDGET) -> Neighbours:
    """The k rows of `y` (M, D) nearest to each row of `x` (N, D), and the other way round.

    Gives float32 scores and int64 ids, `(N, min(k, M))` forward and `(M, min(k, N))` backward. "cosine" divides every
    row by its length first; a row of zeros then scores 0 with everything. Beside the arrays given and returned, at
    most `budget` bytes are in use. Raises `ValueError` for shapes that do not fit, values that are not finite, and a
    budget too small for the smallest tile.
    """
    _check(x, y, k, metric)
    n, m = len(x), len(y)
    forward, backward = Best.empty(n, min(k, m)), Best.empty(m, min(k, n))
    if n and m:
        _search(x, y, forward, backward, metric=metric, tile=_tile_shape(n, m, x.shape[1], k, budget))
    if not (np.isfinite(forward.scores).all() and (forward.scores > LOWEST).all()):
        raise ValueError("an inner product does not fit float32; scale the vectors down or use metric='cosine'")
    return Neighbours(forward.scores, forward.ids, backward.scores, backward.ids)


def _check(x: NDArray[Any], y: NDArray[Any], k: int, metric: str) -> None:
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not x.shape[1]:
        raise ValueError(f"two tables of vectors of one width are needed, not shapes {x.shape} and {y.shape}")
    if k < 1:
        raise ValueError(f"k is {k}; at least one neighbour must be asked for")
    if metric not in ("dot", "cosine"):
        raise ValueError(f"metric is {metric!r}; use 'dot' or 'cosine'")


def _search(
    x: NDArray[Any], y: NDArray[Any], forward: Best, backward: Best, *, metric: Metric, tile: tuple[int, int]
) -> None:
    """Fill both tables. Blocks go by ascending index in both directions, as `Best.take` needs them."""
    height, width = tile
    place = _places(width)
    buffers = [np.empty(tile, np.float32) for _ in range(2)]
    pending: list[Future[None] | None] = [None, None]
    with ThreadPoolExecutor(1) as worker:
        for turn, (i, j, columns) in enumerate(_blocks(x, y, tile, place, metric)):
            rows = _load(x, i, i + height, metric)
            scores, last = buffers[turn % 2], pending[turn % 2]
            if last is not None:
                last.result()
            np.matmul(rows, columns.T, out=scores[: len(rows)])
            scores[len(rows) :] = LOWEST
            scores[:, place[len(y) - j :]] = LOWEST
            parts = forward.part(i, i + height), backward.part(j, j + width)
            pending[turn % 2] = worker.submit(_take, scores, place, *parts, i, j)
        for future in pending:
            if future is not None:
                future.result()


def _blocks(
    x: NDArray[Any], y: NDArray[Any], tile: tuple[int, int], place: Ids, metric: Metric
) -> Iterator[tuple[int, int, Floats]]:
    """First row, first column and the (width, D) vectors of the columns of every tile; those are loaded once."""
    height, width = tile
    for j in range(0, len(y), width):
        loaded = _load(y, j, j + width, metric)
        columns = np.zeros((width, y.shape[1]), np.float32)
        columns[place[: len(loaded)]] = loaded
        del loaded
        for i in range(0, len(x), height):
            yield i, j, columns


def _take(scores: Floats, place: Ids, forward: Best, backward: Best, i: int, j: int) -> None:
    """Show one tile to the rows it belongs to, and to the columns."""
    height, width = scores.shape
    maxima = scores.reshape(height, _ROW_GROUP, -1).max(axis=1)
    forward.take(
        maxima[: len(forward.scores)], lambda row, column: scores[row, place[column]], group=_ROW_GROUP, first=j
    )
    maxima = scores.reshape(-1, _COLUMN_GROUP, width).max(axis=1)
    maxima = np.ascontiguousarray(maxima[:, place[: len(backward.scores)]].T)
    backward.take(maxima, lambda column, row: scores[row, place[column]], group=_COLUMN_GROUP, first=i)


def _places(width: int) -> Ids:
    """Where each column of a tile is kept, (width,).

    Neighbours that form a group are kept `width / _ROW_GROUP` apart: the maxima of groups are then maxima of whole
    stretches, at the speed of memory, and yet a group is a run of neighbouring ids, as ties need it.
    """
    ids = np.arange(width)
    return (ids % _ROW_GROUP) * (width // _ROW_GROUP) + ids // _ROW_GROUP


def _load(vectors: NDArray[Any], start: int, stop: int, metric: Metric) -> Floats:
    rows = np.asarray(vectors[start:stop], np.float32)
    if not np.isfinite(rows).all():
        bad = start + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise ValueError(f"row {bad} of the vectors holds a value that is not finite")
    if metric == "cosine":
        # Through float64, so that neither tiny nor huge rows lose their direction.
        lengths = np.sqrt(np.einsum("nd,nd->n", rows, rows, dtype=np.float64))
        rows = rows / np.where(lengths > 0, lengths, 1).astype(np.float32)[:, None]
    return rows


def _tile_shape(n: int, m: int, dim: int, k: int, budget: int) -> tuple[int, int]:
    """Rows and columns of a tile: those found fastest, halved until the working memory fits the budget."""
    height, width = min(_ROWS, _padded(n, _COLUMN_GROUP)), min(_COLUMNS, _padded(m, _ROW_GROUP))
    while (need := _memory(height, width, dim, k)) > budget:
        if height > _COLUMN_GROUP and height >= width // 2:
            height = _padded(height // 2, _COLUMN_GROUP)
        elif width > _ROW_GROUP:
            width = _padded(width // 2, _ROW_GROUP)
        elif height > _COLUMN_GROUP:
            height = _padded(height // 2, _COLUMN_GROUP)
        else:
            raise ValueError(f"a memory budget of {budget} bytes is too small; the smallest tile needs {need}")
    return height, width


def _padded(size: int, group: int) -> int:
    return max(1, -(-size // group)) * group


def _memory(height: int, width: int, dim: int, k: int) -> int:
    """Bytes in use at most, for a tile of that shape."""
    tables = 2 * 4 * height * width
    maxima = 3 * 4 * height * width // min(_ROW_GROUP, _COLUMN_GROUP)
    vectors = 4 * dim * (3 * height + 3 * width)
    # Looking: scores, ids, places and their copies for k groups of every row.
    looks = 40 * max(height * min(k * (_ROW_GROUP + 1), width + k), width * min(k * (_COLUMN_GROUP + 1), height + k))
    return tables + maxima + vectors + looks + (1 << 16)
