"""The running top k of many rows, fed one table of scores after another.

Two levels keep this cheap beside the product that made the table: the maxima of groups of neighbouring columns come
first, and only the k groups with the greatest maxima are looked into. That is exact, ties included: when an element is
in no chosen group, k groups with a greater maximum, or an equal one further to the left, each hold an element that
ranks before it. Of these only the groups whose maximum beats the row's k-th best so far are looked into: one or two
once a few tables have passed, and then, for ever more rows, none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

# Fills what is no real score. It is not -inf, which marks what has been taken already (see `_largest`).
LOWEST = np.finfo(np.float32).min

_FEW = 32  # up to here k passes of argmax beat one sort


@dataclass(frozen=True, slots=True)
class Best:
    """Scores and ids of the best so far, both (rows, k), best first; of equal scores the lowest id first."""

    scores: Floats
    ids: Ids

    @classmethod
    def empty(cls, rows: int, k: int) -> Best:
        """Nothing seen yet: every score is `LOWEST`."""
        return cls(np.full((rows, k), LOWEST, np.float32), np.zeros((rows, k), np.int64))

    def clear(self) -> None:
        """Forget everything seen."""
        self.scores.fill(LOWEST)
        self.ids.fill(0)

    def part(self, start: int, stop: int) -> Best:
        """A view of some rows; what it takes in, the whole takes in."""
        return Best(self.scores[start:stop], self.ids[start:stop])

    def take(self, maxima: Floats, look: Callable[[Ids, Ids], Floats], *, group: int, first: int) -> None:
        """Take in a table of one row for each of ours, in place.

        `maxima` (rows, groups) holds the maximum of each run of `group` columns; `look(rows, columns)` gives the
        scores at those places, for `rows` (r, 1) and `columns` (r, c). Column j has the id `first + j`, and `first`
        must grow from call to call, so that equal scores stay in the order of their ids.
        """
        rows = np.flatnonzero(maxima.max(axis=1) > self.scores[:, -1])
        if not len(rows):
            return
        beating = (maxima[rows] > self.scores[rows, -1:]).sum(axis=1).clip(max=self.scores.shape[1])
        for count in np.unique(beating).tolist():
            some = rows[beating == count]
            self._take(some, maxima[some], look, count=count, group=group, first=first)

    def _take(
        self, rows: Ids, maxima: Floats, look: Callable[[Ids, Ids], Floats], *, count: int, group: int, first: int
    ) -> None:
        """Take in what so many groups of these rows hold, those with the greatest maxima (r, groups)."""
        k = self.scores.shape[1]
        groups = np.sort(_largest(maxima, count), axis=1)
        columns = (groups[:, :, None] * group + np.arange(group)).reshape(len(rows), -1)
        scores = np.concatenate([self.scores[rows], look(rows[:, None], columns)], axis=1)
        ids = np.concatenate([self.ids[rows], columns + first], axis=1)
        chosen = _largest(scores.copy(), k)
        self.scores[rows] = np.take_along_axis(scores, chosen, axis=1)
        self.ids[rows] = np.take_along_axis(ids, chosen, axis=1)


def _largest(table: Floats, k: int) -> Ids:
    """Columns of the k largest of each row, (rows, k), largest first, ties from the left. Destroys `table`."""
    if k > _FEW:
        return np.argsort(-table, axis=1, kind="stable")[:, :k]
    rows = np.arange(len(table))
    chosen = np.empty((len(table), k), np.int64)
    for place in range(k):
        chosen[:, place] = at = table.argmax(axis=1)
        table[rows, at] = -np.inf
    return chosen
