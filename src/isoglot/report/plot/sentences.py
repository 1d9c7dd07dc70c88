"""Which sentences a map shows, and what each is coloured by.

A plane of more than a few thousand points is a cloud in which nothing can be told apart, and t-SNE takes long over it.
So whole groups are chosen at random, in one pass that holds no more than are kept, and the map says so.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from isoglot.data.groups import Group
from isoglot.errors import EvaluationError

LIMIT = 2000  # sentences of a map, unless the user says otherwise


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a map: its text and language, the number of its group, and the kind it is coloured by."""

    text: str
    language: str
    group: int
    kind: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """The groups that are shown, in the order of the data, out of how many sentences, drawn with which seed."""

    groups: tuple[Group, ...]
    total: int
    seed: int

    @property
    def size(self) -> int:
        """Sentences that are shown."""
        return sum(len(group.texts) for group in self.groups)

    @property
    def words(self) -> str:
        """`2,000 of 12,345 sentences, drawn with seed 0`, or `120 sentences` when all are shown."""
        if self.size == self.total:
            return f"{self.total:,} sentence{'' if self.total == 1 else 's'}"
        return f"{self.size:,} of {self.total:,} sentences, drawn with seed {self.seed}"

    def sentences(self, color: str = "language") -> list[Sentence]:
        """Every sentence, coloured by `language`, or by the extra of its group that is called `color`.

        Raises `EvaluationError` when a group has no such extra, naming those there are.
        """
        return [
            Sentence(text, language, number, language if color == "language" else _extra(group, color))
            for number, group in enumerate(self.groups)
            for text, language in zip(group.texts, group.langs, strict=True)
        ]


def choose(groups: Iterable[Group], *, limit: int = LIMIT, seed: int = 0) -> Chosen:
    """Groups of at most `limit` sentences altogether: all, or as many as fit of a random order.

    The same groups, limit and seed give the same choice. Raises `ValueError` for a limit below 1 and
    `EvaluationError` when there is no sentence, or when the limit is smaller than a group.
    """
    if limit < 1:
        raise ValueError(f"limit is {limit}; at least one sentence must be shown")
    draw = np.random.default_rng(seed)
    kept: list[tuple[float, int, Group]] = []  # a heap, the last of the random order on top
    size = total = 0
    bound = float("inf")
    for place, group in enumerate(groups):
        rank = float(draw.random())
        total += len(group.texts)
        if rank < bound:
            heapq.heappush(kept, (-rank, place, group))
            size += len(group.texts)
        while size > limit:  # nothing behind the first that did not fit is taken, so that large groups are not rarer
            last, _, dropped = heapq.heappop(kept)
            size, bound = size - len(dropped.texts), -last
    if not total:
        raise EvaluationError("there are no sentences to show; name files that hold text")
    if not size:
        raise EvaluationError(f"not one group fits into {limit} sentences; raise the limit")
    return Chosen(tuple(group for _, _, group in sorted(kept, key=lambda entry: entry[1])), total, seed)


def _extra(group: Group, name: str) -> str:
    if name not in group.extras:
        there = ", ".join(group.extras) or "none"
        raise EvaluationError(
            f"cannot colour by {name!r}: the group of {group.texts[0][:40]!r} has no such extra (it has: {there}); "
            "colour by language, or give labels"
        )
    value = group.extras[name]
    return f"{value:g}" if isinstance(value, (int, float)) else " ".join(f"{part:g}" for part in value)
