"""Batches as a pure function of (table, settings, seed, epoch).

No random generator keeps state. The order of an epoch comes from (seed, epoch), and every choice inside a group (its
anchor, its partners, its subset of languages) from a hash of (seed, epoch, sentence, times seen before in the epoch). A
position is therefore three numbers, any batch can be recreated, and all ranks agree without communication.

An epoch is an order of *items*. An item is a group, or one pair of it (`rows="matching"`). The order is spread evenly
over sources and languages, cut into pools of `pool` batches, and inside a pool items of similar length share a batch,
so that little is padded; the batches of a pool are then shuffled. `one_pair` without a pool cuts the whole epoch by
combination of languages, in random order (IMASCL). Kept in memory: 20 bytes per item of the epoch; then, also its rows.

An epoch has as many items as the table, those of a source counted up to its cap. Without weights and caps of sources
and at temperature 1 each is seen once. Otherwise every bucket (source, language) gets a quota; a bucket with a quota
above its size is traversed several times, so that no item is repeated before all have been used equally often. The
language of a group is its rarest one, so an English-Korean pair counts as Korean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from isoglot.core.errors import CorpusError
from isoglot.data.batch import Batch
from isoglot.data.table import Array, GroupTable, join_ranges
from isoglot.data.tokens import Tokens

MOST = 2**31 - 1
Count = Annotated[int, Field(strict=True, gt=0, le=MOST)]
Limit = Annotated[int, Field(strict=True, ge=0, le=MOST)]  # 0: none
Flag = Annotated[bool, Field(strict=True)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Positive = Annotated[float, Field(strict=True, ge=1e-30, le=1e9, allow_inf_nan=False)]  # float32 goes down to 1e-38


class Batching(BaseModel):
    """How groups become batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    size: Count = Field(128, description="groups per batch over all ranks; with `tokens`, the maximum")
    tokens: Limit = Field(0, description="token budget of a batch, rows x longest row; 0: none")
    pool: Count = Field(1, description="batches sorted by length together, so less padding; 1: random order")
    rows: Literal["all", "matching"] = Field(
        "all",
        description="matching: a random perfect matching cuts each group into cross-language pairs (MPCL +Single)",
    )
    most: Limit = Field(0, description="how many sentences of a group are drawn at random; 0: all")
    hard_negatives: int = Field(-1, strict=True, ge=-1, le=MOST, description="of a group, drawn at random; -1: all")
    views: int = Field(1, strict=True, gt=0, le=1024, description="rows of each sentence, for dropout masks (SimCSE)")
    anchor: Literal["random", "first"] = Field(
        "random", description="which sentence is slot 0; first: as in the source"
    )
    one_pair: Flag = Field(False, description="every batch contains one combination of languages only (IMASCL)")
    temperature: float = Field(
        1.0, strict=True, ge=0.1, le=1e9, allow_inf_nan=False,
        description="languages are drawn as n^(1/temperature), within each source if one has a weight; large: equal",
    )  # fmt: skip


class Mixing(BaseModel):
    """The share of a source in a corpus and in its epochs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    weight: Positive | None = Field(
        None, description="share of an epoch's items, relative to other sources; None: by size"
    )
    cap: Limit = Field(
        0, description="maximum items in an epoch, others in each epoch (Raffel et al. 2020); 0: no limit"
    )
    most: Limit = Field(0, description="maximum sentences drawn from a group; 0: that of the stream's batching")
    sample: Limit = Field(
        0, description="groups, drawn once for all runs, a smaller sample being part of a larger; 0: all"
    )
    seed: Seed = Field(0, description="seed of the sample, and of a reader that draws at random")


WHOLE = Mixing()  # all of a source, by its size


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
        mixing: Mapping[str, Mixing] | None = None,
        position: Position | None = None,
        columns: Mapping[str, Callable[[Array], Array]] | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if not len(table):
            raise ValueError("the corpus contains no groups; check the sources and the filters of the stream")
        self.table, self.settings, self.seed = table, settings, seed
        self.mixing = mixing or {}
        limits = [self.mixing.get(name, WHOLE).most or settings.most for name in table.sources]
        self._most = np.array([limit or MOST for limit in limits]) if any(limits) else None  # for each source
        self.columns = dict(columns or {})  # from row numbers of the table to a value each, such as a teacher's vector
        self.position = position or Position()
        self.rank, self.world = rank, world
        # Both are made once while batches of the same epoch and pool are taken.
        self._items = lru_cache(1)(partial(epoch_items, table, settings, seed=seed, mixing=self.mixing))
        self._cuts = lru_cache(1)(self._cut)

    def __iter__(self) -> Iterator[Batch]:
        while True:
            yield self.next()

    def next(self) -> Batch:
        """The batch at the position, which moves on."""
        cuts = self._cuts(self.position.epoch, self.position.pool)
        while self.position.batch >= len(cuts):
            epoch, pool = self.position.epoch, self.position.pool + 1
            self.position = Position(epoch, pool) if pool < len(self._pools(epoch)) else Position(epoch + 1)
            cuts = self._cuts(self.position.epoch, self.position.pool)
        at = self.position
        items = cuts[at.batch]
        self.position = Position(at.epoch, at.pool, at.batch + 1)
        return self._batch(at.epoch, items[self.rank :: self.world])

    def count(self, epoch: int = 0) -> int:
        """Number of batches in an epoch."""
        return sum(len(self._cuts(epoch, pool)) for pool in range(len(self._pools(epoch))))

    def _pools(self, epoch: int) -> range:
        """The first item of each pool. Batches of one combination in random order are cut from an epoch as one pool."""
        settings, total = self.settings, len(self._items(epoch=epoch))
        size = total if settings.one_pair and settings.pool == 1 else settings.size * settings.pool
        return range(0, total, size)

    def _cut(self, epoch: int, pool: int) -> list[Array]:
        """The batches of a pool, as item numbers: as they come, or sorted by languages and length and then cut."""
        settings, pools = self.settings, self._pools(epoch)
        numbers = np.arange(pools[pool], min(pools[pool] + pools.step, pools.stop))
        if settings.pool == 1 and not settings.tokens and not settings.one_pair:
            return [numbers]
        selection = self._select(epoch, numbers)
        starts = np.cumsum(selection.sizes) - selection.sizes
        longest = np.maximum.reduceat(self.table.lengths(selection.rows), starts)
        language_pair = np.zeros(len(numbers), dtype=np.int64)  # a number per item, equal when its languages are
        if settings.one_pair:
            langs = mix(self.table.lang[selection.rows], 1)  # hashes, whose sum does not depend on their order
            of_texts = np.where(selection.slots >= 0, langs, np.uint64(0))
            language_pair = np.add.reduceat(of_texts, starts).astype(np.int64)
        rng = np.random.default_rng((self.seed, epoch, pool))
        sort_key = longest + rng.random(len(longest))  # ties in random order
        if settings.pool == 1:  # not sorted by length, which would make the batches of a whole epoch uniform
            sort_key = rng.random(len(longest))
        order = np.lexsort((sort_key, language_pair))
        cuts = _boundaries(language_pair[order], longest[order], selection.sizes[order], settings.size, settings.tokens)
        batches = np.split(numbers[order], cuts)
        return [batches[i] for i in rng.permutation(len(batches))]

    def _select(self, epoch: int, numbers: Array) -> Selection:
        items = self._items(epoch=epoch).take(numbers)
        most = None if self._most is None else self._most[self.table.source[items.group]]
        return select(self.table, items, self.settings, int(mix(epoch, self.seed)) >> 8, most=most)

    def _batch(self, epoch: int, numbers: Array) -> Batch:
        selection = self._select(epoch, numbers)
        groups = self._items(epoch=epoch).group[numbers]
        ids, lengths = self.table.tokens(selection.rows)

        def spread(per_item: Array) -> torch.Tensor:
            return torch.from_numpy(np.repeat(np.asarray(per_item), selection.sizes, axis=0))

        return Batch(
            tokens=Tokens(ids, lengths),
            group=spread(numbers.astype(np.int64)),
            key=spread(self.table.key[groups]),
            slot=torch.from_numpy(selection.slots),
            lang=torch.from_numpy(self.table.lang[selection.rows].astype(np.int64)),
            extras={name: spread(column[groups]) for name, column in self.table.extras.items()}
            | {name: torch.from_numpy(column(selection.rows)) for name, column in self.columns.items()},
        )


def _boundaries(language_pair: Array, longest: Array, sizes: Array, size: int, tokens: int) -> NDArray[np.int64]:
    """Where a new batch begins: at other languages, after `size` items, or before the token budget is exceeded."""
    cuts, first, rows, longest_row = [], 0, 0, 0
    items = zip(language_pair.tolist(), longest.tolist(), sizes.tolist(), strict=True)
    for i, (pair, length, count) in enumerate(items):
        over = tokens and (rows + count) * max(longest_row, length) > tokens
        if i and (pair != language_pair[first] or i - first == size or over):
            cuts.append(i)
            first, rows, longest_row = i, 0, 0
        rows, longest_row = rows + count, max(longest_row, length)
    return np.array(cuts, dtype=np.int64)


# How often each group is seen in an epoch, and in which order


def epoch_items(table: GroupTable, settings: Batching, *, seed: int, epoch: int, mixing: Mapping[str, Mixing]) -> Items:
    """The items of an epoch in their order. `mixing` are those of the sources by name."""
    parts = matching_sizes(table) if settings.rows == "matching" else np.ones(len(table), dtype=np.int64)
    group = np.repeat(np.arange(len(table)), parts)
    part = np.arange(len(group)) - np.repeat(np.cumsum(parts) - parts, parts)
    if not len(group):
        raise CorpusError('no group contains sentences of two languages, so batching.rows = "matching" finds no pairs')
    rng = np.random.default_rng((seed, epoch))
    bucket = buckets(table)[group]
    plain = settings.temperature == 1.0 and all(one.weight is None and not one.cap for one in mixing.values())
    quotas = np.bincount(bucket) if plain else _quotas(table, bucket, settings.temperature, mixing)
    drawn, rounds, places = [], [], []
    by_bucket = np.argsort(bucket, kind="stable")
    sizes = np.bincount(bucket, minlength=len(quotas))
    for size, stop, count in zip(sizes, np.cumsum(sizes), quotas, strict=True):
        if not count:
            continue
        members = by_bucket[stop - size : stop]
        times = -(-int(count) // size)  # a bucket with a quota above its size is traversed several times
        drawn.append(np.concatenate([rng.permutation(members) for _ in range(times)])[:count])
        rounds.append(np.repeat(np.arange(times, dtype=np.int32), size)[:count])
        places.append((np.arange(count) + rng.random(count)) / count)  # evenly spread over the epoch
    order = np.argsort(np.concatenate(places), kind="stable")
    member = np.concatenate(drawn)[order]
    return Items(group[member], part[member], np.concatenate(rounds)[order])


def buckets(table: GroupTable) -> Array:
    """(G,) number of the bucket of each group: its source and its rarest language."""
    count = np.bincount(table.lang[table.slot >= 0], minlength=len(table.languages))
    starts, _ = table.row_bounds(np.arange(len(table)))
    rarity = count[table.lang] * len(table.languages) + table.lang  # language breaks ties
    of_texts = np.where(table.slot >= 0, rarity, np.iinfo(np.int64).max)
    rarest = np.minimum.reduceat(of_texts, starts) % len(table.languages)
    return np.asarray(table.source.astype(np.int64) * len(table.languages) + rarest)


def _quotas(table: GroupTable, bucket: Array, temperature: float, mixing: Mapping[str, Mixing]) -> Array:
    """The number of items of each bucket in an epoch; in total as many as the sources contain, each counted up to its
    cap.
    """
    shares = [mixing.get(name, WHOLE) for name in table.sources]
    sizes = np.bincount(bucket, minlength=len(shares) * len(table.languages)).astype(float)
    sizes = sizes.reshape(len(shares), -1)  # a row for each source
    caps = np.array([share.cap or np.inf for share in shares])
    sizes *= np.minimum(1, caps / np.maximum(sizes.sum(axis=1), 1))[:, None]
    if any(share.weight is not None for share in shares):
        part = np.power(sizes, 1 / temperature)  # 0 stays 0
        goals = np.array([1.0 if share.weight is None else share.weight for share in shares])
        part *= (goals / np.maximum(part.sum(axis=1), 1e-12))[:, None]
    else:  # a language has one share of all sources, and a source its part of it by size
        part = sizes * np.power(np.maximum(sizes.sum(axis=0), 1e-12), 1 / temperature - 1)
    exact = part / part.sum() * round(sizes.sum())
    # A temperature or a weight may require more of a source than its cap: it gets its cap, and the epoch is shorter.
    of_sources = exact.sum(axis=1)
    exact *= (_round(np.minimum(of_sources, caps)) / np.maximum(of_sources, 1e-12))[:, None]
    return np.concatenate([*map(_round, exact)])


def _round(exact: Array) -> Array:
    """Whole numbers of the same sum, by largest remainders; the sum of `exact` is rounded."""
    whole = np.floor(exact).astype(np.int64)
    missing = round(exact.sum()) - int(whole.sum())
    places = np.argsort((whole - exact).ravel(), kind="stable")[:missing]
    whole.ravel()[places] += 1
    return whole


# Which sentences of a group become rows, and which of them is the anchor


@dataclass(frozen=True, slots=True)
class Items:
    """n items of an epoch: the group (n,) of each, which pair of it (n,) where groups are cut into pairs, and how often
    the item was in the epoch before (n,).
    """

    group: Array
    part: Array
    round: Array

    def __len__(self) -> int:
        return len(self.group)

    def take(self, numbers: Array) -> Items:
        """The items of the given numbers."""
        return Items(self.group[numbers], self.part[numbers], self.round[numbers])


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows of some items: rows (R,) of the table, their slot (R,), and how many each item has (I,)."""

    rows: Array
    slots: Array
    sizes: Array


@dataclass(frozen=True, slots=True)
class _Rows:
    """Candidate rows, item by item, an item's texts before its hard negatives, and what choices are hashed from: the
    row and its item's round; all (R,).
    """

    row: Array
    item: Array
    hard: Array
    draw: Array

    def take(self, at: Array) -> _Rows:
        return _Rows(self.row[at], self.item[at], self.hard[at], self.draw[at])

    @property
    def place(self) -> Array:
        """0, 1, 2, ... within each run of equal (item, hard)."""
        fresh = np.ones(len(self.item), dtype=bool)
        fresh[1:] = (self.item[1:] != self.item[:-1]) | (self.hard[1:] != self.hard[:-1])
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(self.item)), 0))
        return np.asarray(np.arange(len(self.item)) - first)


def select(table: GroupTable, items: Items, settings: Batching, salt: int, *, most: Array | None) -> Selection:
    """The rows of each item with their slots, following `rows`, `hard_negatives`, `views` and `anchor`.

    Second views have the slots after all first ones: slots 0 and 1 are of two sentences if a group has two.
    `most` (I,) is the maximum number of sentences of each item; None: all.
    """
    starts, stops = table.row_bounds(items.group)
    row, item = join_ranges(starts, stops - starts), np.repeat(np.arange(len(items)), stops - starts)
    rows = _Rows(row, item, table.slot[row] < 0, row + (items.round[item].astype(np.int64) << 48))
    rows = rows.take(np.lexsort((mix(rows.draw, salt), rows.hard, rows.item)))  # within a group, in random order
    rows = rows.take(~rows.hard | (settings.hard_negatives < 0) | (rows.place < settings.hard_negatives))
    if settings.rows == "matching":
        rows = _partners(table, rows, items, salt)
    elif most is not None:
        rows = rows.take(rows.hard | (rows.place < most[rows.item]))
    if settings.anchor == "first":
        rows = rows.take(np.lexsort((rows.row, rows.hard, rows.item)))  # back in the order of the source
    times = np.where(rows.hard, 1, settings.views)
    again = np.repeat(np.arange(len(rows.row)), times)
    view = np.arange(len(again)) - np.repeat(np.cumsum(times) - times, times)
    place, texts = rows.place[again], np.bincount(rows.item[~rows.hard], minlength=len(items))
    slots = np.where(rows.hard[again], -1 - place, place + view * texts[rows.item[again]])
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

    A group of five sentences in en en de fr de has two pairs. Sorted, it is en1 en2 de1 de2 fr, half of five is two, so
    pair 0 is sentences 0 and 2 (en1, de1) and pair 1 is 1 and 3 (en2, de2); fr has no partner. With three en of five,
    the most common language reaches 3: en1 en2 en3 de fr gives (en1, de) and (en2, fr).
    """
    lang = table.lang[rows.row]
    count = np.where(rows.hard, 0, _same_language(lang, rows.item * 2 + rows.hard))
    group = items.group[rows.item] + (items.round[rows.item].astype(np.int64) << 32)
    language = mix(lang + (group << 16), salt + 1)
    rows = rows.take(np.lexsort((mix(rows.draw, salt), language, -count, rows.hard, rows.item)))
    total = np.bincount(rows.item[~rows.hard], minlength=len(items))
    top = np.zeros(len(items), dtype=np.int64)
    np.maximum.at(top, rows.item, count)
    reach, part = np.maximum(total // 2, top)[rows.item], items.part[rows.item]
    rows = rows.take(rows.hard | (rows.place == part) | (rows.place == part + reach))
    chance = mix(rows.draw, salt + 2)  # either of the two may be the anchor
    return rows.take(np.lexsort((chance, rows.hard, rows.item)))


def _same_language(lang: Array, group: Array) -> Array:
    """(R,) number of rows of the same group in the row's language."""
    cell = group.astype(np.int64) * 65536 + lang.astype(np.int64)
    _, inverse, counts = np.unique(cell, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse])


def mix(values: Any, salt: int) -> Any:
    """A 64-bit hash of each value and the salt (the finaliser of SplitMix64): random numbers without a generator."""
    with np.errstate(over="ignore"):
        z = np.asarray(values).astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
