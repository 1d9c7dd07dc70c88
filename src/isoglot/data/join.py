"""Joins groups that share a sentence: bitexts become groups of many languages.

English-German and English-French pairs over one English sentence become one group of three. Sentences are nodes, groups
connect their sentences, and each connected component is one meaning. The groups are read twice. The first pass keeps
64-bit hashes and finds the connected components (union-find); the second collects the texts and yields each joined
group as soon as its last part has been read.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from isoglot.core.errors import CorpusError
from isoglot.data.filters import hash_sentence
from isoglot.data.groups import Group, unzip


def join(groups: Iterable[Group], *, largest: int, counts: Counter[str]) -> Iterator[Group]:
    """The groups, with those that share a sentence (the same text in the same language) merged.

    A merged group holds each sentence once, in the order read; several sentences of one language are paraphrases and
    all stay. Of keys, and of extras with one name, the first is kept; hard negatives are gathered, except those that
    became positives. Merged groups are given in the order in which they become complete, the others where they stood.

    `largest` bounds the sentences of a merged group, since one "Yes." can connect thousands of meanings: a group that
    would exceed it is left apart (one larger than that by itself stays as it is). It and the largest group it shares a
    sentence with get one new key, so that they are never negatives of each other.

    `counts` gets "joined" (groups that went into a larger one) and "left apart". Kept in memory: about 50 bytes for
    each sentence read while sorting, 30 after, and the texts of merged groups not yet complete. Raises `CorpusError`
    when the second reading differs from the first.
    """
    plan = _plan(groups, largest)
    counts["left apart"] += len(plan.apart)
    counts["joined"] += sum(count for count in plan.waiting if count > 1)
    growing: dict[int, _Merged] = {}
    place = -1
    for place, group in enumerate(groups):
        if place >= len(plan.part):
            break
        part = plan.part[place]
        if part < 0:
            yield replace(group, key=plan.apart.get(place, group.key))
            continue
        plan.waiting[part] -= 1
        if part not in growing and not plan.waiting[part]:
            yield replace(group, key=plan.keys[part]) if part in plan.keys else group
            continue
        growing.setdefault(part, _Merged()).add(group)
        if not plan.waiting[part]:
            yield growing.pop(part).close(plan.keys.get(part))
    if growing or place + 1 != len(plan.part):
        raise CorpusError("the groups to join differ between two readings; read the same in the same order, or a list")


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where each of G groups goes.

    `part` (G,): the connected part the group belongs to, -1 for a group left apart. `waiting` (number of parts,): how
    many groups of each part are still to be read. `apart`: the key of each group left apart, by its place. `keys`: the
    key of each part such a group touches.
    """

    part: array[int]
    waiting: array[int]
    apart: dict[int, str]
    keys: dict[int, str]


@dataclass(slots=True)
class _Merged:
    """A joined group while it grows; the dicts are ordered sets of (text, language)."""

    texts: dict[tuple[str, str], None] = field(default_factory=dict)
    hard: dict[tuple[str, str], None] = field(default_factory=dict)
    extras: dict[str, float | tuple[float, ...]] = field(default_factory=dict)
    key: str = ""

    def add(self, group: Group) -> None:
        self.texts |= dict.fromkeys(zip(group.texts, group.langs, strict=True))
        self.hard |= dict.fromkeys(zip(group.hard_negatives, group.hard_langs, strict=True))
        self.extras = {**group.extras, **self.extras}
        self.key = self.key or group.key

    def close(self, key: str | None) -> Group:
        hard = [pair for pair in self.hard if pair not in self.texts]
        return Group(*unzip(self.texts), key or self.key, *unzip(hard), self.extras)


def _plan(groups: Iterable[Group], largest: int) -> _Plan:
    hashes, lengths = bytearray(), array("q")
    for group in groups:
        lengths.append(len(group.texts))
        for text, code in zip(group.texts, group.langs, strict=True):
            hashes += hash_sentence(text, code)
    distinct, inverse = np.unique(np.frombuffer(bytes(hashes), dtype=np.uint64), return_inverse=True)
    nodes = array("q", inverse.astype(np.int64).tobytes())
    parent, touched = _unite(nodes, lengths, len(distinct), largest)
    roots, part, start = dict[int, int](), array("q"), 0
    for place, length in enumerate(lengths):
        outside = place in touched or not length
        part.append(-1 if outside else roots.setdefault(_find(parent, nodes[start]), len(roots)))
        start += length
    waiting = array("q", bytes(8 * len(roots)))
    for number in part:
        if number >= 0:
            waiting[number] += 1
    # A key is the hash of a sentence, so that two joined sources never share one by accident.
    apart = {place: _find(parent, node) for place, node in touched.items()}
    names = {root: f"joined-{int(distinct[root]):016x}" for root in apart.values()}
    keys = {roots[root]: name for root, name in names.items() if root in roots}
    return _Plan(part, waiting, {place: names[root] for place, root in apart.items()}, keys)


def _unite(nodes: array[int], lengths: array[int], count: int, largest: int) -> tuple[array[int], dict[int, int]]:
    """The parents of the sentences, and for each group left apart a sentence of the largest part it touches."""
    parent, size = array("q", range(count)), array("q", [1]) * count
    touched: dict[int, int] = {}
    start = 0
    for place, length in enumerate(lengths):
        roots = {_find(parent, node) for node in nodes[start : start + length]}
        start += length
        if len(roots) < 2:
            continue
        top = max(roots, key=lambda root: (size[root], -root))
        total = sum(size[root] for root in roots)
        if total > largest:
            touched[place] = top
            continue
        for root in roots:
            parent[root] = top
        size[top] = total
    return parent, touched


def _find(parent: array[int], node: int) -> int:
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node
