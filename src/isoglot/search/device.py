"""Exact nearest neighbours on an accelerator, by torch: the same tables as those of `exact` and `best`, in float32.

A stripe of `y` is on the device while the blocks of `x` pass by, each through pinned memory. The host prepares the next
block while the device compares the last ones, and waits only until a copy from two blocks ago is done, which bounds the
memory of both. Copies and products are in one queue: a block of 25 MB takes half a millisecond to copy and 0.2 seconds
to be compared with a stripe, so that a second queue would save nothing.

Ties are those of `Best`: no step depends on an order that torch leaves open, as that of `topk`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from isoglot.data.batch import send
from isoglot.model.torch_half import torch_half
from isoglot.search import best
from isoglot.search.checkpoint import Checkpoint, Saver, fingerprint
from isoglot.search.exact import Metric, load, padded

SIDE = 16_384  # maximum rows and columns of a tile, 1 GiB of scores: few enough rows to choose from, for each product
CHOICE = 1 << 26  # maximum scores of a tile from which the best are chosen, in the groups of all rows
STRIPE = 1 << 28  # numbers of `y` on the device, 1 GiB
GROUP = 32
LOWEST = float(best.LOWEST)


class Sender:
    """Copies rows to a device; waits until the last but one are there, so that the host is at most two ahead."""

    def __init__(self, place: torch.device) -> None:
        self.place, self.copied = place, deque[torch.Event]()

    def send(self, rows: best.Floats) -> Tensor:
        """The rows on the device, which may still be computing what they are to follow."""
        if len(self.copied) > 1:
            self.copied.popleft().synchronize()
        sent = send(torch.from_numpy(np.require(rows, requirements="W")), self.place)
        if self.place.type != "cpu":
            self.copied.append(torch.Event(self.place))
            self.copied[-1].record(torch.accelerator.current_stream(self.place))
        return sent


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
        chosen = _largest(scores.clone(), self.ids.shape[1])
        self.scores.copy_(scores.gather(1, chosen))
        self.ids.copy_(ids.gather(1, chosen))

    def copy_to(self, table: best.Best) -> None:
        """Wait for the device, and copy to a table of the host."""
        table.scores[:], table.ids[:] = self.scores.cpu().numpy(), self.ids.cpu().numpy()


def _largest(table: Tensor, k: int) -> Tensor:
    """Columns of the k largest of each row, largest first, ties from the left. Destroys `table`."""
    k = min(k, table.shape[1])
    if k > best.FEW:
        return table.sort(dim=1, descending=True, stable=True).indices[:, :k]
    chosen = []
    for _ in range(k):
        chosen.append(table.max(dim=1, keepdim=True).indices)  # of equal ones the first
        table.scatter_(1, chosen[-1], -torch.inf)
    return torch.cat(chosen, dim=1)


def search(
    x: NDArray[Any],
    y: NDArray[Any],
    forward: best.Best,
    backward: best.Best,
    *,
    metric: Metric,
    place: torch.device,
    checkpoint: Checkpoint | None,
    progress: Callable[[int, int | None], None] | None,
) -> None:
    """Fill both tables, which are empty, as `exact.neighbours` does. A checkpoint is saved after a stripe."""
    n, m, dim, side = len(x), len(y), x.shape[1], SIDE
    k = max(forward.ids.shape[1], backward.ids.shape[1])
    while side > GROUP and side * min(side, k * (GROUP + 1)) > CHOICE:
        side //= 2
    height, width = min(side, padded(n, GROUP)), min(side, padded(m, GROUP))
    stripe = min(max(1, STRIPE // (dim * width)) * width, padded(m, width))
    key = f"{k} {metric} {(height, width, stripe)} {place.type}"
    saver = Saver(checkpoint, lambda: f"{fingerprint(x, y)} {key}", (forward, backward))
    done, total, tall = saver.load(), -(-m // stripe), -(-n // height)
    if done == total:
        return
    sender, rows_best = Sender(place), Best.of(forward, place)
    scores = torch.empty(height, width, device=place)

    def upload(vectors: NDArray[Any], start: int, size: int) -> Tensor:
        """Rows of a table and zeros after its end: equal rows have equal scores only in products of one shape."""
        table = torch.zeros(size, dim, device=place)
        for at in range(start, min(start + size, len(vectors)), side):
            rows = sender.send(load(vectors, at, min(at + side, start + size), metric))
            table[at - start : at - start + len(rows)] = rows
        return table

    with torch_half("encoders.device").full_precision():
        for first in range(done * stripe, m, stripe):
            columns, found = upload(y, first, stripe), backward.part(first, first + stripe)
            columns_best = Best.of(found, place)
            for i in range(0, n, height):
                rows = upload(x, i, height)
                for j in range(0, len(found.ids), width):
                    torch.matmul(rows, columns[j : j + width].T, out=scores)
                    scores[n - i :] = scores[:, m - first - j :] = LOWEST
                    ahead, back = rows_best.part(i, i + height), columns_best.part(j, j + width)
                    table = scores[: len(ahead.ids)]
                    ahead.take(table.view(len(table), -1, GROUP).amax(2), table, first + j)
                    maxima = scores.view(-1, GROUP, width).amax(1)[:, : len(back.ids)]
                    back.take(maxima.T.contiguous(), scores.T[: len(back.ids)], i)
                if progress is not None:
                    progress(first // stripe * tall + i // height + 1, total * tall)
            columns_best.copy_to(found)
            done += 1
            if done == total or saver.due():
                rows_best.copy_to(forward)
                saver.save(done)


def nearest(queries: best.Floats, blocks: Iterator[tuple[int, best.Floats]], k: int, place: torch.device) -> best.Ids:
    """Ids (Q, k) of the greatest inner products with the rows of blocks, which come with their first id, ascending."""
    sender, among = Sender(place), Best.of(best.Best.empty(len(queries), k), place)
    asked = sender.send(queries)
    with torch_half("encoders.device").full_precision():
        for first, rows in blocks:
            block = pad(sender.send(rows), (0, 0, 0, -len(rows) % GROUP))
            scores = asked @ block.T
            scores[:, len(rows) :] = LOWEST
            among.take(scores.view(len(scores), -1, GROUP).amax(2), scores, first)
    return np.asarray(among.ids.cpu().numpy())
