"""Exact nearest neighbours between two sets of vectors, in both directions, in bounded memory.

One matrix product of each pair of blocks (a tile) serves both directions, where two searches would compute it twice.
Top k is two-level (`Best`), so it costs little compared with the product. Each thread computes a whole product while
the main thread takes the best of the previous one: with a product shared by all threads, they would wait for each other
at the end of every tile, and its last bits would depend on their number. Blocks come straight from the arrays, which
may be memory maps larger than the machine's memory, in float16, float32 or float64.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.machine import wants_accelerator
from isoglot.core.plugins import torch_half
from isoglot.data.vectors import unit
from isoglot.search.best import LOWEST, Best, Floats, Ids
from isoglot.search.blocks import Metric, load, round_up
from isoglot.search.checkpoint import Checkpoint, Saver, fingerprint

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

BUDGET = 1 << 28

# Found by measurement. A tile of 2048 x 4096 scores stays in a large cache; groups along rows may be larger than along
# columns, where every element looked at lies in another cache line.
ROWS, COLUMNS = 2048, 4096
ROW_GROUP, COLUMN_GROUP = 32, 16

_TOO_LARGE = "an inner product does not fit float32; scale the vectors down or use metric='cosine'"


def tile_shape(n: int, m: int, dim: int, k: int, budget: int, *, workers: int = 1) -> tuple[int, int]:
    """Rows and columns of a tile: the fastest, halved until the memory of `workers` threads fits the budget in bytes.

    Raises `ValueError` for a budget too small for the smallest tile.
    """
    height, width = min(ROWS, round_up(n, COLUMN_GROUP)), min(COLUMNS, round_up(m, ROW_GROUP))
    while (need := _memory(height, width, dim, k, workers)) > budget:
        if height > COLUMN_GROUP and (height >= width // 2 or width <= ROW_GROUP):
            height = round_up(height // 2, COLUMN_GROUP)
        elif width > ROW_GROUP:
            width = round_up(width // 2, ROW_GROUP)
        else:
            raise ValueError(f"a memory budget of {budget} bytes is too small; the smallest tile needs {need}")
    return height, width


def _memory(height: int, width: int, dim: int, k: int, workers: int) -> int:
    """Maximum bytes in use for a tile of this shape."""
    tables = (workers + 1) * 4 * height * width
    maxima = 3 * 4 * height * width // min(ROW_GROUP, COLUMN_GROUP)
    vectors = 4 * dim * ((2 * workers + 3) * height + 4 * width)
    # Scores, ids, places and their copies for k groups of every row.
    groups = 80 * max(height * min(k * (ROW_GROUP + 1), width + k), width * min(k * (COLUMN_GROUP + 1), height + k))
    return tables + maxima + vectors + groups + (1 << 16)


def rescore(x: NDArray[Any], y: NDArray[Any], best: Best, k: int, *, metric: Metric, budget: int) -> Best:
    """The best k of the candidates `best.ids` (N, C) for the rows of `x`, by their float32 scores with rows of `y`.

    For candidates that an approximate search found.
    """
    n, width = best.ids.shape
    rescored = Best.empty(n, min(k, width))
    # Memory: gathered vectors as stored, in float32, and normalised.
    step = max(1, budget // (4 * x.shape[1] * (4 * width + 4)))
    for start in range(0, n, step):
        ids = best.ids[start : start + step]
        rows = load(x, start, start + step, metric)
        near = y[ids.ravel()]
        near = unit(near) if metric == "cosine" else np.asarray(near, np.float32)
        scores = np.einsum("nd,ncd->nc", rows, near.reshape(*ids.shape, -1))
        order = np.lexsort((ids, -scores), axis=1)[:, :k]
        rescored.scores[start : start + step] = np.take_along_axis(scores, order, axis=1)
        rescored.ids[start : start + step] = np.take_along_axis(ids, order, axis=1)
    return rescored


class Neighbours(NamedTuple):
    """The nearest of N rows among M, and of M among N; best first, of equal scores the lowest id first."""

    forward_scores: Floats
    forward_ids: Ids
    backward_scores: Floats
    backward_ids: Ids


@check_arguments()
def neighbours(
    x: NDArray[Any],
    y: NDArray[Any],
    k: PositiveInt,
    *,
    metric: Metric = "dot",
    budget: int = BUDGET,
    checkpoint: Checkpoint | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    device: str | None = None,
) -> Neighbours:
    """The k rows of `y` (M, D) nearest to each row of `x` (N, D), and the other way round.

    metric      "cosine" normalises every row first; a row of zeros then scores 0 with everything
    budget      maximum working memory in bytes, of the host, without the arrays passed and returned
    checkpoint  where the search is saved periodically; a search of the same vectors, k and budget resumes from it, on
                the same kind of device, with the same result
    progress    called with (tiles done, tiles in total)
    device      None or "cpu": NumPy. An accelerator, such as "cuda"; "auto": one if PyTorch finds it. It needs up to 6
                GB of its memory, and 12 · k bytes for each row of `x`. Ids are the same; scores differ by the rounding
                of float32, and so may the order of rows whose scores differ by no more, equal rows among them:
                some of NumPy's libraries round their products apart

    Returns float32 scores and int64 ids, `(N, min(k, M))` forward and `(M, min(k, N))` backward. NumPy's own threads
    are limited meanwhile. Raises `ValueError` for shapes that do not fit, values that are not finite, and a budget too
    small for the smallest tile; `MissingExtraError` and `EncoderError` for a device without PyTorch or that is absent.
    """
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or not x.shape[1]:
        raise ValueError(f"x and y must be (N, D) and (M, D), got {x.shape} and {y.shape}")
    k = min(k, max(len(x), len(y), 1))  # at most as many as there are rows, which bounds the memory
    n, m = len(x), len(y)
    forward, backward = Best.empty(n, min(k, m)), Best.empty(m, min(k, n))
    place = accelerator(device) if n and m else None
    if place is not None:
        from isoglot.search import device as on_device  # imports torch

        settings: dict[str, Any] = {"budget": budget, "checkpoint": checkpoint, "progress": progress}
        on_device.search(x, y, forward, backward, metric=metric, place=place, **settings)
    elif n and m:
        tile = tile_shape(n, m, x.shape[1], k, budget)
        workers = _threads()
        while workers > 1 and tile_shape(n, m, x.shape[1], k, budget, workers=workers) != tile:
            workers -= 1  # tiles are unchanged, and so are the bits of their products
        saver = Saver(checkpoint, lambda: f"{fingerprint(x, y)} {k} {metric} {tile} float32", (forward, backward))
        _search(x, y, forward, backward, metric=metric, tile=tile, workers=workers, saver=saver, progress=progress)
    if not all(np.isfinite(best.scores).all() and (best.scores > LOWEST).all() for best in (forward, backward)):
        raise ValueError(_TOO_LARGE)
    return Neighbours(forward.scores, forward.ids, backward.scores, backward.ids)


def accelerator(device: str | None) -> Any:
    """The torch device that compares vectors for a device's name; None: NumPy does, also on MPS.

    MPS is of a Mac, whose NumPy has fast products too. Raises `MissingExtraError` and `EncoderError`.
    """
    if device is None or not wants_accelerator(device):
        return None
    place = torch_half("encoders.device").resolve(device)
    return None if place.type == "mps" else place


def _search(
    x: NDArray[Any],
    y: NDArray[Any],
    forward: Best,
    backward: Best,
    *,
    metric: Metric,
    tile: tuple[int, int],
    workers: int,
    saver: Saver,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Fill both tables. Blocks are taken by ascending index in both directions, as `Best.take` needs them."""
    height, width = tile
    place = _places(width)
    start, total = saver.load(), -(-len(x) // height) * -(-len(y) // width)
    buffers = [np.empty(tile, np.float32) for _ in range(workers + 1)]
    products: deque[tuple[int, int, int, Floats, Future[None]]] = deque()

    def take_one() -> None:
        turn, i, j, scores, product = products.popleft()
        product.result()
        _take(scores, place, forward.part(i, i + height), backward.part(j, j + width), i, j)
        buffers.append(scores)
        if saver.due() and turn + 1 < total:
            saver.save(turn + 1)
        if progress is not None:
            progress(turn + 1, total)

    def multiply(i: int, j: int, columns: Floats, scores: Floats) -> None:
        rows = load(x, i, i + height, metric)
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is detected at the end
            np.matmul(rows, columns.T, out=scores[: len(rows)])
        scores[len(rows) :] = LOWEST
        scores[:, place[len(y) - j :]] = LOWEST

    with _blas().limit(limits=max(1, _threads() // workers)), ThreadPoolExecutor(workers) as pool:
        for turn, i, j, columns in _blocks(x, y, tile, place, metric, start):
            if not buffers:
                take_one()
            scores = buffers.pop()
            products.append((turn, i, j, scores, pool.submit(multiply, i, j, columns, scores)))
        while products:
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
    """Update both tables with one tile."""
    height, width = scores.shape
    maxima = scores.reshape(height, ROW_GROUP, -1).max(axis=1)[: len(forward.scores)]
    if np.isnan(maxima).any():  # infinity minus infinity, with which its row would leave out the whole tile
        raise ValueError(_TOO_LARGE)
    forward.take(maxima, lambda row, column: scores[row, place[column]], group=ROW_GROUP, first=j)
    maxima = scores.reshape(-1, COLUMN_GROUP, width).max(axis=1)
    maxima = np.ascontiguousarray(maxima[:, place[: len(backward.scores)]].T)
    backward.take(maxima, lambda column, row: scores[row, place[column]], group=COLUMN_GROUP, first=i)


def _places(width: int) -> Ids:
    """Where each column of a tile is stored, (width,).

    Columns of one group are stored `width / ROW_GROUP` apart, so that the maxima of all groups are maxima of whole
    vectors, at the speed of memory, although a group is a run of neighbouring ids, as the order of ties requires.
    """
    ids = np.arange(width)
    return (ids % ROW_GROUP) * (width // ROW_GROUP) + ids // ROW_GROUP


def _threads() -> int:
    """How many threads BLAS would use."""
    return max((pool["num_threads"] for pool in _blas().info()), default=1)


@cache
def _blas() -> ThreadpoolController:
    """The BLAS libraries of this process, NumPy's among them; finding them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
