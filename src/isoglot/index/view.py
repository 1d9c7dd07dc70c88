"""One moment of an index, which is searched while others write."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.languages import matches
from isoglot.index import structures
from isoglot.index.scale import Scale
from isoglot.index.store import Files, Store
from isoglot.index.table import Rows, Table, Vectors, find_nearest

_SCORED = 1 << 14  # vectors at a time whose scores are computed exactly
_SPARE = 16  # candidates beyond k: rounding may swap rows at the edge, until scores are exact
_ROUNDING = 1e-5  # more than scores in float32 differ from exact ones
_NEAREST, _QUERIES = 10, 100  # of a measurement of the recall

_Nearest = tuple[NDArray[Any], Rows]  # cosines, best first, and their rows


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry of an index: its sentence that is nearest to the query, and another side of it, or its translation.

    score        cosine of the sentence with the query
    text         the sentence
    language     its language code
    id           id of the entry; of several entries with equal sentences and translations, of the first
    translation  the other side, if there is one, and `translation_language`, `und` if it is not known
    row          row of the sentence's vector, as for `Index.vectors`, until entries are changed
    percent      what the score means: 100 for an equal vector or text, 50 for a score that one in ten sentences has
                 with its nearest unrelated one, near 0 for most unrelated ones; see `isoglot.index.Scale`
    count        number of entries with equal sentences and translations
    """

    score: float
    text: str
    language: str
    id: str
    translation: str | None
    translation_language: str
    row: int
    percent: float
    count: int


def with_equal_text(query: str, hits: Sequence[Hit]) -> list[Hit]:
    """The hits, those with the query's own text at 100 %: vectors of int8 depend a little on their batch."""
    return [replace(hit, percent=100.0) if hit.text == query else hit for hit in hits]


@dataclass(frozen=True, eq=False)  # `==` of arrays is not a bool
class View:
    """One moment of an index: its vectors, the FAISS structure, and which rows count.

    Texts are asked for in the database, which may be ahead: `Store.reading` says whether rows have changed since.
    """

    store: Store
    files: Files
    table: Table
    structure: Any
    live: NDArray[np.bool_]

    @property
    def covered_rows(self) -> int:
        """The number of rows that the FAISS structure covers."""
        return 0 if self.structure is None else int(self.structure.ntotal)

    @cached_property
    def languages(self) -> tuple[dict[str, int], NDArray[np.int32]]:
        """A number for each language, and the number of every row's language, -1 where it is deleted."""
        return self.store.language_of_rows(self.files.rows)

    def select(self, languages: Collection[str], without: Collection[str]) -> View:
        """The rows in some languages (none: in all), but not in others, which are searched exactly."""
        numbers, language_of_rows = self.languages
        included = [code for code in numbers if not languages or matches(code, languages)]
        wanted = [numbers[code] for code in included if not matches(code, without)]
        return replace(self, structure=None, live=np.isin(language_of_rows, wanted))

    def find(self, queries: Vectors, k: int, effort: int | None, device: str) -> list[_Nearest]:
        """Cosines and rows of the k nearest entries for each query, of each entry the nearest row.

        More and more candidates are looked at until those left out can't be among the k: entries have several sides,
        several entries have the same content, and candidates of an approximate kind may be deleted. `device` computes
        many products.
        """
        results = [(np.empty(0), np.empty(0, np.int64))] * len(queries)
        unanswered, wanted, size = [*range(len(queries))], k + _SPARE, self.files.rows
        while unanswered:
            count, batch = min(wanted, size), queries[unanswered]
            rows = find_nearest(self.table, batch, count, first=self.covered_rows, keep=self.live, device=device)
            has_all = np.full(len(unanswered), rows.shape[1] < count)
            if self.structure is not None:
                candidates = structures.find_candidates(self.structure, batch, count, effort=effort)
                has_all &= (candidates < 0).any(axis=1) | (candidates.shape[1] < 4 * count)
                rows = np.concatenate([np.where(self.live[candidates], candidates, -1), rows], axis=1)
            scored = [self._score(query, row) for query, row in zip(batch, rows, strict=True)]
            contents = self.store.contents(sorted({row for _, nearest_rows in scored for row in nearest_rows.tolist()}))
            waiting = []
            for at, (scores, nearest_rows), is_complete in zip(unanswered, scored, has_all.tolist(), strict=True):
                places = dict[int, int]()  # of the nearest row of each entry; rows that vanished meanwhile differ
                for place, row in enumerate(nearest_rows.tolist()):
                    places.setdefault(contents.get(row, -1 - row), place)
                best = [*places.values()][:k]
                results[at] = scores[best], nearest_rows[best]
                # Rows that are no candidates score no more than the last candidate, so none of them is among the best.
                is_clear = len(best) == k and scores[best[-1]] > scores[-1] + _ROUNDING
                if not (is_complete or is_clear or len(places) >= k + _SPARE or count == size):
                    waiting.append(at)
            unanswered, wanted = waiting, 4 * wanted
        return results

    def _score(self, query: Vectors, rows: Rows) -> _Nearest:
        """Rows, best first, with cosines in float64: they depend on two vectors, not on what was searched with them."""
        rows = rows[rows >= 0]
        scores = np.empty(len(rows))
        for start in range(0, len(rows), _SCORED):
            part = slice(start, start + _SCORED)
            scores[part] = (self.table[rows[part]].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
        order = np.lexsort((rows, -scores))
        return np.clip(scores[order], -1, 1), rows[order]  # rounding puts some beyond

    def hits(self, results: Sequence[_Nearest], scale: Scale) -> list[list[Hit]]:
        """What `find` returns, with texts, and with what the scores mean."""
        all_rows = sorted({row for _, rows in results for row in rows.tolist()})
        sentences, contents = self.store.by_row(all_rows), self.store.contents(all_rows)
        counts = self.store.counts(sorted({*contents.values()}))
        hits: list[list[Hit]] = []
        for scores, rows in results:
            hits.append([])
            for score, percent, row in zip(*map(np.ndarray.tolist, (scores, scale.percent(scores), rows)), strict=True):
                one, count = sentences[row], counts.get(contents.get(row, 0), 1)  # removed meanwhile: itself
                shown_with = one.translation, one.translation_language
                hits[-1].append(Hit(score, one.text, one.language, one.id, *shown_with, row, percent, count))
        return hits

    def measure_recall(self) -> float:
        """The share of the ten nearest others of a hundred rows that are among the candidates of a search for ten."""
        live_rows = np.flatnonzero(self.live)
        rows = np.random.default_rng(0).choice(live_rows, min(_QUERIES, len(live_rows)), replace=False)
        queries, shares = self.table[rows], []
        exact = find_nearest(self.table, queries, _NEAREST + 1, keep=self.live)
        near = structures.find_candidates(self.structure, queries, _NEAREST + _SPARE)
        for row, query, true, some in zip(rows, queries, exact, near, strict=True):
            if len(others := true[true != row][:_NEAREST]):
                some = some[(some >= 0) & (some != row) & self.live[some]]
                hits = (self.table[some] @ query >= (self.table[others] @ query).min() - 1e-6).sum()
                shares.append(min(hits / len(others), 1))
        return float(np.mean(shares)) if shares else 1.0
