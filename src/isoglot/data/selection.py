"""Which sentences of a group become rows of a batch, and which of them is the anchor.

All chances are hashes of (salt, sentence), where the salt stands for seed and epoch: the same group gives the same
rows whenever and wherever it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isoglot.data.table import Array, GroupTable, ragged
from isoglot.settings import Batching


@dataclass(frozen=True, slots=True)
class Items:
    """n items of an epoch: the group (n,) of each, and which pair of it (n,) where groups are cut into pairs."""

    group: Array
    part: Array

    def __len__(self) -> int:
        return len(self.group)

    def take(self, numbers: Array) -> Items:
        """The items of the given numbers."""
        return Items(self.group[numbers], self.part[numbers])


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of some items: rows (R,) of the table, their slot (R,), and how many each item has (I,)."""

    rows: Array
    slots: Array
    sizes: Array


@dataclass(frozen=True, slots=True)
class _Rows:
    """Candidate rows, item by item, an item's hard negatives behind its texts; all (R,)."""

    row: Array
    item: Array
    hard: Array

    def take(self, at: Array) -> _Rows:
        return _Rows(self.row[at], self.item[at], self.hard[at])

    @property
    def place(self) -> Array:
        """0, 1, 2, ... within each run of equal (item, hard)."""
        fresh = np.ones(len(self.item), dtype=bool)
        fresh[1:] = (self.item[1:] != self.item[:-1]) | (self.hard[1:] != self.hard[:-1])
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(self.item)), 0))
        return np.asarray(np.arange(len(self.item)) - first)


def select(table: GroupTable, items: Items, settings: Batching, salt: int) -> Selection:
    """The rows of each item with their slots, following `rows`, `most`, `hard_negatives`, `views` and `anchor`."""
    starts, stops = table.row_bounds(items.group)
    row = ragged(starts, stops - starts)
    rows = _Rows(row, np.repeat(np.arange(len(items)), stops - starts), table.slot[row] < 0)
    rows = rows.take(np.lexsort((mix(rows.row, salt), rows.hard, rows.item)))  # within a group, in random order
    rows = rows.take(~rows.hard | (settings.hard_negatives < 0) | (rows.place < settings.hard_negatives))
    if settings.rows == "matching":
        rows = _partners(table, rows, items, salt)
    elif settings.most:
        rows = rows.take(rows.hard | (rows.place < settings.most))
    if settings.anchor == "first":
        rows = rows.take(np.lexsort((rows.row, rows.hard, rows.item)))  # back in the order of the source
    times = np.where(rows.hard, 1, settings.views)
    again = np.repeat(np.arange(len(rows.row)), times)
    view = np.arange(len(again)) - np.repeat(np.cumsum(times) - times, times)
    place = rows.place
    slots = np.where(rows.hard[again], -1 - place[again], place[again] * settings.views + view)
    return Selection(rows.row[again], slots.astype(np.int64), np.bincount(rows.item[again], minlength=len(items)))


def matching_sizes(table: GroupTable) -> Array:
    """(G,) number of cross-language pairs that one perfect matching cuts from each group.

    Where the most common language has more than half of the n sentences, only the others find a partner.
    """
    groups = np.arange(len(table))
    starts, stops = table.row_bounds(groups)
    group = np.repeat(groups, stops - starts)[table.slot >= 0]
    total = np.bincount(group, minlength=len(table))
    top = np.zeros(len(table), dtype=np.int64)
    np.maximum.at(top, group, _same_language(table.lang[table.slot >= 0], group))
    return np.asarray(np.minimum(total // 2, total - top))


def _partners(table: GroupTable, rows: _Rows, items: Items, salt: int) -> _Rows:
    """The two sentences of the item's pair in the matching of its group, and the hard negatives.

    With the sentences of a language side by side, the most common language first, sentence i and the one half a group
    on (or as far on as the most common language reaches) differ in language. Languages that are equally common stand
    in random order, so that a group of distinct languages gets a uniformly random matching.
    """
    lang = table.lang[rows.row]
    count = np.where(rows.hard, 0, _same_language(lang, rows.item * 2 + rows.hard))
    group = items.group[rows.item].astype(np.uint64)
    language = mix(lang.astype(np.uint64) + (group << np.uint64(16)), salt + 1)
    rows = rows.take(np.lexsort((mix(rows.row, salt), language, -count, rows.hard, rows.item)))
    total = np.bincount(rows.item[~rows.hard], minlength=len(items))
    top = np.zeros(len(items), dtype=np.int64)
    np.maximum.at(top, rows.item, count)
    reach, part = np.maximum(total // 2, top)[rows.item], items.part[rows.item]
    rows = rows.take(rows.hard | (rows.place == part) | (rows.place == part + reach))
    chance = mix(rows.row, salt + 2)  # either of the two may be the anchor
    return rows.take(np.lexsort((chance, rows.hard, rows.item)))


def _same_language(lang: Array, group: Array) -> Array:
    """(R,) how many rows of the same group have the row's language."""
    cell = group.astype(np.int64) * 65536 + lang.astype(np.int64)
    _, inverse, counts = np.unique(cell, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def mix(values: Any, salt: int) -> Any:
    """A 64-bit hash of each value and the salt (the finaliser of SplitMix64): chance without a generator."""
    with np.errstate(over="ignore"):
        z = np.asarray(values).astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
