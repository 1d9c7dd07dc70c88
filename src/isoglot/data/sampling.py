"""How often each group is seen in an epoch, and in which order: weights of sources, temperature of languages.

An epoch has as many items as the table. Without weights and at temperature 1 each is seen once. Otherwise every
bucket (source, language) gets a quota; a bucket asked for more than it holds is gone through several times before any
of its items is repeated once more. The language of a group is its rarest one, so an English-Korean pair counts as
Korean. Buckets are interleaved, so that any stretch of the epoch holds each in proportion.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isoglot.data.selection import Items, matching_sizes
from isoglot.data.table import Array, GroupTable
from isoglot.errors import CorpusError
from isoglot.settings import Batching


def epoch_items(
    table: GroupTable, settings: Batching, *, seed: int, epoch: int, weights: Mapping[str, float] | None = None
) -> Items:
    """The items of an epoch in their order. `weights` gives the relative share of each source by name, else 1."""
    parts = np.ones(len(table), dtype=np.int64)
    if settings.rows == "matching":
        parts = matching_sizes(table)
    group = np.repeat(np.arange(len(table)), parts)
    part = np.arange(len(group)) - np.repeat(np.cumsum(parts) - parts, parts)
    if not len(group):
        raise CorpusError(
            'no group holds sentences of two languages, so batching.rows = "matching" finds no pairs in them'
        )
    rng = np.random.default_rng((seed, epoch))
    bucket = buckets(table)[group]
    plain = not weights and settings.temperature == 1.0
    quotas = np.bincount(bucket) if plain else _quotas(table, bucket, settings.temperature, weights or {})
    chosen, places = [], []
    by_bucket = np.argsort(bucket, kind="stable")
    held = np.bincount(bucket, minlength=len(quotas))
    for number, (stop, count) in enumerate(zip(np.cumsum(held), quotas, strict=True)):
        if not count:
            continue
        members = by_bucket[stop - held[number] : stop]
        rounds = -(-int(count) // len(members))
        drawn = np.concatenate([rng.permutation(members) for _ in range(rounds)])[:count]
        chosen.append(drawn)
        places.append((np.arange(count) + rng.random(count)) / count)  # evenly spread over the epoch
    order = np.concatenate(chosen)[np.argsort(np.concatenate(places), kind="stable")]
    return Items(group[order], part[order])


def buckets(table: GroupTable) -> Array:
    """(G,) number of the bucket of each group: its source and its rarest language."""
    count = np.bincount(table.lang[table.slot >= 0], minlength=len(table.languages))
    starts, _ = table.row_bounds(np.arange(len(table)))
    rarity = count[table.lang] * len(table.languages) + table.lang  # language breaks ties
    rarest = np.minimum.reduceat(np.where(table.slot >= 0, rarity, np.iinfo(np.int64).max), starts) % len(
        table.languages
    )
    return np.asarray(table.source.astype(np.int64) * len(table.languages) + rarest)


def _quotas(table: GroupTable, bucket: Array, temperature: float, weights: Mapping[str, float]) -> Array:
    """How many items of each bucket an epoch has; the total stays what it is."""
    held = np.bincount(bucket).astype(float)
    source = np.arange(len(held)) // len(table.languages)
    share = np.power(held, 1.0 / temperature)  # 0 stays 0
    for number, name in enumerate(table.sources):
        own = source == number
        natural = held[own].sum()
        goal = weights.get(name, 1.0) if weights else natural
        share[own] *= goal / max(share[own].sum(), 1e-12)
    exact = share / share.sum() * held.sum()
    quotas = np.floor(exact).astype(np.int64)
    rest = int(held.sum()) - int(quotas.sum())
    quotas[np.argsort(quotas - exact, kind="stable")[:rest]] += 1  # largest remainders, so the total is exact
    return np.asarray(quotas)
