"""The top k of the rows of a table of scores that is seen piece by piece."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

# Marks an empty place. It is not -inf, which marks what has been taken already (see `_largest`).
LOWEST = np.finfo(np.float32).min

FEW = 32  # up to here k passes of argmax beat one sort


@dataclass(frozen=True, slots=True)
class Best:
    """The running top k of many rows, given one table of scores after another.

    Two levels make this cheap compared with the matmul: of the maxima of groups of neighbouring columns,
    only the k greatest groups are examined. That is exact, including ties: an element outside the chosen groups ranks
    after k elements of k groups with a greater maximum, or an equal one further left. Of these groups only those whose
    maximum exceeds the row's current k-th best are examined: one or two after a few tables, later none for most rows.

    `scores` and `ids` are (rows, k), best first; of equal scores the lowest id first.
    """

    scores: Floats
    ids: Ids

    @classmethod
    def empty(cls, rows: int, k: int) -> Best:
        """Nothing seen yet: every score is `LOWEST`."""
        return cls(np.full((rows, k), LOWEST, np.float32), np.zeros((rows, k), np.int64))

    def clear(self) -> None:
        """Reset to the initial state."""
        self.scores.fill(LOWEST)
        self.ids.fill(0)

    def part(self, start: int, stop: int) -> Best:
        """A view of some rows."""
        return Best(self.scores[start:stop], self.ids[start:stop])

    def take(self, maxima: Floats, look: Callable[[Ids, Ids], Floats], *, group: int, first: int) -> None:
        """Update with a table of scores that has one row for each of ours, in place.

        `maxima` (rows, groups) has the maximum of each run of `group` columns; `look(rows, columns)` returns the scores
        at those places, for `rows` (r, 1) and `columns` (r, c). Column j has the id `first + j`, and `first` must grow
        from call to call, so that equal scores stay in the order of their ids.
        """
        k, floor = self.scores.shape[1], self.scores[:, -1]
        improving = np.flatnonzero(maxima.max(axis=1) > floor)
        if not len(improving):
            return
        maxima = maxima[improving]
        beating = (maxima > floor[improving, None]).sum(axis=1).clip(max=k)
        for count in np.unique(beating).tolist():
            places = np.flatnonzero(beating == count)
            step = max(1, len(self.scores) * k // count)  # bounds the memory
            for start in range(0, len(places), step):
                some = places[start : start + step]
                rows, groups = improving[some], np.sort(_largest(maxima[some], count), axis=1)
                columns = (groups[:, :, None] * group + np.arange(group)).reshape(len(rows), -1)
                scores = np.concatenate([self.scores[rows], look(rows[:, None], columns)], axis=1)
                ids = np.concatenate([self.ids[rows], columns + first], axis=1)
                best = _largest(scores.copy(), k)
                self.scores[rows] = np.take_along_axis(scores, best, axis=1)
                self.ids[rows] = np.take_along_axis(ids, best, axis=1)


def _largest(table: Floats, k: int) -> Ids:
    """Columns of the k largest of each row, (rows, k), largest first, ties from the left. Destroys `table`."""
    if k > FEW:
        return np.argsort(-table, axis=1, kind="stable")[:, :k]
    rows = np.arange(len(table))
    columns = np.empty((len(table), k), np.int64)
    for place in range(k):
        columns[:, place] = at = table.argmax(axis=1)
        table[rows, at] = -np.inf
    return columns
