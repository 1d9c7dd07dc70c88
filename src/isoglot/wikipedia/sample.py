"""A random sample of instances in one pass, in memory independent of the number of instances.

Each instance has a random number, a hash of the seed and its place. Instances are taken in the order of these numbers,
at most `share` of each entity, until there are `size`. An instance excluded from the sample of some instances is also
excluded from the sample of any superset, so the arrays are cut back whenever they have grown.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_SLACK = 1 << 18  # instances beyond twice the sample that are gathered before a cut


def number_of(seed: int, *place: object) -> int:
    """The random number of an instance, 63 bits, from its place: Wikipedia, page, text, start of the link."""
    words = "\t".join(map(str, (seed, *place)))
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), "big") >> 1


class Sample:
    """At most `size` instances, at most `share` of one entity."""

    def __init__(self, size: int, *, share: int) -> None:
        self._size, self._share = size, share
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._entities: NDArray[np.int64] = np.empty(0, np.int64)
        self._new: list[tuple[int, int]] = []

    def add(self, number: int, entity: int) -> None:
        """An instance by its random number, and the row of its entity."""
        self._new.append((number, entity))
        if len(self._new) > self._size + _SLACK:
            self._cut()

    def numbers(self) -> NDArray[np.int64]:
        """The numbers of the instances kept, ascending."""
        self._cut()
        return self._numbers

    def _cut(self) -> None:
        new = np.asarray(self._new, np.int64).reshape(-1, 2)
        self._new = []
        numbers = np.concatenate([self._numbers, new[:, 0]])
        # An article that lies in two dumps is met twice; its instances have the same numbers.
        numbers, first = np.unique(numbers, return_index=True)
        entities = np.concatenate([self._entities, new[:, 1]])[first]
        kept = _rank(entities) < self._share
        self._numbers, self._entities = numbers[kept][: self._size], entities[kept][: self._size]


def _rank(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many equal values come before each value."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: len(values)])
    lengths = np.diff(np.r_[starts, len(values)])
    ranks = np.empty(len(values), np.int64)
    ranks[order] = np.arange(len(values)) - np.repeat(starts, lengths)
    return ranks
