"""Aligns two sequences of sentences in order, n to m, by dynamic programming over their vectors and lengths.

The method is that of vecalign (Thompson and Koehn 2019, "Vecalign: Improved Sentence Alignment in Linear Time and
Space"). A move takes a run of sentences of each side, with the vectors x and y of the joined texts, and costs

    a b ((1 - cos(x, y)) / mean + difference),

where a and b are the numbers of sentences in the runs, mean is that of 1 - cos of x and of y with the runs of the other
side, and difference that of the two lengths, as a share of their sum. So a move of one sentence to one costs about 1 if
the two are as similar as any two, and 0 if they are equal. A sentence that is left out costs `skip`. The cheapest path
is found within a band around a path of one to one, which is found in turn around a path over pairs of neighbours, so
that time and memory are linear in the length of the text.

Deviation: lengths count, as in Gale and Church (1993, "A Program for Aligning Sentences in Bilingual Corpora"); the
mean is over all runs of the length of the other one, instead of a random sample of all; `skip` is a constant, since
costs are relative to this mean, instead of a percentile of the costs of random pairs. Vecalign has neither a path of
one to one at full resolution nor one over all pairs of up to `DENSE` sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Path = NDArray[np.int64]  # (P, 2): the numbers of sentences of both sides that are done, from (0, 0) to (N, M)
Band = tuple[NDArray[np.int64], NDArray[np.int64]]  # for each number of sources done, the first and last of targets

DENSE = 1024  # sentences of a side up to which all pairs are compared one to one
_SMALLEST = 1e-6  # of a divisor, where all vectors are equal, and of a distance


class Runs(NamedTuple):
    """The runs of sentences of a side.

    vectors (A, N, D)  unit vectors; [a - 1, i] is that of the `a` sentences from i, for i + a ≤ N
    ends (N + 1,)      length of all sentences before each, such that both sides have the same sum
    """

    vectors: Vectors
    ends: NDArray[np.float64]

    @classmethod
    def of(cls, vectors: Vectors, lengths: Sequence[int]) -> Runs:
        """The runs with lengths relative to their sum."""
        return cls(vectors, np.concatenate([[0], np.cumsum(lengths) / max(sum(lengths), 1)]))

    def halve(self) -> Runs:
        """Single sentences as runs of pairs of neighbours, whose vectors are the normalised means."""
        vectors = self.vectors[0]
        pairs = vectors[: len(vectors) // 2 * 2].reshape(-1, 2, vectors.shape[1]).mean(axis=1)
        halves = np.concatenate([pairs, vectors[len(pairs) * 2 :]])
        halves /= np.maximum(np.linalg.norm(halves, axis=1, keepdims=True), _SMALLEST)
        ends = self.ends[::2]
        return Runs(halves[None], ends if len(vectors) % 2 == 0 else np.append(ends, self.ends[-1]))


def list_moves(most: int) -> list[tuple[int, int]]:
    """Numbers of sentences of both sides that one move takes, at most `most` together; the last two leave one out."""
    pairs = [(a, b) for a in range(1, most) for b in range(1, most - a + 1)]
    return [*sorted(pairs, key=sum), (1, 0), (0, 1)]


class Costs:
    """The costs of moves between the runs of two sides."""

    def __init__(self, x: Runs, y: Runs) -> None:
        self.x, self.y = x, y
        mean_x, mean_y = (
            np.array([run[: max(len(run) - more, 1)].mean(axis=0) for more, run in enumerate(side.vectors)])
            for side in (x, y)
        )
        self._far_x = 1 - np.einsum("and,bd->abn", x.vectors, mean_y)
        self._far_y = 1 - np.einsum("bmd,ad->abm", y.vectors, mean_x)

    def similarity(self, a: int, b: int, i: int, first: int, last: int) -> NDArray[np.float64]:
        """1 for equal vectors, 0 for those as similar as any: of the `a` sources from i and the `b` targets from each
        of `first` to `last` - 1.
        """
        distance = 1 - self.y.vectors[b - 1, first:last] @ self.x.vectors[a - 1, i]
        mean = (self._far_x[a - 1, b - 1, i] + self._far_y[a - 1, b - 1, first:last]) / 2
        distance = np.where(distance < _SMALLEST, 0, distance)  # rounding, which must not decide between equal runs
        return np.asarray(1 - distance / np.maximum(mean, _SMALLEST), np.float64)

    def of_moves(self, a: int, b: int, i: int, first: int, last: int) -> NDArray[np.float64]:
        """The costs of moves of these runs."""
        source = self.x.ends[i + a] - self.x.ends[i]
        target = self.y.ends[first + b : last + b] - self.y.ends[first:last]
        difference = np.abs(source - target) / np.maximum(source + target, np.finfo(float).tiny)
        return np.asarray(a * b * (1 - self.similarity(a, b, i, first, last) + difference))


def find_path(costs: Costs, moves: Sequence[tuple[int, int]], skip: float, band: Band) -> tuple[Path, float]:
    """The cheapest path within a band, and its cost. The band contains some path, of (1, 0) and (0, 1) at least."""
    first, last = band
    count = len(first)
    depth = max(a for a, _ in moves)
    totals = list[NDArray[np.float64]]()  # of the last `depth` rows, each as wide as its band
    numbers = np.min_scalar_type(len(moves))
    choices = list[NDArray[np.unsignedinteger]]()
    taking = [(number, a, b) for number, (a, b) in enumerate(moves) if a]
    left_out = next(number for number, (a, _) in enumerate(moves) if not a)
    for i in range(count):
        width = int(last[i] - first[i]) + 1
        total, choice = np.full(width, np.inf), np.full(width, left_out, numbers)
        if i == 0:
            total[0] = 0
        for number, a, b in taking:
            if a > i:
                continue
            # Targets done after the move: in this row's band, and before it in the band of the row that it comes from.
            start = max(int(first[i]), int(first[i - a]) + b)
            stop = min(int(last[i]), int(last[i - a]) + b) + 1
            if start >= stop:
                continue
            price = costs.of_moves(a, b, i - a, start - b, stop - b) if b else skip
            reached = totals[-a][start - b - first[i - a] : stop - b - first[i - a]] + price
            part = slice(start - first[i], stop - first[i])
            better = reached < total[part]
            total[part][better] = reached[better]
            choice[part][better] = number
        # Leaving out targets: from the cheapest of all earlier places of the row, with `skip` for each step.
        steps = skip * np.arange(width)
        reached = np.minimum.accumulate(total - steps)[:-1] + steps[1:]
        better = reached < total[1:]
        total[1:][better] = reached[better]
        choice[1:][better] = left_out
        totals = [*totals, total][-depth:]
        choices.append(choice)
    i, j = len(choices) - 1, int(first[-1]) + len(choices[-1]) - 1
    path = [(i, j)]
    while (i, j) != (0, 0):  # back along the choices
        a, b = moves[choices[i][j - first[i]]]
        i, j = i - a, j - b
        path.append((i, j))
    return np.array(path[::-1], np.int64), float(totals[-1][-1])


def make_band(path: Path, width: int) -> Band:
    """The places at most `width` sentences of either side away from a path."""
    rows, columns = path[:, 0], path[:, 1]
    count, end = int(rows[-1]), int(columns[-1])
    every = np.arange(count + 1)
    # The first and last place of the path in each row; in a row that a move jumps over, those around it.
    before = np.searchsorted(rows, every, "left")
    before -= rows[before] > every
    after = np.searchsorted(rows, every, "right") - 1
    after += rows[after] < every
    first = columns[before][np.maximum(every - width, 0)] - width
    last = columns[after][np.minimum(every + width, count)] + width
    return np.maximum(first, 0), np.minimum(last, end)


def coarse_path(x: Runs, y: Runs, skip: float, width: int) -> Path:
    """The path of one to one between single sentences, around that between pairs of neighbours."""
    count, end = len(x.ends) - 1, len(y.ends) - 1
    if max(count, end) <= DENSE:
        band = np.zeros(count + 1, np.int64), np.full(count + 1, end)
    else:
        coarse = 2 * coarse_path(x.halve(), y.halve(), skip, width)
        band = make_band(np.minimum(coarse, (count, end)), width)
    return find_path(Costs(x, y), list_moves(2), skip, band)[0]


def align_runs(x: Runs, y: Runs, *, most: int, skip: float, width: int) -> tuple[Path, NDArray[np.float64]]:
    """The path between runs of up to `most` - 1 sentences, and the similarity of each of its moves.

    That of a sentence that is left out is 0.
    """
    single = [side._replace(vectors=side.vectors[:1]) for side in (x, y)]
    around = coarse_path(single[0], single[1], skip, width)
    costs = Costs(x, y)
    path, _ = find_path(costs, list_moves(most), skip, make_band(around, width))
    scores = np.zeros(len(path) - 1)
    for place, ((i, j), (a, b)) in enumerate(zip(path[:-1].tolist(), np.diff(path, axis=0).tolist(), strict=True)):
        if a and b:
            scores[place] = costs.similarity(a, b, i, j, j + 1)[0]
    return path, scores
