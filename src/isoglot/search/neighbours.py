"""Exact nearest neighbours between two sets of vectors, in both directions, in bounded memory.

What is special here: *one* product of each pair of blocks serves both directions, where two searches would multiply
everything twice; top k is two-level (see `top`), so it costs little beside the product; and each thread makes a whole
product, while this one keeps the best of the one before. Were a product shared by all threads, they would wait for each
other at the end of every block, and its last bits would hang on how many they are. Blocks come straight from the arrays
given, which may be memory maps larger than the machine's memory, in float16, float32 or float64.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.search.checkpoint import Checkpoint, Saver, fingerprint
from isoglot.search.rescore import Metric, load, rescore
from isoglot.search.tile import COLUMN_GROUP, ROW_GROUP, tile_shape
from isoglot.search.top import LOWEST, Best, Floats, Ids

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# Fills the third table (H, W) with the inner products of the rows of the first (H, D) and the second (W, D).
Product = Callable[[Floats, Floats, Floats], None]

BUDGET = 1 << 28
SPARE = 12


class Neighbours(NamedTuple):
    """The nearest of N rows among M, and of M among N; best first, of equal scores the lowest id first."""

    forward_scores: Floats
    forward_ids: Ids
    backward_scores: Floats
    backward_ids: Ids


def multiply(rows: Floats, columns: Floats, out: Floats) -> None:
    """The product in float32, the one used unless another is given."""
    with np.errstate(over="ignore", invalid="ignore"):  # what does not fit is refused at the end
        np.matmul(rows, columns.T, out=out)


def neighbours(
    x: NDArray[Any],
    y: NDArray[Any],
    k: int,
    *,
    metric: Metric = "dot",
    budget: int = BUDGET,
    product: Product | None = None,
    spare: int = SPARE,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Neighbours:
    """The k rows of `y` (M, D) nearest to each row of `x` (N, D), and the other way round.

    Gives float32 scores and int64 ids, `(N, min(k, M))` forward and `(M, min(k, N))` backward. "cosine" divides every
    row by its length first; a row of zeros then scores 0 with everything. Beside the arrays given and returned, at
    most `budget` bytes are in use, and NumPy's own threads are limited meanwhile. With another `product`, faster and
    less exact, `k + spare` candidates are found by it, then scored in float32, and the best k are kept; it is called
    by one thread at a time. `checkpoint`: saved there now and then, and a search of the same vectors, k and budget
    goes on from it to the same result. `progress` is called with (tiles done, tiles in all). Raises `ValueError` for
    shapes that do not fit, values that are not finite, and a budget too small for the smallest tile.
    """
    _check(x, y, k, metric)
    k = min(k, max(len(x), len(y), 1))  # more are not there, and the memory for them would exceed any budget
    n, m, kept = len(x), len(y), k if product is None else k + spare
    forward, backward = Best.empty(n, min(kept, m)), Best.empty(m, min(kept, n))
    if n and m:
        tile = tile_shape(n, m, x.shape[1], kept, budget)
        workers = _threads() if product is None else 1
        while workers > 1 and tile_shape(n, m, x.shape[1], kept, budget, workers=workers) != tile:
            workers -= 1  # tiles stay as they are, and so do the bits of their products
        state = f"{kept} {metric} {tile} {getattr(product, '__name__', 'float32')}"
        saver = Saver(checkpoint, lambda: f"{fingerprint(x, y)} {state}", (forward, backward))
        _search(
            x, y, forward, backward, metric=metric, tile=tile, product=product or multiply, workers=workers,
            saver=saver, progress=progress,
        )  # fmt: skip
        if product is not None:
            forward = rescore(x, y, forward, k, metric=metric, budget=budget)
            backward = rescore(y, x, backward, k, metric=metric, budget=budget)
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
    x: NDArray[Any],
    y: NDArray[Any],
    forward: Best,
    backward: Best,
    *,
    metric: Metric,
    tile: tuple[int, int],
    product: Product,
    workers: int,
    saver: Saver,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Fill both tables. Blocks are taken by ascending index in both directions, as `Best.take` needs them."""
    height, width = tile
    place = _places(width)
    start, total = saver.load(), -(-len(x) // height) * -(-len(y) // width)
    buffers = [np.empty(tile, np.float32) for _ in range(workers + 1)]
    made: deque[tuple[int, int, int, Floats, Future[None]]] = deque()

    def take_one() -> None:
        turn, i, j, scores, product_made = made.popleft()
        product_made.result()
        _take(scores, place, forward.part(i, i + height), backward.part(j, j + width), i, j)
        buffers.append(scores)
        if saver.due() and turn + 1 < total:
            saver.save(turn + 1)
        if progress is not None:
            progress(turn + 1, total)

    def fill(i: int, j: int, columns: Floats, scores: Floats) -> None:
        rows = load(x, i, i + height, metric)
        product(rows, columns, scores[: len(rows)])
        scores[len(rows) :] = LOWEST
        scores[:, place[len(y) - j :]] = LOWEST

    with _limited(max(1, _threads() // workers)), ThreadPoolExecutor(workers) as pool:
        for turn, i, j, columns in _blocks(x, y, tile, place, metric, start):
            if not buffers:
                take_one()
            scores = buffers.pop()
            made.append((turn, i, j, scores, pool.submit(fill, i, j, columns, scores)))
        while made:
            take_one()
    if start < total:
        saver.save(total)


def _blocks(
    x: NDArray[Any], y: NDArray[Any], tile: tuple[int, int], place: Ids, metric: Metric, start: int
) -> Iterator[tuple[int, int, int, Floats]]:
    """Number, first row, first column and the (width, D) vectors of the columns of every tile from `start` on.

    The columns are loaded once for all tiles that share them.
    """
    height, width = tile
    tall = -(-len(x) // height)
    for j in range(start // tall * width, len(y), width):
        loaded = load(y, j, j + width, metric)
        columns = np.zeros((width, y.shape[1]), np.float32)
        columns[place[: len(loaded)]] = loaded
        del loaded
        for i in range(0, len(x), height):
            if (turn := j // width * tall + i // height) >= start:
                yield turn, i, j, columns


def _take(scores: Floats, place: Ids, forward: Best, backward: Best, i: int, j: int) -> None:
    """Show one tile to the rows it belongs to, and to the columns."""
    height, width = scores.shape
    maxima = scores.reshape(height, ROW_GROUP, -1).max(axis=1)
    forward.take(
        maxima[: len(forward.scores)], lambda row, column: scores[row, place[column]], group=ROW_GROUP, first=j
    )
    maxima = scores.reshape(-1, COLUMN_GROUP, width).max(axis=1)
    maxima = np.ascontiguousarray(maxima[:, place[: len(backward.scores)]].T)
    backward.take(maxima, lambda column, row: scores[row, place[column]], group=COLUMN_GROUP, first=i)


def _places(width: int) -> Ids:
    """Where each column of a tile is kept, (width,).

    Neighbours that form a group are kept `width / ROW_GROUP` apart: the maxima of groups are then maxima of whole
    stretches, at the speed of memory, and yet a group is a run of neighbouring ids, as ties need it.
    """
    ids = np.arange(width)
    return (ids % ROW_GROUP) * (width // ROW_GROUP) + ids // ROW_GROUP


def _threads() -> int:
    """How many threads the library of matrix products would use, and so how many cores one wants used."""
    return max((pool["num_threads"] for pool in _blas().info()), default=1)


def _limited(threads: int) -> AbstractContextManager[object]:
    """A block in which a matrix product is made by so many threads."""
    limits: AbstractContextManager[object] = _blas().limit(limits=threads)
    return limits


@cache
def _blas() -> ThreadpoolController:
    """The libraries of products in this process, NumPy's among them; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
