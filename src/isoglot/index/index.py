"""An index: sentences of any languages, with their vectors, in a folder that grows and can be searched."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import exclusive
from isoglot.data.languages import matches
from isoglot.data.vectors import not_finite, unit
from isoglot.errors import CorpusError, SearchError
from isoglot.index import approximate
from isoglot.index.origin import Origin
from isoglot.index.store import Files, Sentence, Store, is_index
from isoglot.index.table import NAME, Rows, Table, Vectors, best, nearest
from isoglot.store import write_rows

_OURS = re.compile(r"\.?[-0-9A-Za-z]+-\d+\.faiss(\.[0-9a-f]{8}\.tmp)?")
_SCORED = 1 << 14  # vectors at a time whose scores are computed anew
_SPARE = 16  # candidates beyond k: rounding may swap rows at the edge, until scores are computed anew


@dataclass(frozen=True, slots=True)
class Hit:
    """A sentence found: its cosine with the query, its row, id, text and language."""

    score: float
    row: int
    id: str
    text: str
    language: str


class Index:
    """Sentences and their unit vectors. Open one with `open` or `create`; it can be used as a context manager.

    An open index shows what was there when it was opened, and what it has added itself. Threads may share one for
    searching. Raises `SearchError` for whatever is wrong with the folder.
    """

    def __init__(self, store: Store) -> None:
        self.folder, self.origin = store.folder, store.origin
        self.store = store
        self._languages: tuple[dict[str, int], NDArray[np.int32]] | None = None
        self._load()

    @classmethod
    def open(cls, folder: str | Path) -> Index:
        """The index in a folder.

        Here a missing, cut or exchanged file is found; a damaged page of the database or a vector that is not finite
        when it is read. Whatever is found is a `SearchError` that names the file.
        """
        store = Store(Path(folder))
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    @classmethod
    def create(cls, folder: str | Path, origin: Origin, *, kind: str = approximate.FLAT) -> Index:
        """A new, empty index; `kind` is "flat" (exact), "ivf", "ivf-pq", "hnsw", or a name of FAISS's factory."""
        approximate.check(kind, origin.dim)
        with exclusive(folder):
            return cls(Store.create(Path(folder), origin, kind))

    @staticmethod
    def exists(folder: str | Path) -> bool:
        """Whether the folder holds an index, be it empty; not if its creation was cut off."""
        return is_index(Path(folder))

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_error: object) -> None:
        self.store.close()

    def __len__(self) -> int:
        return self.files.rows

    @property
    def kind(self) -> str:
        """How it is searched."""
        return self.store.kind

    def add(self, sentences: Sequence[Sentence], vectors: Vectors) -> None:
        """Add sentences and their unit vectors (N, D); all of them or, whatever happens, none.

        Raises `SearchError` for an id that is taken, `ValueError` for vectors of another shape or not finite.
        """
        table = np.ascontiguousarray(vectors, np.float32)
        if table.shape != (len(sentences), self.origin.dim):
            raise ValueError(f"vectors must be ({len(sentences)}, {self.origin.dim}), not {table.shape}")
        if len(bad := not_finite(table)):
            raise ValueError(f"vectors must be finite, and row {bad[0]}, of {sentences[bad[0]].id!r}, is not")
        with self.store.writing() as before:
            self._sweep(before)
            self.store.add(sentences, before.rows)
            self._write(before.rows, table)
        self._load()

    def build(self, *, kind: str | None = None) -> None:
        """Let the FAISS structure cover all rows; of another `kind`, make it anew from the vectors that are kept."""
        wanted = kind or self.kind
        if wanted != self.kind or (wanted != approximate.FLAT and self._covered != len(self)):
            self._build(wanted)
        with self.store.writing() as now:  # a writer that was killed leaves files, even where nothing is left to add
            self._sweep(now)

    def search(
        self, queries: Vectors, k: int = 10, *, languages: Collection[str] = (), effort: int | None = None
    ) -> list[list[Hit]]:
        """The k sentences nearest to each query (Q, D), best first; of equal scores the one added first.

        `languages` (house codes) looks among these only, and then exactly, whatever the kind. `effort`: see
        `approximate.candidates`. Queries need not be of length one. Raises `ValueError` for a wrong shape or k.
        """
        table = np.atleast_2d(queries)
        if table.shape[1] != self.origin.dim:
            raise ValueError(f"queries must have {self.origin.dim} dimensions, got shape {table.shape}")
        if k < 1:
            raise ValueError(f"k is {k}; at least one sentence must be asked for")
        table = np.ascontiguousarray(unit(table))
        rows = self._candidates(table, min(k + _SPARE, len(self)), languages, effort)
        found = [self._score(query, row, k) for query, row in zip(table, rows, strict=True)]
        known = self.store.by_row(sorted({row for _, rows in found for row in rows.tolist()}))
        return [
            [
                Hit(float(score), row, known[row].id, known[row].text, known[row].language)
                for score, row in zip(scores.tolist(), rows.tolist(), strict=True)
            ]
            for scores, rows in found
        ]

    def vectors(self, rows: Sequence[int] | Rows) -> Vectors:
        """Copies (N, D) of the vectors of some rows."""
        return self._table[np.asarray(rows, np.int64)]

    def _candidates(self, queries: Vectors, k: int, languages: Collection[str], effort: int | None) -> Rows:
        if languages:
            return nearest(self._table, queries, k, keep=self._rows_in(languages))[1]
        rows = nearest(self._table, queries, k, first=self._covered)[1]
        if self._structure is None:
            return rows
        # Compressed vectors order their candidates roughly, so more are taken than are shown.
        near = approximate.candidates(self._structure, queries, 4 * k, effort=effort)
        return np.concatenate([near, rows], axis=1)

    def _build(self, wanted: str) -> None:
        approximate.check(wanted, self.origin.dim)
        with self.store.writing() as now:
            self._load(now)
            structure = self._structure if wanted == self.kind else None
            found = None
            if wanted != approximate.FLAT and len(self):
                if structure is None:
                    structure = approximate.train(wanted, self._table, self.origin.dim)
                self._cover(structure)
                name = f"{re.sub('[^0-9A-Za-z]+', '-', wanted)}-{len(self)}.faiss"
                found = approximate.write(self.folder / "faiss" / name, structure)
            self.store.set_approximate(found, wanted)
        self._load()

    def _cover(self, structure: Any) -> None:
        """Add the rows that the structure lacks."""
        for _, block in self._table.blocks(structure.ntotal):
            structure.add(np.ascontiguousarray(block))

    def _score(self, query: Vectors, rows: Rows, k: int) -> tuple[NDArray[Any], Rows]:
        """Cosines in float64, so that they depend on two vectors and not on what was searched beside them."""
        chosen = rows[rows >= 0]
        scores = np.empty((1, len(chosen)))
        for start in range(0, len(chosen), _SCORED):
            part = slice(start, start + _SCORED)
            products = self.vectors(chosen[part]).astype(np.float64) * query.astype(np.float64)
            scores[0, part] = products.sum(axis=1)
        top, order = best(scores, chosen[None], scores[:, :0], chosen[None, :0], k)
        return top[0], order[0]

    def _rows_in(self, languages: Collection[str]) -> NDArray[np.bool_]:
        if self._languages is None:
            self._languages = self.store.language_of_rows(len(self))
        numbers, of_rows = self._languages
        wanted = [number for code, number in numbers.items() if matches(code, languages)]
        kept: NDArray[np.bool_] = np.isin(of_rows, wanted)
        return kept

    def _write(self, first: int, vectors: Vectors) -> None:
        """Write vectors as rows `first` and on; they count when the transaction is committed."""
        try:
            write_rows(self.folder / NAME, first, vectors)
        except CorpusError as error:
            raise SearchError(f"{self.folder / NAME}: is cut short; make the index again") from error
        self.store.set_rows(first + len(vectors))

    def _sweep(self, files: Files) -> None:
        """Remove FAISS files that were replaced, or that a killed writer has left; nobody else writes now."""
        known = files.approximate.name if files.approximate is not None else None
        for path in (self.folder / "faiss").glob("*"):
            if path.name != known and _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def _load(self, files: Files | None = None) -> None:
        tried = None
        while True:
            known = files or self.store.files()
            try:
                self._open_files(known)
                return
            except FileNotFoundError as error:  # replaced since the list was read, and then the list is another one
                if known == tried:
                    raise SearchError(f"{error.filename}: is missing; make the index again") from error
                tried = known

    def _open_files(self, files: Files) -> None:
        self._table = Table(self.folder, files.rows, self.origin.dim)
        self._structure, self._covered = None, 0
        if files.approximate is not None:
            path = self.folder / "faiss" / files.approximate.name
            self._structure = approximate.read(path, files.approximate, self.origin.dim)
            self._covered = files.approximate.rows
        self.files, self._languages = files, None
