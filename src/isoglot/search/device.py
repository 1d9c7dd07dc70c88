"""Exact nearest neighbours on an accelerator, by torch: the same tables as those of `exact` and `best`, in float32.

A stripe of `y` is on the device while the blocks of `x` pass by, each in pieces through pinned memory. Threads of the
host prepare pieces while the device compares; the host waits only until the copy from two pieces ago is done, which
bounds the memory of both. Copies and products are in one queue: a block of 25 MB takes half a millisecond to copy and
0.2 seconds to be compared with a stripe, so that a second queue would save nothing.

Ties are those of `Best`: no step depends on an order that torch leaves open, as that of `topk`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from isoglot.core.machine import available_cores
from isoglot.core.plugins import torch_half
from isoglot.core.processes import run_ahead
from isoglot.data.batch import send
from isoglot.search import best
from isoglot.search.blocks import Metric, load, round_up
from isoglot.search.checkpoint import Checkpoint, Saver, fingerprint

SIDE = 16_384  # maximum rows and columns of a tile, 1 GiB of scores: few enough rows to choose from, for each product
CHOICE = 1 << 26  # maximum scores of a tile from which the best are chosen, in the groups of all rows
STRIPE = 1 << 28  # numbers of `y` on the device, 1 GiB
GROUP = 32
_MOST_WORKERS = 8
LOWEST = float(best.LOWEST)


class Sender:
    """Copies pieces of tables to a device; at most two are on their way."""

    def __init__(self, place: torch.device, pieces: Iterator[best.Floats]) -> None:
        self.place, self.pieces, self.copied = place, pieces, deque[torch.Event]()

    def send(self, rows: best.Floats) -> Tensor:
        """The rows on the device, which may still be computing what they are to follow."""
        if len(self.copied) > 1:
            self.copied.popleft().synchronize()
        copy = send(torch.from_numpy(np.require(rows, requirements=["C", "W"])), self.place)
        if self.place.type != "cpu":
            self.copied.append(torch.Event(self.place))
            self.copied[-1].record(torch.accelerator.current_stream(self.place))
        return copy

    def table(self, count: int, size: int, dim: int) -> Tensor:
        """The next rows, then zeros: equal rows have equal scores only in products of one shape."""
        table, start = torch.zeros(size, dim, device=self.place), 0
        while start < count:
            rows = self.send(next(self.pieces))
            table[start : start + len(rows)] = rows
            start += len(rows)
        return table


class Best(NamedTuple):
    """`best.Best` on a device; see there."""

    scores: Tensor
    ids: Tensor

    @classmethod
    def of(cls, table: best.Best, place: torch.device) -> Best:
        """A copy on a device."""
        return cls(*(send(torch.from_numpy(part.copy()), place) for part in (table.scores, table.ids)))

    def part(self, start: int, stop: int) -> Best:
        """A view of some rows."""
        return Best(self.scores[start:stop], self.ids[start:stop])

    def take(self, maxima: Tensor, table: Tensor, first: int) -> None:
        """Update with the scores `table` (rows, columns), whose maxima (rows, groups) are overwritten."""
        groups = _largest(maxima, self.ids.shape[1]).sort(dim=1).values
        columns = (groups[:, :, None] * GROUP + torch.arange(GROUP, device=table.device)).flatten(1)
        scores = torch.cat([self.scores, table.gather(1, columns)], dim=1)
        ids = torch.cat([self.ids, columns + first], dim=1)
        largest = _largest(scores.clone(), self.ids.shape[1])
        self.scores.copy_(scores.gather(1, largest))
        self.ids.copy_(ids.gather(1, largest))

    def copy_to(self, table: best.Best) -> None:
        """Wait for the device, and copy to a table of the host."""
        table.scores[:], table.ids[:] = self.scores.cpu().numpy(), self.ids.cpu().numpy()


def _largest(table: Tensor, k: int) -> Tensor:
    """Columns of the k largest of each row, largest first, ties from the left. Destroys `table`."""
    k = min(k, table.shape[1])
    if k > best.FEW:
        return table.sort(dim=1, descending=True, stable=True).indices[:, :k]
    columns = []
    for _ in range(k):
        columns.append(table.max(dim=1, keepdim=True).indices)  # of equal ones the first
        table.scatter_(1, columns[-1], -torch.inf)
    return torch.cat(columns, dim=1)


def tile_shape(n: int, m: int, dim: int, k: int) -> tuple[int, int, int]:
    """Rows and columns of a tile, and rows of a stripe."""
    side = SIDE
    while side > GROUP and side * min(side, k * (GROUP + 1)) > CHOICE:
        side //= 2
    height, width = min(side, round_up(n, GROUP)), min(side, round_up(m, GROUP))
    return height, width, min(max(1, STRIPE // (dim * width)) * width, round_up(m, width))


def search(
    x: NDArray[Any],
    y: NDArray[Any],
    forward: best.Best,
    backward: best.Best,
    *,
    metric: Metric,
    place: torch.device,
    budget: int,
    checkpoint: Checkpoint | None,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Fill both tables, which are empty, as `exact.neighbours` does. A checkpoint is saved after a stripe."""
    n, m, dim, k = len(x), len(y), x.shape[1], max(forward.ids.shape[1], backward.ids.shape[1])
    height, width, stripe = tile = tile_shape(n, m, dim, k)
    saver = Saver(checkpoint, lambda: f"{fingerprint(x, y)} {k} {metric} {tile} {place.type}", (forward, backward))
    stripes, blocks, start = range(0, m, stripe), range(0, n, height), saver.load()
    if start == len(stripes):
        return
    workers = min(available_cores(), _MOST_WORKERS)
    rows = min(height, max(1, budget // (16 * dim * (workers + 1))))  # of a piece: as stored, scaled, in between

    def pieces() -> Iterator[tuple[NDArray[Any], int, int]]:
        for first in stripes[start:]:
            for table, begin, size in [(y, first, stripe), *((x, i, height) for i in blocks)]:
                stop = min(begin + size, len(table))
                yield from ((table, at, min(at + rows, stop)) for at in range(begin, stop, rows))

    scores, ahead = torch.empty(height, width, device=place), Best.of(forward, place)
    with torch_half("encoders.switches").full_precision(), ThreadPoolExecutor(workers) as pool:
        sender = Sender(place, run_ahead(lambda piece: pool.submit(load, *piece, metric).result, workers, pieces()))
        for turn, first in enumerate(stripes[start:], start):
            stripe_best = backward.part(first, first + stripe)
            columns, back = sender.table(len(stripe_best.ids), stripe, dim), Best.of(stripe_best, place)
            for block, i in enumerate(blocks, 1):
                _compare(sender.table(min(height, n - i), height, dim), columns, scores, ahead, back, i, first)
                if progress is not None:
                    progress(turn * len(blocks) + block, len(stripes) * len(blocks))
            back.copy_to(stripe_best)
            if turn + 1 == len(stripes) or saver.due():
                ahead.copy_to(forward)
                saver.save(turn + 1)


def _compare(rows: Tensor, columns: Tensor, scores: Tensor, ahead: Best, back: Best, i: int, first: int) -> None:
    """Update with the tiles of a block, the rows from `i` on, and a stripe, the columns from `first` on."""
    height, width = scores.shape
    ahead = ahead.part(i, i + height)
    for j in range(0, len(back.ids), width):
        below, table = back.part(j, j + width), scores[: len(ahead.ids)]
        torch.matmul(rows, columns[j : j + width].T, out=scores)
        scores[len(ahead.ids) :].fill_(LOWEST)
        scores[:, len(below.ids) :].fill_(LOWEST)
        ahead.take(table.view(len(table), -1, GROUP).amax(2), table, first + j)
        maxima = scores.view(-1, GROUP, width).amax(1)[:, : len(below.ids)]
        below.take(maxima.T.contiguous(), scores.T[: len(below.ids)], i)


def nearest(queries: best.Floats, blocks: Iterator[tuple[int, best.Floats]], k: int, place: torch.device) -> best.Ids:
    """Ids (Q, k) of the greatest inner products with the rows of blocks, which come with their first id, ascending."""
    sender, among = Sender(place, iter(())), Best.of(best.Best.empty(len(queries), k), place)
    asked = sender.send(queries)
    with torch_half("encoders.switches").full_precision():
        for first, rows in blocks:
            block = pad(sender.send(rows), (0, 0, 0, -len(rows) % GROUP))
            scores = asked @ block.T
            scores[:, len(rows) :].fill_(LOWEST)
            among.take(scores.view(len(scores), -1, GROUP).amax(2), scores, first)
    return np.asarray(among.ids.cpu().numpy())
