"""Exact neighbours in blocks: each pair of a source block and a target block is one piece of work; the results are
merged.

The merged result equals that of one search bit for bit. Inner products differ in their last bit with the shape of the
product they are a part of, so blocks begin at multiples of the tile of `search.neighbours`, and the remainder is joined
to the last block; then every product is the same as in a single search. Blocks are merged in the order of their rows,
whichever is done first.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_arguments
from isoglot.core.progress import Progress
from isoglot.data.files import content_digest
from isoglot.scale.shards import Shards, open_shards
from isoglot.scale.work import Cluster, run
from isoglot.search import Neighbours, neighbours
from isoglot.search.best import Best, Ids
from isoglot.search.checkpoint import Checkpoint, Saver, fingerprint
from isoglot.search.exact import BUDGET, COLUMNS, ROWS

TILE = math.lcm(ROWS, COLUMNS)
BLOCK = 16 * TILE  # rows of a block: 3e12 operations at 384 dimensions, a minute or a few on one core

Table = NDArray[Any] | Shards
Vectors = Table | Path | Sequence[Path]
Span = tuple[int, int]  # of rows


@check_arguments()
def neighbours_shards(
    x: Vectors,
    y: Vectors,
    k: int,
    *,
    budget: int = BUDGET,
    block: int = BLOCK,
    cluster: Cluster | None = None,
    checkpoint: Checkpoint | None = None,
    progress: Progress | None = None,
) -> Neighbours:
    """`search.neighbours` by cosine, in blocks of `block` rows: the same neighbours and the same scores.

    They are the same with the same threads (`cluster.cpus`); `cluster.gpus` is ignored. `x` (N, D) and `y` (M, D):
    arrays, which are sent to every machine, or files on a disk that every machine sees, as `open_shards` takes them.
    Memory of this process: the result, 12 · k bytes for each row of both sides; of a worker: one block of each side and
    `budget` bytes. With `checkpoint`, the neighbours so far are saved there, and the same call resumes from them.
    `progress` is called with (blocks done, blocks in all). Raises `ValueError` for what `neighbours` rejects,
    `EncoderError` for files that are not vectors.
    """
    cluster = replace(cluster or Cluster(), gpus=0)  # a block is computed by NumPy
    if block < TILE or block % TILE:
        raise ValueError(f"block is {block}; it must be a multiple of {TILE}")
    left, right = sides = [side if isinstance(side, np.ndarray | Shards) else open_shards(side) for side in (x, y)]
    neighbours(_rows(left, 0, 0), _rows(right, 0, 0), k, metric="cosine", budget=budget)  # raise its errors now
    pieces = [(i, j) for j in _cuts(len(right), block) for i in _cuts(len(left), block)]
    forward, backward = Best.empty(len(left), min(k, len(right))), Best.empty(len(right), min(k, len(left)))
    saver = Saver(checkpoint, lambda: json.dumps([k, block, cluster.cpus, *map(_key, sides)]), (forward, backward))
    done = first_piece = saver.load()
    # In order: a checkpoint covers the first n blocks, and the ids of both sides grow from block to block.
    for result in run(_block, pieces[first_piece:], cluster, shared=(left, right, k, budget, cluster.cpus)):
        (top, bottom), (first, last) = pieces[done]
        _merge(forward.part(top, bottom), result.forward_scores, result.forward_ids + first)
        _merge(backward.part(first, last), result.backward_scores, result.backward_ids + top)
        done += 1
        if progress is not None:
            progress(done, len(pieces))
        if saver.due():
            saver.save(done)
    if done > first_piece:
        saver.save(done)
    return Neighbours(forward.scores, forward.ids, backward.scores, backward.ids)


def _key(vectors: Table) -> Any:
    """Identifies vectors by their content, that of files with their names."""
    if not isinstance(vectors, Shards):
        return fingerprint(vectors)
    return [(str(file), content_digest(file)) for file in vectors.files]


def _block(x: Table, y: Table, k: int, budget: int, threads: int, rows: Span, columns: Span) -> Neighbours:
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(threads):
            return neighbours(_rows(x, *rows), _rows(y, *columns), k, metric="cosine", budget=budget)
    except ValueError as error:
        raise ValueError(f"rows {rows[0]} to {rows[1]} with {columns[0]} to {columns[1]}: {error}") from None


def _merge(best: Best, scores: NDArray[np.float32], ids: Ids) -> None:
    """Merge the neighbours of a block in place. Its ids are greater than those of the blocks before, so that a stable
    sort by score leaves equal scores in the order of their ids; places that are still empty have the lowest score.
    """
    every, places = np.concatenate([best.scores, scores], axis=1), np.concatenate([best.ids, ids], axis=1)
    order = np.argsort(-every, axis=1, kind="stable")[:, : best.scores.shape[1]]
    best.scores[:] = np.take_along_axis(every, order, axis=1)
    best.ids[:] = np.take_along_axis(places, order, axis=1)


def _cuts(size: int, block: int) -> list[Span]:
    """The blocks of a side; a remainder joins the last one, because a block smaller than a tile would be multiplied
    differently.
    """
    starts = list(range(0, size - size % block, block)) or ([0] if size else [])
    return list(zip(starts, [*starts[1:], size], strict=True)) if starts else []


def _rows(vectors: Table, start: int, stop: int) -> NDArray[Any]:
    return vectors.rows(start, stop) if isinstance(vectors, Shards) else vectors[start:stop]
