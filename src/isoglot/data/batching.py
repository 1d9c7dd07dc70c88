"""Which rows meet in which batch: a pure function of (table, settings, seed, epoch).

Nothing is drawn from a running generator. The order of an epoch comes from (seed, epoch), and every choice inside a
group (its anchor, its partners, its subset of languages) from a hash of (seed, epoch, sentence). A position is
therefore three numbers, any batch can be made again, and all ranks agree without a word between them.

An epoch is an order of *items*. An item is a group, or one pair of it (`rows="matching"`). The order is spread evenly
over sources and languages, cut into pools of `pool` batches, and inside a pool items of like length meet, so that
little is padded; the batches of a pool are then shuffled. `one_pair` without a pool cuts the whole epoch by combination
of languages, in random order (IMASCL). Held in memory: 16 bytes per item of the epoch; then, also its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from isoglot.data.batch import Batch, Tokens
from isoglot.data.groups import Group
from isoglot.data.sampling import epoch_items
from isoglot.data.selection import Items, Selection, mix, select
from isoglot.data.table import Array, GroupTable, Tokenize
from isoglot.settings import Batching


@dataclass(frozen=True, slots=True)
class Position:
    """The next batch to be made: its epoch, its pool in the epoch and its place in the pool."""

    epoch: int = 0
    pool: int = 0
    batch: int = 0


class Batches:
    """Endless batches of a table from `position` on. Each rank gets every `world`-th item of each batch."""

    def __init__(
        self,
        table: GroupTable,
        settings: Batching,
        *,
        seed: int,
        weights: Mapping[str, float] | None = None,
        position: Position | None = None,
        columns: Mapping[str, Callable[[Array], Array]] | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if not len(table):
            raise ValueError("the corpus holds no groups; check the sources and the filters of the stream")
        self.table, self.settings, self.seed = table, settings, seed
        self.weights = weights
        self.columns = dict(columns or {})  # from row numbers of the table to a value each, such as a teacher's vector
        self.position = position or Position()
        self.rank, self.world = rank, world
        self._epoch: tuple[int, Items] | None = None
        self._pool: tuple[tuple[int, int], list[Array]] | None = None

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.next()

    def next(self) -> Batch:
        """The batch at the position, which moves on."""
        cuts = self._cuts(self.position.epoch, self.position.pool)
        while self.position.batch >= len(cuts):
            pools = len(self._starts(self._items(self.position.epoch)))
            epoch, pool = self.position.epoch, self.position.pool + 1
            self.position = Position(epoch, pool) if pool < pools else Position(epoch + 1)
            cuts = self._cuts(self.position.epoch, self.position.pool)
        at = self.position
        items = cuts[at.batch]
        self.position = Position(at.epoch, at.pool, at.batch + 1)
        return self._batch(at.epoch, items[self.rank :: self.world])

    def count(self, epoch: int = 0) -> int:
        """Number of batches in an epoch."""
        return sum(len(self._cuts(epoch, pool)) for pool in range(len(self._starts(self._items(epoch)))))

    def _items(self, epoch: int) -> Items:
        if self._epoch is None or self._epoch[0] != epoch:
            self._epoch = (
                epoch,
                epoch_items(self.table, self.settings, seed=self.seed, epoch=epoch, weights=self.weights),
            )
        return self._epoch[1]

    def _starts(self, items: Items) -> range:
        return range(0, len(items), self._span(items))

    def _span(self, items: Items) -> int:
        """Items of a pool: all of the epoch where batches of one combination are cut from it in random order."""
        settings = self.settings
        return len(items) if settings.one_pair and settings.pool == 1 else settings.size * settings.pool

    def _cuts(self, epoch: int, pool: int) -> list[Array]:
        """The batches of a pool, each an array of item numbers of the epoch."""
        if self._pool is None or self._pool[0] != (epoch, pool):
            items = self._items(epoch)
            start = self._starts(items)[pool]
            numbers = np.arange(start, min(start + self._span(items), len(items)))
            self._pool = (epoch, pool), self._cut(epoch, pool, numbers)
        return self._pool[1]

    def _cut(self, epoch: int, pool: int, numbers: Array) -> list[Array]:
        settings = self.settings
        if settings.pool == 1 and not settings.tokens and not settings.one_pair:
            return [numbers]
        chosen = self._select(epoch, numbers)
        starts = np.cumsum(chosen.sizes) - chosen.sizes
        longest = np.maximum.reduceat(self.table.lengths(chosen.rows), starts)
        rng = np.random.default_rng((self.seed, epoch, pool))
        likeness = longest + rng.random(len(longest))  # ties in random order
        kind = self._combination(chosen, starts) if settings.one_pair else np.zeros(len(numbers), dtype=np.int64)
        order = np.lexsort((likeness if settings.pool > 1 else rng.random(len(longest)), kind))
        cuts = _boundaries(kind[order], longest[order], chosen.sizes[order], settings.size, settings.tokens)
        batches = np.split(numbers[order], cuts)
        return [batches[i] for i in rng.permutation(len(batches))]

    def _combination(self, chosen: Selection, starts: Array) -> Array:
        """A number per item that is equal when the languages of its sentences are."""
        langs = mix(self.table.lang[chosen.rows], 1)
        return np.add.reduceat(np.where(chosen.slots >= 0, langs, np.uint64(0)), starts).astype(np.int64)

    def _select(self, epoch: int, numbers: Array) -> Selection:
        return select(self.table, self._items(epoch).take(numbers), self.settings, int(mix(epoch, self.seed)) >> 8)

    def _batch(self, epoch: int, numbers: Array) -> Batch:
        chosen = self._select(epoch, numbers)
        groups = self._items(epoch).group[numbers]
        ids, lengths = self.table.tokens(chosen.rows)

        def spread(per_item: Array) -> torch.Tensor:
            return torch.from_numpy(np.repeat(np.asarray(per_item), chosen.sizes, axis=0))

        return Batch(
            tokens=Tokens(torch.from_numpy(ids), torch.from_numpy(lengths)),
            group=spread(numbers.astype(np.int64)),
            key=spread(self.table.key[groups]),
            slot=torch.from_numpy(chosen.slots),
            lang=torch.from_numpy(self.table.lang[chosen.rows].astype(np.int64)),
            extras={name: spread(column[groups]) for name, column in self.table.extras.items()}
            | {name: torch.from_numpy(column(chosen.rows)) for name, column in self.columns.items()},
        )


def collate(groups: Sequence[Group], tokenize: Tokenize, settings: Batching | None = None, *, seed: int = 0) -> Batch:
    """All of a few groups as one batch, in memory: what the batches of a corpus are made of, for tests and notebooks.

    Choices inside groups follow `settings` (by default every sentence, the anchor drawn by `seed`).
    """
    table = GroupTable.build([("groups", groups)], tokenize)
    whole = (settings or Batching()).model_copy(update={"size": table.sentences or 1, "tokens": 0, "pool": 1})
    return Batches(table, whole, seed=seed).next()


def _boundaries(kind: Array, longest: Array, sizes: Array, size: int, tokens: int) -> NDArray[np.int64]:
    """Where a new batch begins: at another kind, after `size` items, or where the token budget would be passed."""
    cuts, first, rows, top = [], 0, 0, 0
    for i, (this, length, count) in enumerate(zip(kind.tolist(), longest.tolist(), sizes.tolist(), strict=True)):
        over = tokens and (rows + count) * max(top, length) > tokens
        if i and (this != kind[first] or i - first == size or over):
            cuts.append(i)
            first, rows, top = i, 0, 0
        rows, top = rows + count, max(top, length)
    return np.array(cuts, dtype=np.int64)
