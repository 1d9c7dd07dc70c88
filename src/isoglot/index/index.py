"""An index: sentences of any languages with their vectors, in memory or in a folder, that grows and can be searched."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from isoglot.arguments import PositiveInt, check_arguments
from isoglot.data.files import atomic_write, check_output, digest, exclusive, temporary_folder
from isoglot.data.formats import format_of
from isoglot.data.languages import UNKNOWN, canonical, canonical_list, matches
from isoglot.data.vectors import not_finite, unit
from isoglot.errors import CorpusError, IsoglotError, OutputError, SearchError, shown
from isoglot.index import table as tables
from isoglot.index.origin import Origin, encode_queries, encode_sentences
from isoglot.index.store import Files, Sentence, Store, Structure, is_index
from isoglot.index.table import NAME, Rows, Table, Vectors, nearest
from isoglot.model import Model, load
from isoglot.model.base import readable, texts_or_vectors
from isoglot.model.engine import checked
from isoglot.progress import Progress
from isoglot.search import faiss_index
from isoglot.store import write_rows

# Computes the unit vectors (N, D) of each list of N texts, in their order; it may read lists ahead.
Encoding = Callable[[Origin, Iterable[list[str]]], Iterator[Vectors]]

FLAT = "flat"
KINDS = (FLAT, *faiss_index.KINDS)
_OURS = re.compile(r"\.?[-0-9A-Za-z]+-\d+\.faiss(\.[0-9a-f]{8}\.tmp)?")
_SCORED = 1 << 14  # vectors at a time whose scores are computed exactly
_SPARE = 16  # candidates beyond k: rounding may swap rows at the edge, until scores are exact
_EXPORTED = 4096  # rows of a row group of Parquet
_NO_ID = (bool, float, list, dict, type(None))  # types whose text is not an id


@dataclass(frozen=True, slots=True)
class Hit:
    """A sentence found: its cosine with the query, its text, language and id, its translation if known, its row.

    `translation_language` is `und` if it is not known.
    """

    score: float
    text: str
    language: str
    id: str
    translation: str | None
    translation_language: str
    row: int


@dataclass(frozen=True, slots=True)
class Added:
    """How many sentences are new in the index, and how many were in it already."""

    new: int
    known: int


@dataclass(frozen=True, slots=True)
class _View:
    """A consistent snapshot for searches: vectors, the FAISS structure and the number of rows that it covers."""

    files: Files
    table: Table
    structure: Any
    covered: int


class Index:
    """Sentences and their unit vectors. Make one with `build`, open a saved one with `open`.

    Threads may share one. It can be used as a context manager. An open index has what others, objects or processes,
    add to its folder from the next call on. Raises `SearchError` for a damaged or unsupported folder.
    """

    def __init__(self, store: Store, model: Model | str | Path | None = None, *, device: str = "auto") -> None:
        if not isinstance(store, Store):
            raise TypeError("make an index with Index.build(model, sentences), or open one with Index.open(folder)")
        self.folder, self.origin, self.store = store.folder, store.origin, store
        self._model, self._device, self._verified, self._loading = model, device, False, threading.Lock()
        self._adding = threading.Lock()  # for threads, which wait; `exclusive` refuses another process
        self._memory = np.empty((0, store.origin.dim), np.float32)  # without a folder: vectors, with room to grow
        self._structures: dict[Structure | None, Any] = {None: None}  # the newest FAISS structure
        self._languages: tuple[int, dict[str, int], NDArray[np.int32]] | None = None
        self._load()

    @classmethod
    @check_arguments(sentences="pass a list of sentences")
    def build(
        cls,
        model: Model | str | Path,
        sentences: Iterable[str | Sentence],
        *,
        languages: str | Iterable[str] | None = None,
        translations: Iterable[str | None] | None = None,
        translation_languages: str | Iterable[str] | None = None,
        ids: Iterable[str] | None = None,
        kind: str | None = None,
        folder: str | Path | None = None,
        prompt: str | None = None,
        query_prompt: str | None = None,
        pooling: str | None = None,
        device: str = "auto",
        encoding: Encoding | None = None,
        progress: Progress | None = None,
        report: Callable[[str], None] | None = None,
    ) -> Index:
        """Encode sentences into a new index, or add them to the one in the folder.

        model         a model, or a model's name
        sentences     strings, or `Sentence`s with ids and languages; read once
        languages     their language codes, or one for all; None: unknown
        translations  a text for each sentence that is shown with a hit; None where there is none
        translation_languages  their language codes, or one for all; None: unknown
        ids           unique ids; None: the positions in `sentences`
        kind          kind of index: "flat" (exact), "ivf", "ivf-pq", "hnsw", or a FAISS index_factory string; None:
                      flat, or the kind of the index in the folder
        folder        None: in memory
        prompt        prefix of every sentence, instead of the model's own prompt
        query_prompt  prefix of every query; None: the prompt of the sentences
        pooling       pooling (mean, cls, ...), instead of the model's own
        device        for a model that is loaded by name
        encoding      computes the vectors instead of the encoder, as `isoglot.scale.index_shards` does

        A sentence whose id is in the index with the same text and language is skipped, so that a call that was killed
        is completed by repeating it. Raises `SearchError` for another model or other prompts than those of the index in
        the folder and for an id of another sentence, `ValueError` for an unknown kind, `OutputError` if another process
        is adding.
        """
        if not isinstance(model, Model | str | Path):
            raise TypeError(f"model is {shown(model)}; pass a model or a model's name")
        columns = {"languages": languages, "translations": translations, "ids": ids}
        records = _records(sentences, 0, columns | {"translation_languages": translation_languages})
        place = None if folder is None else Path(folder)
        if place is not None:
            check_output(place, inputs=[] if isinstance(model, Model) else [model], folder=True)
        with nullcontext() if place is None else exclusive(place):
            encoder, origin, there = cls._origin_of(place, model, prompt, query_prompt, pooling, device)
            check_kind(kind or FLAT, encoder.dim)
            first = list(islice(records, 1))  # find wrong files and arguments before the folder is bound to the model
            store = Store(place) if there else Store.create(place, origin, kind or FLAT)
            try:
                index = cls(store, encoder)
                added = index._add(chain(first, records), kind, progress, encoding)
            except BaseException:
                store.close()
                raise
        if report is not None:
            known = f", {added.known:,} already there" if added.known else ""
            report(f"{added.new:,} sentences added{known}; {len(index):,} in the index ({index.kind})")
        return index

    @classmethod
    def _origin_of(
        cls,
        folder: Path | None,
        model: Model | str | Path,
        prompt: str | None,
        query_prompt: str | None,
        pooling: str | None,
        device: str,
    ) -> tuple[Model, Origin, bool]:
        """The encoder, its record for the index, and whether the folder already contains an index built with it."""
        if isinstance(model, Model) and not (prompt is None and pooling is None):
            raise ValueError("prompt and pooling are set when a model is loaded; pass them to isoglot.load")
        there = None
        if folder is not None and cls.exists(folder):
            with cls.open(folder) as before:
                there = before.origin
            for name, value in (("pooling", pooling), ("prompt", prompt), ("query_prompt", query_prompt)):
                if value is not None and value != (kept := getattr(there, name)):
                    raise SearchError(f"{folder}: was made with {name} {kept!r}, not {value!r}; leave this option out")
            pooling, prompt = there.pooling, there.prompt
        encoder, name = model, ""
        if not isinstance(encoder, Model):
            encoder, name = load(encoder, pooling=pooling, prompt=prompt, device=device), str(encoder)
        if there is not None:
            there.require(encoder, name or "this encoder")
            return encoder, there, True
        own = prompt if name else encoder.prompt or None
        return encoder, Origin.of(encoder, name, pooling=pooling, prompt=own, query_prompt=query_prompt), False

    @classmethod
    @check_arguments()
    def open(cls, folder: str | Path, model: Model | str | Path | None = None, *, device: str = "auto") -> Index:
        """The index in a folder.

        `model`: its encoder, or where to load it from; None: by the name that the index was built with, when it is
        first needed. A missing, truncated or exchanged file is found here; a damaged page of the database or a vector
        that is not finite when it is read. Both are a `SearchError` that names the file.
        """
        store = Store(Path(folder))
        try:
            return cls(store, model, device=device)
        except BaseException:
            store.close()
            raise

    @classmethod
    @check_arguments()
    def create(
        cls, folder: str | Path | None, origin: Origin, *, kind: str = FLAT, model: Model | None = None
    ) -> Index:
        """A new, empty index, for vectors that are made elsewhere (`add_vectors`)."""
        check_kind(kind, origin.dim)
        if folder is None:
            return cls(Store.create(None, origin, kind), model)
        with exclusive(folder):
            return cls(Store.create(Path(folder), origin, kind), model)

    @staticmethod
    @check_arguments()
    def exists(folder: str | Path) -> bool:
        """Whether the folder contains an index, even an empty one; not if its creation was interrupted."""
        return is_index(Path(folder))

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    def __len__(self) -> int:
        return self._current().files.rows

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else str(self.folder)
        return f"<Index of {len(self):,} sentences, {self.kind}, {where}>"

    @property
    def kind(self) -> str:
        """How it is searched."""
        return self.store.kind

    @property
    def model(self) -> Model:
        """Its encoder, loaded when it is first needed. Raises `SearchError` if the index was built with another one."""
        with self._loading:
            if not isinstance(self._model, Model):
                name = None if self._model is None else str(self._model)
                self._model = self.origin.load(name, device=self._device)
            elif not self._verified:
                self.origin.require(self._model, "this encoder")
            self._verified = True
            return self._model

    @check_arguments(sentences="pass a list of sentences")
    def add(
        self,
        sentences: Iterable[str | Sentence],
        *,
        languages: str | Iterable[str] | None = None,
        translations: Iterable[str | None] | None = None,
        translation_languages: str | Iterable[str] | None = None,
        ids: Iterable[str] | None = None,
        kind: str | None = None,
        progress: Progress | None = None,
    ) -> Added:
        """Encode and add sentences; arguments as in `build`, but ids are the positions in the index by default.

        In memory is one piece of `tables.ROWS` sentences; each piece is added as a whole or not at all.
        """
        if kind is not None:
            check_kind(kind, self.origin.dim)  # not after sentences were added
        columns = {"languages": languages, "translations": translations, "ids": ids}
        with self._adding, nullcontext() if self.folder is None else exclusive(self.folder):
            first = self.store.files().rows  # another process may have added some since the index was opened
            records = _records(sentences, first, columns | {"translation_languages": translation_languages})
            return self._add(records, kind, progress)

    def _add(
        self, records: Iterator[Sentence], kind: str | None, progress: Progress | None, encoding: Encoding | None = None
    ) -> Added:
        # Size of a piece, what of it is not in the index, and whether it was compared before others were added.
        waiting = deque[tuple[int, list[Sentence], bool]]()

        def texts() -> Iterator[list[str]]:
            while piece := list(islice(records, tables.ROWS)):
                waiting.append((len(piece), self._fresh(piece), bool(waiting)))
                yield [one.text for one in waiting[-1][1]]

        new = known = 0
        for rows in encoding(self.origin, texts()) if encoding else _encoded(self.model, texts()):
            size, piece, ahead = waiting.popleft()
            fresh = self._fresh(piece) if ahead else piece
            kept = {one.id for one in fresh}
            if fresh:
                own = rows if len(fresh) == len(piece) else rows[[one.id in kept for one in piece]]
                self._append(fresh, own)
            new, known = new + len(fresh), known + size - len(fresh)
            if progress is not None:
                progress(new + known, None)
        self.restructure(kind)
        return Added(new, known)

    def _fresh(self, piece: Sequence[Sentence]) -> list[Sentence]:
        """The sentences that are not in the index yet; new translations of the others replace those that are there."""
        seen = self.store.by_id([one.id for one in piece])
        fresh, corrected = dict[str, Sentence](), list[Sentence]()
        for one in piece:
            other = seen.get(one.id)
            if other is None:
                seen[one.id] = fresh[one.id] = one
            elif (other.text, other.language) != (one.text, one.language):
                raise SearchError(
                    f"{self.folder or 'this index'}: the id {one.id!r} belongs to {other.text[:40]!r} "
                    f"({other.language}), so {one.text[:40]!r} ({one.language}) needs another id; "
                    "pass ids= (the default ids are positions); after a file was edited, make the index again elsewhere"
                )
            elif one.translation is not None and one != other:
                seen[one.id] = one
                if one.id in fresh:
                    fresh[one.id] = one
                else:
                    corrected.append(one)
        if corrected:
            with self.store.writing():
                self.store.translate(corrected)
        return [*fresh.values()]

    @check_arguments()
    def add_vectors(self, sentences: Sequence[Sentence], vectors: Vectors) -> None:
        """Add sentences with their unit vectors (N, D); all of them or, after any error, none.

        Raises `SearchError` for an id that is in use, `ValueError` for vectors of another shape or not finite, and
        `OutputError` where the disk is full; the index is then as it was before.
        """
        self._append([_clean(one, at) for at, one in enumerate(sentences)], vectors)

    def _append(self, sentences: Sequence[Sentence], vectors: Vectors) -> None:
        try:
            table = np.ascontiguousarray(vectors, np.float32)
        except (TypeError, ValueError) as error:
            raise TypeError(f"vectors is {shown(vectors)}; pass an array (N, D)") from error
        if table.shape != (len(sentences), self.origin.dim):
            raise ValueError(f"vectors must be ({len(sentences)}, {self.origin.dim}), not {table.shape}")
        if len(bad := not_finite(table)):
            raise ValueError(f"vectors must be finite, and row {bad[0]}, of {sentences[bad[0]].id!r}, is not")
        try:
            with self.store.writing() as before:
                self._sweep(before)
                self.store.add(sentences, before.rows)
                self._write(before.rows, table)
        except BaseException as error:
            with suppress(IsoglotError):
                self._cut()
            if isinstance(error, OutputError):
                raise OutputError(
                    f"{error}; the {self._view.files.rows:,} sentences of this index are unchanged"
                ) from error
            raise
        self._load()

    @check_arguments()
    def restructure(self, kind: str | None = None) -> None:
        """Let the FAISS structure cover all rows; for another `kind`, rebuild it from the vectors.

        Raises `ValueError` for an unknown kind, and one that needs more sentences.
        """
        wanted = kind or self.kind
        if wanted != self.kind or (wanted != FLAT and self._view.covered != len(self)):
            self._restructure(wanted)
        with self.store.writing() as now:  # a writer that was killed leaves files, even if nothing is left to add
            self._sweep(now)

    @overload
    def search(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self,
        queries: str,
        k: int = 10,
        *,
        languages: str | Collection[str] = (),
        exclude: str | Collection[str] = (),
        effort: int | None = None,
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str] | NDArray[Any],
        k: int = 10,
        *,
        languages: str | Collection[str] = (),
        exclude: str | Collection[str] = (),
        effort: int | None = None,
    ) -> list[list[Hit]]: ...
    @check_arguments(top_k="pass k", n="pass k", limit="pass k")
    def search(
        self,
        queries: str | Sequence[str] | NDArray[Any],
        k: PositiveInt = 10,
        *,
        languages: str | Collection[str] = (),
        exclude: str | Collection[str] = (),
        effort: PositiveInt | None = None,
    ) -> list[Hit] | list[list[Hit]]:
        """The k nearest sentences, best first; of equal scores the one added first.

        queries    one text, which gives a list of hits, or texts or vectors (Q, D), which give a list for each
        k          number of sentences per query
        languages  languages to search in; default: all languages. Exact for all kinds of index
        exclude    languages to exclude, such as that of the queries. Exact, too
        effort     search effort of an approximate kind (IVF cells probed, HNSW list size)

        Raises `ValueError` for a wrong shape or k, `CorpusError` for an unknown language.
        """
        if isinstance(queries, str):
            return self.search([queries], k, languages=languages, exclude=exclude, effort=effort)[0]
        codes, without = canonical_list(languages), canonical_list(exclude)
        found = texts_or_vectors(queries, "search")
        if isinstance(found, list):
            empty = np.empty((0, self.origin.dim), np.float32)
            found = encode_queries(self.model, found, self.origin) if found else empty
        if found.ndim != 2 or found.shape[1] != self.origin.dim:
            raise ValueError(f"vectors of queries must be (Q, {self.origin.dim}), got {found.shape}")
        if len(bad := not_finite(np.asarray(found, np.float32))):
            raise ValueError(f"row {bad[0]} of the queries contains a value that is not finite")
        view, table = self._current(), np.ascontiguousarray(unit(found))
        wanted = min(k + _SPARE, view.files.rows)
        if codes or without:
            rows = nearest(view.table, table, wanted, keep=self._rows_in(codes, without, view.files.rows))
        else:
            rows = nearest(view.table, table, wanted, first=view.covered)
            if view.structure is not None:
                # Compressed vectors rank candidates roughly, so more candidates are scored than are returned.
                near = faiss_index.candidates(view.structure, table, 4 * wanted, effort=effort)
                rows = np.concatenate([near, rows], axis=1)
        scored = [self._score(view, query, row, k) for query, row in zip(table, rows, strict=True)]
        known = self.store.by_row(sorted({row for _, rows in scored for row in rows.tolist()}))
        return [[_hit(score, row, known[row]) for score, row in zip(*map(np.ndarray.tolist, one), strict=True)]
                for one in scored]  # fmt: skip

    @check_arguments()
    def vectors(self, rows: Sequence[int] | Rows) -> Vectors:
        """Copies (N, D) of the vectors of some rows. Raises `ValueError` for a row that the index does not have."""
        places, size = np.asarray(rows), len(self)
        if places.size and places.dtype.kind not in "iu":
            raise TypeError(f"rows are {shown(rows)}; pass numbers of rows")
        if len(wrong := places[(places < 0) | (places >= size)]):
            raise ValueError(f"row {wrong[0]} is not one of the {size:,} of this index, which are counted from 0")
        return self._current().table[places.astype(np.int64)]

    def languages(self) -> dict[str, int]:
        """How many sentences there are of each language, most first."""
        return self.store.languages()

    @check_arguments()
    def save(self, folder: str | Path) -> Path:
        """Write the index to a new folder, as a whole or not at all. Raises `OutputError` for one that isn't empty."""
        target = Path(folder)
        check_output(target, folder=True)
        if target.is_dir() and any(target.iterdir()):
            raise OutputError(f"{target}: is not empty; choose another folder")
        with temporary_folder(target) as temporary:
            with Index.create(temporary / "index", self.origin, kind=FLAT) as copy:
                size = len(self)  # others may add to it meanwhile
                for start in range(0, size, tables.ROWS):
                    rows = range(start, min(start + tables.ROWS, size))
                    sentences = self.store.by_row(rows)
                    copy._append([sentences[row] for row in rows], self.vectors(rows))
                copy.restructure(self.kind)
            if target.is_dir():
                target.rmdir()
            (temporary / "index").rename(target)
        return target

    @check_arguments()
    def export(self, path: str | Path, *, format: str | None = None, progress: Progress | None = None) -> int:
        """Write all sentences to a file, whose suffix is the format unless `format` names it without the dot.

        Returns the number of rows or units.

        .parquet  id, text, language, `vector` (a list of D float32, of length one), and `translation` and
                  `translation_language` if any is known; the metadata name the model (`isoglot.model`,
                  `isoglot.identity`)
        .tsv, .csv, .jsonl  the same columns without the vectors; in TSV tabs and line ends become spaces
        .tmx      a translation memory: each pair of a sentence and its translation once

        Raises `OutputError` for another suffix, and for Parquet without pyarrow.
        """
        from isoglot.index import exporting

        form = format_of(Path(path), given=format)
        check_output(path)
        if self.folder is not None and Path(path).resolve().is_relative_to(self.folder.resolve()):
            raise OutputError(f"{path}: lies in the index; choose a file outside of it")
        translated = self.store.has_translations()
        return exporting.write(Path(path), form, self._pieces(progress), self.origin, translated=translated)

    def _pieces(self, progress: Progress | None) -> Iterator[tuple[list[Sentence], Vectors]]:
        size = len(self)
        for start in range(0, size, _EXPORTED):
            rows = range(start, min(start + _EXPORTED, size))
            sentences = self.store.by_row(rows)
            yield [sentences[row] for row in rows], self.vectors(rows)
            if progress is not None:
                progress(rows.stop, size)

    def _restructure(self, wanted: str) -> None:
        check_kind(wanted, self.origin.dim)
        with self.store.writing() as now:
            self._load(now)
            structure = self._view.structure if wanted == self.kind else None
            found = None
            if wanted != FLAT and len(self):
                if structure is None:
                    structure = faiss_index.create(wanted, len(self), self.origin.dim)
                    faiss_index.train(structure, self.vectors, len(self))
                else:  # other threads may be searching with it
                    structure = faiss_index.faiss_module().clone_index(structure)
                for _, block in self._view.table.blocks(structure.ntotal):
                    structure.add(np.ascontiguousarray(block))
                found = self._write_structure(f"{re.sub('[^0-9A-Za-z]+', '-', wanted)}-{len(self)}.faiss", structure)
            self.store.set_approximate(found, wanted)
        self._load()

    def _write_structure(self, name: str, structure: Any) -> Structure:
        if self.folder is None:
            made = Structure(name, structure.ntotal, 0, None)
        else:
            faiss, path = faiss_index.faiss_module(), self.folder / "faiss" / name
            with atomic_write(path, binary=True) as stream:
                faiss.write_index(structure, faiss.PyCallbackIOWriter(stream.write))
            made = Structure(name, structure.ntotal, path.stat().st_size, digest(path))
        self._structures = {None: None, made: structure}
        return made

    def _score(self, view: _View, query: Vectors, rows: Rows, k: int) -> tuple[NDArray[Any], Rows]:
        """Cosines in float64, so that they depend on two vectors and not on what was searched with them."""
        chosen = rows[rows >= 0]
        scores = np.empty(len(chosen))
        for start in range(0, len(chosen), _SCORED):
            part = slice(start, start + _SCORED)
            scores[part] = (view.table[chosen[part]].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
        order = np.lexsort((chosen, -scores))[:k]
        return scores[order], chosen[order]

    def _rows_in(self, languages: Collection[str], without: Collection[str], rows: int) -> NDArray[np.bool_]:
        known = self._languages
        if known is None or known[0] != rows:
            known = self._languages = (rows, *self.store.language_of_rows(rows))
        wanted = [
            number
            for code, number in known[1].items()
            if (not languages or matches(code, languages)) and not matches(code, without)
        ]
        kept: NDArray[np.bool_] = np.isin(known[2], wanted)
        return kept

    def _write(self, first: int, vectors: Vectors) -> None:
        """Write vectors as rows `first` and on; they count when the transaction is committed."""
        if self.folder is None:
            needed = first + len(vectors)
            if needed > len(self._memory):
                memory = np.empty((max(needed, 2 * first), vectors.shape[1]), np.float32)
                memory[:first] = self._memory[:first]
                self._memory = memory
            self._memory[first:needed] = vectors
        else:
            try:
                write_rows(self.folder / NAME, first, vectors)
            except CorpusError as error:
                raise SearchError(f"{self.folder / NAME}: is truncated; make the index again") from error
        self.store.set_rows(first + len(vectors))

    def _cut(self) -> None:
        """Remove the vectors of an addition that failed: they take room, and don't count."""
        if self.folder is None or not (path := self.folder / NAME).exists():
            return
        with self.store.writing() as now:
            if now.rows:
                write_rows(path, now.rows, np.empty((0, self.origin.dim), np.float32))
            else:
                path.unlink()

    def _sweep(self, files: Files) -> None:
        """Remove FAISS files that were replaced, or that a killed writer has left; nobody else writes now."""
        if self.folder is None:
            return
        known = files.approximate.name if files.approximate is not None else None
        for path in (self.folder / "faiss").glob("*"):
            if path.name != known and _OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def _current(self) -> _View:
        """The view, anew if others have written since."""
        if self._view.files.version != self.store.version:
            self._load()
        return self._view

    def _load(self, files: Files | None = None) -> None:
        tried, dim = None, self.origin.dim
        while True:
            known = files or self.store.files()
            try:
                table = Table.open(self.folder, known.rows, dim) if self.folder else Table(self._memory[: known.rows])
                structure = self._structure(known.approximate)
                covered = known.approximate.rows if known.approximate else 0
                self._view = _View(known, table, structure, covered)
                return
            except FileNotFoundError as error:  # replaced since the list was read; read the new list
                if known == tried:
                    raise SearchError(f"{error.filename}: is missing; make the index again") from error
                tried = known

    def _structure(self, known: Structure | None) -> Any:
        """The FAISS structure, if there is one, read if it is another than before.

        The digest is compared before FAISS reads the file: it trusts what it reads, and a wrong link in a graph can
        crash the process. Raises `SearchError` for another or a damaged file, FileNotFoundError for none.
        """
        if known is None or self.folder is None or known in self._structures:
            return self._structures[known]
        path = self.folder / "faiss" / known.name
        if path.stat().st_size != known.size:
            raise SearchError(f"{path}: has {path.stat().st_size} bytes instead of {known.size}; make the index again")
        if known.digest is not None and digest(path) != known.digest:
            raise SearchError(f"{path}: is damaged, its SHA-256 is not the recorded one; make the index again")
        try:
            index = faiss_index.faiss_module().read_index(str(path))
        except (RuntimeError, MemoryError) as error:
            path.stat()  # another process may have replaced it meanwhile
            raise SearchError(f"{path}: can't be read by FAISS; make the index again") from error
        if (index.ntotal, index.d) != (known.rows, self.origin.dim):
            raise SearchError(
                f"{path}: covers {index.ntotal} rows of {index.d} dimensions instead of {known.rows} of "
                f"{self.origin.dim}; make the index again"
            )
        self._structures = {None: None, known: index}
        return index


def check_kind(kind: str, dim: int) -> None:
    """Raise `ValueError` for an unknown kind."""
    if kind != FLAT:
        faiss_index.create(kind, 1 << 16, dim)


def _hit(score: float, row: int, of: Sentence) -> Hit:
    return Hit(score, of.text, of.language, of.id, of.translation, of.translation_language, row)


_Columns = Mapping[str, str | Iterable[str | None] | None]


def _encoded(encoder: Model, lists: Iterable[list[str]]) -> Iterator[Vectors]:
    """The unit vectors of each list; on an accelerator the next list is computed while one is stored.

    Not on a CPU, which is busy anyway, and where an interrupt would wait for minutes until a list is done.
    """
    if str(encoder.device) == "cpu":
        yield from (encode_sentences(encoder, each) for each in lists)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="encode") as pool:
        computed: Future[NDArray[np.float32]] | None = None
        for each in lists:
            previous, computed = computed, pool.submit(encode_sentences, encoder, each)
            if previous is not None:
                yield previous.result()
        if computed is not None:
            yield computed.result()


def _records(sentences: Iterable[str | Sentence], first: int, columns: _Columns) -> Iterator[Sentence]:
    """Sentences with ids, languages and translations, each of which is parallel to them, or one for all."""
    try:
        given = checked(sentences)
    except TypeError as error:
        raise TypeError(f"sentences: {error}") from None
    return _recorded(given, first, columns)


def _recorded(sentences: Iterable[str | Sentence], first: int, columns: _Columns) -> Iterator[Sentence]:
    one_for_all = {name: value for name, value in columns.items() if isinstance(value, str)}
    parallel = {
        name: iter(values) for name, values in columns.items() if values is not None and not isinstance(values, str)
    }
    missing = object()
    for at, text in enumerate(sentences):
        row: dict[str, Any] = {"ids": first + at, "languages": None, "translation_languages": None, **one_for_all}
        for name, values in parallel.items():
            row[name] = next(values, missing)
            if row[name] is missing:
                raise ValueError(f"{name} has only {at} entries; pass one for each sentence")
        if isinstance(text, Sentence):
            yield _clean(text, at)
            continue
        if not isinstance(text, str):
            raise TypeError(f"sentences[{at}] is {shown(text)}, a {type(text).__name__}; pass strings")
        translation = row.get("translations")
        of_translation = row["translation_languages"] if translation is not None else UNKNOWN
        yield _clean(Sentence(row["ids"], text, row["languages"], translation, of_translation), at)
    for name, values in parallel.items():
        if next(values, missing) is not missing:
            raise ValueError(f"{name} has more entries than there are sentences; pass one for each")


def _clean(given: Sentence, at: int) -> Sentence:
    """The sentence with canonical language codes, `und` for None, and without lone surrogates, which SQLite rejects.

    Raises `TypeError` for values of other types and `CorpusError` for an unknown language; both name the place `at`.
    """
    if isinstance(given.id, _NO_ID):
        raise _wrong("id", given.id, at)
    if not isinstance(given.text, str):
        raise _wrong("text", given.text, at)
    if (translation := given.translation) is not None:
        if not isinstance(translation, str):
            raise _wrong("translation", translation, at)
        translation = readable(translation)
    own, other = _code(given.language, at), _code(given.translation_language, at)
    return Sentence(readable(str(given.id)), readable(given.text), own, translation, other)


def _code(code: str | None, at: int) -> str:
    if not isinstance(code, str | None):
        raise _wrong("language", code, at)
    if code is None or code == UNKNOWN:
        return UNKNOWN
    try:
        return canonical(code)
    except CorpusError as error:
        raise CorpusError(str(error), file=f"sentences[{at}]") from None


def _wrong(name: str, value: object, at: int) -> TypeError:
    return TypeError(f"sentences[{at}]: the {name} is {shown(value)}, a {type(value).__name__}; pass a string")
