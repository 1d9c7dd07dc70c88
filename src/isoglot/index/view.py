"""One moment of an index, which is searched while others write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.index import structures
from isoglot.index.store import Files
from isoglot.index.table import Rows, Table, Vectors, find_nearest

_SCORED = 1 << 14  # vectors at a time whose scores are computed exactly
_SPARE = 16  # candidates beyond k: rounding may swap rows at the edge, until scores are exact
_ROUNDING = 1e-5  # more than scores in float32 differ from exact ones
_NEAREST, _QUERIES = 10, 100  # of a measurement of the recall

_Nearest = tuple[NDArray[Any], Rows]  # cosines, best first, and their rows
_Contents = Callable[[Sequence[int]], dict[int, int]]


@dataclass(frozen=True, slots=True)
class View:
    """One moment of an index: vectors, the FAISS structure, the number of rows that it covers, and which rows count
    (None: all).
    """

    files: Files
    table: Table
    structure: Any
    covered: int
    live: NDArray[np.bool_] | None

    @property
    def live_rows(self) -> Rows:
        """The rows that count."""
        return np.arange(self.files.rows) if self.live is None else np.flatnonzero(self.live)

    def find(self, queries: Vectors, k: int, effort: int | None, contents_of: _Contents, device: str) -> list[_Nearest]:
        """Cosines and rows of the k nearest entries for each query, of each entry the nearest row.

        More and more candidates are looked at until those left out can't be among the k: entries have several sides,
        several entries have the same content, and candidates of an approximate kind may be deleted. `contents_of` gives
        the contents of the units of some rows, `device` computes many products.
        """
        chosen = [(np.empty(0), np.empty(0, np.int64))] * len(queries)
        left, wanted, size = [*range(len(queries))], k + _SPARE, self.files.rows
        while left:
            asked, some = min(wanted, size), queries[left]
            rows = find_nearest(self.table, some, asked, first=self.covered, keep=self.live, device=device)
            is_all = np.full(len(left), rows.shape[1] < asked)
            if self.structure is not None:
                near = structures.find_candidates(self.structure, some, asked, effort=effort)
                is_all &= (near < 0).any(axis=1) | (near.shape[1] < 4 * asked)
                if self.live is not None:
                    near = np.where(self.live[near], near, -1)
                rows = np.concatenate([near, rows], axis=1)
            scored = [self._score(query, row) for query, row in zip(some, rows, strict=True)]
            contents = contents_of(sorted({row for _, nearest_rows in scored for row in nearest_rows.tolist()}))
            waiting = []
            for at, (scores, nearest_rows), is_complete in zip(left, scored, is_all.tolist(), strict=True):
                places = dict[int, int]()  # of the nearest row of each entry; rows that vanished meanwhile differ
                for place, row in enumerate(nearest_rows.tolist()):
                    places.setdefault(contents.get(row, -1 - row), place)
                best = [*places.values()][:k]
                chosen[at] = scores[best], nearest_rows[best]
                is_clear = len(best) == k and scores[best[-1]] > scores[-1] + _ROUNDING
                if not (is_complete or is_clear or len(places) >= k + _SPARE or asked == size):
                    waiting.append(at)
            left, wanted = waiting, 4 * wanted
        return chosen

    def _score(self, query: Vectors, rows: Rows) -> _Nearest:
        """Rows, best first, with cosines in float64: they depend on two vectors, not on what was searched with them."""
        chosen = rows[rows >= 0]
        scores = np.empty(len(chosen))
        for start in range(0, len(chosen), _SCORED):
            part = slice(start, start + _SCORED)
            scores[part] = (self.table[chosen[part]].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
        order = np.lexsort((chosen, -scores))
        return scores[order], chosen[order]

    def measure_recall(self) -> float:
        """The share of the ten nearest others of a hundred rows that are among the candidates of a search for ten."""
        rows = np.random.default_rng(0).choice(self.live_rows, min(_QUERIES, len(self.live_rows)), replace=False)
        queries, shares = self.table[rows], []
        exact = find_nearest(self.table, queries, _NEAREST + 1, keep=self.live)
        near = structures.find_candidates(self.structure, queries, _NEAREST + _SPARE)
        for row, query, true, some in zip(rows, queries, exact, near, strict=True):
            if len(others := true[true != row][:_NEAREST]):
                some = some[(some >= 0) & (some != row)]
                some = some if self.live is None else some[self.live[some]]
                hits = (self.table[some] @ query >= (self.table[others] @ query).min() - 1e-6).sum()
                shares.append(min(hits / len(others), 1))
        return float(np.mean(shares)) if shares else 1.0
