"""An index: sentences of any languages with their vectors, in memory or in a folder, that grows and can be searched."""

from __future__ import annotations

import re
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import IsoglotError, OutputError, SearchError, quote
from isoglot.core.progress import Progress, Report
from isoglot.data.files import atomic_folder, check_output, exclusive
from isoglot.data.formats import format_of
from isoglot.data.languages import canonical_list
from isoglot.data.vectors import not_finite
from isoglot.data.vectors import unit as normalized
from isoglot.index import structures
from isoglot.index import table as tables
from isoglot.index.origin import Origin, encode_lists, encode_queries
from isoglot.index.scale import Scale, measure
from isoglot.index.storage import Folder, Memory
from isoglot.index.store import Files, Sentence, Store, is_index
from isoglot.index.table import Rows, Vectors
from isoglot.index.units import Unit, clean, digest_content, group, make_sentences
from isoglot.index.view import Hit, View, with_equal_text
from isoglot.model import Model, load
from isoglot.model.base import readable, texts_or_vectors
from isoglot.search import faiss_index

# Computes the unit vectors (N, D) of each list of N texts, in their order; it may read lists ahead.
Encoding = Callable[[Origin, Iterable[list[str]]], Iterator[Vectors]]
_Codes = str | Collection[str]  # of languages
_Mask = NDArray[np.bool_]

FLAT = "flat"
KINDS = (FLAT, *faiss_index.KINDS)
_SHARE = re.compile(r"[01]\.\d+")
_WASTE = 1024  # deleted rows that are left where they are
_EXPORTED = 4096  # rows of a row group of Parquet


@dataclass(frozen=True, slots=True)
class Added:
    """How many sentences are new, were in the index already, and belong to entries that were updated."""

    new: int
    known: int
    updated: int = 0


@dataclass(slots=True)
class _Changes:
    """What units change in an index.

    sentences  added as rows, each with the content of its unit in `contents`
    copied     their places whose vectors are those of rows of the index, by place; the others are encoded
    deleted    rows that are deleted
    counts     sentences by what they are: new, known, updated
    """

    sentences: list[Sentence] = field(default_factory=list)
    contents: list[int] = field(default_factory=list)
    copied: dict[int, int] = field(default_factory=dict)
    deleted: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def to_encode(self) -> list[Sentence]:
        """The sentences whose vectors are computed."""
        return [one for place, one in enumerate(self.sentences) if place not in self.copied]

    def add(self, unit: Unit) -> None:
        """Add the sentences of a unit."""
        self.sentences += unit.sentences
        self.contents += [unit.content] * len(unit.sentences)


class Index:
    """Sentences and their unit vectors. Make one with `build`, open a saved one with `open`.

    Threads may share one. It can be used as a context manager. An open index has what others, objects or processes,
    add to its folder from the next call on; one whose folder was removed or replaced keeps what it had, and to change
    it is an error. Raises `SearchError` for a damaged or unsupported folder.
    """

    def __init__(self, store: Store, model: Model | str | Path | None = None, *, device: str = "auto") -> None:
        if not isinstance(store, Store):
            raise TypeError("make an index with Index.build(model, sentences), or open one with Index.open(folder)")
        self.folder, self.origin, self.store = store.folder, store.origin, store
        self._model, self._device = str(model) if isinstance(model, Path) else model, device
        self._verified: tuple[str, int, str] | None = None  # settings of the model, which may be changed
        self._loading, self._adding = threading.Lock(), threading.Lock()  # another process that adds is rejected
        self._storage = Memory(store.origin.dim) if store.folder is None else Folder(store.folder, store.origin.dim)
        self._scale: tuple[View, Scale] | None = None
        self._coding: structures.Coding | None = None
        try:
            self._load()
        except BaseException:
            store.close()
            raise

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
        coding: structures.Coding | None = None,
        progress: Progress | None = None,
        report: Report | None = None,
    ) -> Index:
        """Encode sentences into a new index, or update the one in the folder with them.

        model         a model, or a model's name
        sentences     strings, or `Sentence`s with ids and languages; read once, and blank ones are left out. Those that
                      follow each other with one id are the sides of one entry
        languages     their language codes, or one for all; None: unknown
        translations  a text for each sentence that is shown with a hit; None where there is none
        translation_languages  their language codes, or one for all; None: unknown
        ids           ids of the entries; None: digests of what they contain
        kind          kind of index: "flat" (exact), "ivf", "ivf-pq", "hnsw", or a FAISS index_factory string; None:
                      flat, or the kind of the index in the folder
        folder        None: in memory
        prompt        prefix of every sentence, instead of the model's own prompt
        query_prompt  prefix of every query; None: the prompt of the sentences
        pooling       pooling, instead of the model's own: `POOLINGS`
        device        for a model that is loaded by name
        encoding      computes the vectors instead of the encoder, as `isoglot.scale.index_shards` does
        coding        computes the codes of an IVF kind, as that does, too

        An entry that is in the index with the same content is skipped, so that a call that was killed is completed by
        repeating it; one with other content replaces that of the index, as `update` does. Raises `SearchError` for
        another model or other prompts than those of the index in the folder and for an id that is passed twice with
        other content, `ValueError` for an unknown kind, `OutputError` if another process is adding.
        """
        if not isinstance(model, Model | str | Path):
            raise TypeError(f"model is {quote(model)}; pass a model or a model's name")
        items = make_sentences(sentences, languages, translations, translation_languages, ids)
        place = None if folder is None else Path(folder)
        if place is not None:
            check_output(place, inputs=[] if isinstance(model, Model) else [model], folder=True)
        with _lock(place):
            settings = {"pooling": pooling, "prompt": prompt, "query_prompt": query_prompt}
            encoder, origin, is_present = cls._open_model(place, model, settings, device)
            check_kind(kind or FLAT, encoder.dim)
            first = list(islice(items, 1))  # find wrong files and arguments before the folder is bound to the model
            store = Store(place) if is_present else Store.create(place, origin, kind or FLAT)
            index = cls(store, encoder)
            index._coding = coding
            try:
                added = index._add(chain(first, items), kind, progress, encoding, replacing=True)
            except BaseException:
                index.close()
                raise
        if report is not None:
            updated = f", {added.updated:,} updated" if added.updated else ""
            unchanged = f", {added.known:,} already there" if added.known else ""
            kind = index.kind if index.recall is None else f"{index.kind}, recall@10 {index.recall:.2f}"
            report(f"{added.new:,} sentences added{updated}{unchanged}; {len(index):,} in the index ({kind})")
        return index

    @classmethod
    def _open_model(
        cls, folder: Path | None, model: Model | str | Path, settings: dict[str, str | None], device: str
    ) -> tuple[Model, Origin, bool]:
        """The encoder, its record for the index, and whether the folder already contains an index built with it.

        `settings`: pooling, prompt and query_prompt.
        """
        if isinstance(model, Model) and any(settings[name] is not None for name in ("prompt", "pooling")):
            raise ValueError("prompt and pooling are set when a model is loaded; pass them to isoglot.load")
        if folder is not None and cls.exists(folder):
            with cls.open(folder) as present:
                origin = present.origin
            for name, value in settings.items():
                if value is not None and value != (used := getattr(origin, name)):
                    raise SearchError(f"{folder}: was made with {name} {used!r}, not {value!r}; leave this option out")
            if not isinstance(model, Model):
                return origin.load(str(model), device=device), origin, True
            origin.require(model, "this encoder")
            return model, origin, True
        if isinstance(model, Model):
            return model, Origin.of(model, prompt=model.prompt or None, query_prompt=settings["query_prompt"]), False
        encoder = load(model, pooling=settings["pooling"], prompt=settings["prompt"], device=device)
        return encoder, Origin.of(encoder, str(model), **settings), False

    @classmethod
    @check_arguments()
    def open(cls, folder: str | Path, model: Model | str | Path | None = None, *, device: str = "auto") -> Index:
        """The index in a folder.

        `model`: its encoder, or where to load it from; None: by the name that the index was built with, when it is
        first needed. A missing, truncated or exchanged file is found here; a damaged page of the database or a vector
        that is not finite when it is read. Both are a `SearchError` that names the file.
        """
        return cls(Store(Path(folder)), model, device=device)

    @classmethod
    @check_arguments()
    def create(
        cls, folder: str | Path | None, origin: Origin, *, kind: str = FLAT, model: Model | None = None
    ) -> Index:
        """A new, empty index, for vectors that are made elsewhere (`add_vectors`)."""
        check_kind(kind, origin.dim)
        place = None if folder is None else Path(folder)
        with _lock(place):
            return cls(Store.create(place, origin, kind), model)

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
        files = self._current().files
        return files.rows - files.deleted

    def __getstate__(self) -> Any:
        raise TypeError("an index can't be pickled; save it, and open it in each process: isoglot.Index.open(folder)")

    def __repr__(self) -> str:
        return f"<Index of {len(self):,} sentences, {self.kind}, {'in memory' if self.folder is None else self.folder}>"

    @property
    def kind(self) -> str:
        """How it is searched."""
        return self.store.kind

    @property
    def changes(self) -> int:
        """A number that grows when sentences are deleted."""
        return self._current().files.changes

    @property
    def model(self) -> Model:
        """Its encoder, loaded when it is first needed. Raises `SearchError` if the index was built with another one, or
        with another prompt, maximum length or pooling.
        """
        with self._loading:
            given = self._model
            model = given if isinstance(given, Model) else self.origin.load(given, device=self._device)
            settings = model.prompt, model.max_length, model.pooling
            if model is given and settings != self._verified:
                self.origin.require(model, "this encoder")
            self._model, self._verified = model, settings
            return model

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
        """Encode and add sentences; arguments as in `build`. Raises `SearchError` for an id of an entry with other
        content.

        In memory is one piece of `tables.ROWS` sentences; each piece is added as a whole or not at all.
        """
        check_kind(kind or FLAT, self.origin.dim)  # not after sentences were added
        items = make_sentences(sentences, languages, translations, translation_languages, ids)
        with self._adding, _lock(self.folder):
            return self._add(items, kind, progress, replacing=False)

    @check_arguments(sentences="pass a list of sentences")
    def update(
        self,
        sentences: Iterable[str | Sentence],
        *,
        languages: str | Iterable[str] | None = None,
        translations: Iterable[str | None] | None = None,
        translation_languages: str | Iterable[str] | None = None,
        ids: Iterable[str] | None = None,
        progress: Progress | None = None,
    ) -> Added:
        """Add sentences, and replace entries of the index that have these ids and other content; see `build`.

        Only sentences that are not in the entry yet are encoded. Each piece of `tables.ROWS` sentences is changed as a
        whole or not at all. Raises `SearchError` for an id that is passed twice with other content.
        """
        items = make_sentences(sentences, languages, translations, translation_languages, ids)
        with self._adding, _lock(self.folder):
            return self._add(items, None, progress, replacing=True)

    @check_arguments()
    def delete(self, ids: str | Iterable[str]) -> int:
        """Delete entries by their ids, all of them or, after any error, none. Returns the number of sentences deleted.

        Raises `SearchError` for an id that is not in the index.
        """
        wanted = [ids] if isinstance(ids, str) else [*dict.fromkeys(map(str, ids))]
        with self._adding, _lock(self.folder):
            units = self.store.by_id([readable(key) for key in wanted])
            if (missing := next((key for key in wanted if readable(key) not in units), None)) is not None:
                raise SearchError(f"{self.store.name}: contains no entry with the id {missing!r}; nothing was deleted")
            if rows := [row for unit in units.values() for row in unit]:
                self._apply(_Changes(deleted=rows), np.empty((0, self.origin.dim), np.float32))
                self._compact()
                self.restructure()
        return len(rows)

    def _add(
        self,
        sentences: Iterator[Sentence],
        kind: str | None,
        progress: Progress | None,
        encoding: Encoding | None = None,
        *,
        replacing: bool,
    ) -> Added:
        units, is_passed = group(sentences), np.zeros(self.store.files().rows, np.bool_)
        waiting = deque[tuple[list[Unit], _Changes]]()  # pieces that are being encoded, and what they change
        unwritten: dict[str, Unit] = {}  # their units by id: the index does not have them yet

        def texts() -> Iterator[list[str]]:
            while piece := next_piece(units):
                changes = self._compare(piece, unwritten, is_passed, replacing)
                waiting.append((piece, changes))
                yield [one.text for one in changes.to_encode]

        counts = Counter[str]()
        for vectors in encoding(self.origin, texts()) if encoding else encode_lists(self.model, texts()):
            piece, changes = waiting.popleft()
            if changes.sentences or changes.deleted:
                self._apply(changes, vectors)
            for unit in piece:
                unwritten.pop(unit.id, None)
            counts += changes.counts
            if progress is not None:
                progress(counts.total(), None)
        self._compact()
        self.restructure(kind)
        return Added(counts["new"], counts["known"], counts["updated"])

    def _compare(self, piece: list[Unit], unwritten: dict[str, Unit], is_passed: _Mask, replacing: bool) -> _Changes:
        """What a piece changes in the index with the units that are not written yet, to which its own are added.

        `is_passed` marks the earlier rows of entries that this call has passed unchanged; rows beyond are its own.
        """
        changes = _Changes()
        entries = self.store.by_id([unit.id for unit in piece])
        for unit in piece:
            rows, size = entries.get(unit.id, {}), len(unit.sentences)
            earlier = unwritten.setdefault(unit.id, unit)
            before = earlier.sentences if earlier is not unit else tuple(rows.values())
            if {*before} == {*unit.sentences}:
                changes.counts["known"] += size
                is_passed[[row for row in rows if row < len(is_passed)]] = True
            elif not before:
                changes.counts["new"] += size
                changes.add(unit)
            elif not replacing or earlier is not unit or max(rows) >= len(is_passed) or is_passed[min(rows)]:
                raise SearchError(f"{self.store.name}: {_conflict(before, unit.sentences, replacing=replacing)}")
            else:
                changes.counts["updated"] += size
                changes.deleted += rows
                place = {(one.text, one.language): row for row, one in rows.items()}
                for at, one in enumerate(unit.sentences, len(changes.sentences)):
                    if (row := place.get((one.text, one.language))) is not None:
                        changes.copied[at] = row
                changes.add(unit)
        return changes

    @check_arguments()
    def add_vectors(self, sentences: Sequence[Sentence], vectors: Vectors) -> None:
        """Add sentences with their unit vectors (N, D); all of them or, after any error, none.

        Raises `SearchError` for an id that is in use, `ValueError` for vectors of another shape or not finite, and
        `OutputError` where the disk is full; the index is then as it was before.
        """
        changes, counts = _Changes(), Counter[str]()
        for key, run in groupby((clean(one, at) for at, one in enumerate(sentences)), key=lambda one: one.id):
            unit = (*run,)
            changes.add(Unit(key, unit, digest_content(unit)))
            counts[key] += 1
        with self._adding, _lock(self.folder):
            repeated = (key for key, count in counts.items() if count > 1)
            if (used := next(chain(self.store.by_id([*counts]), repeated), None)) is not None:
                raise SearchError(f"{self.store.name}: the id {used!r} is in use; ids must differ")
            self._apply(changes, vectors)

    def _apply(self, changes: _Changes, vectors: Vectors) -> None:
        """Write changes, with the vectors of the sentences that are encoded, in one transaction."""
        encoded = changes.to_encode
        table = np.ascontiguousarray(vectors, np.float32)
        if table.shape != (len(encoded), self.origin.dim):
            raise ValueError(f"vectors must be ({len(encoded)}, {self.origin.dim}), not {table.shape}")
        if len(bad := not_finite(table)):
            raise ValueError(f"vectors must be finite, and row {bad[0]}, of {encoded[bad[0]].id!r}, is not")
        if changes.copied:
            computed, table = table, np.empty((len(changes.sentences), self.origin.dim), np.float32)
            table[[*changes.copied]] = self._current().table[np.array([*changes.copied.values()])]
            table[np.setdiff1d(np.arange(len(table)), [*changes.copied])] = computed
        try:
            with self.store.writing() as before:
                self._storage.sweep(before)
                if changes.deleted:
                    self.store.delete(changes.deleted)
                if changes.sentences or not changes.deleted:
                    self.store.add(changes.sentences, changes.contents, before.rows)
                    self._storage.write(before.vectors, before.rows, table)
        except BaseException as error:
            with suppress(IsoglotError), self.store.writing() as now:
                self._storage.cut(now.vectors, now.rows)
            if isinstance(error, OutputError):
                unchanged = f"the {self._view.live.sum():,} sentences of this index are unchanged"
                raise OutputError(f"{error}; {unchanged}") from error
            raise
        self._load()

    @check_arguments()
    def restructure(self, kind: str | None = None) -> None:
        """Let the FAISS structure cover all rows; for another `kind`, rebuild it from the vectors.

        Raises `ValueError` for an unknown kind, and one that needs more sentences.
        """
        wanted = kind or self.kind
        if wanted != self.kind or (wanted != FLAT and self._view.covered_rows != self._current().files.rows):
            check_kind(wanted, self.origin.dim)
            with self.store.writing() as now:
                self._load(now)
                structure, earlier = None, now.approximate if wanted == self.kind else None
                if wanted != FLAT and now.rows:
                    structure = self._storage.make_structure(
                        wanted, self._view.table, now.changes, self._coding, earlier
                    )
                if earlier is None:
                    self.store.set_value("recall", "")
                self.store.set_approximate(structure, wanted)
            self._load()
        view, values, size = self._current(), dict[str, str](), len(self)
        before = self._find_scale(view).size if view.files.scale else 0
        has_grown = not 0.75 * before < size < 1.25 * before  # or shrunk
        if size and has_grown and (scale := self._measure(view)):
            values["scale"] = scale.as_json()
        if view.structure is not None and (has_grown or self.recall is None):
            values["recall"] = f"{view.measure_recall():.3f}"
        with self.store.writing() as now:  # a writer that was killed leaves files, even if nothing is left to add
            self._storage.sweep(now)
            for key, value in values.items():
                self.store.set_value(key, value)
        if values:
            self._load()

    @property
    def recall(self) -> float | None:
        """Share of the ten nearest sentences that a search with the default effort finds; None: it is exact.

        Measured for a hundred sentences of the index, each without itself, when the FAISS structure was made and
        whenever the index had grown by a quarter.
        """
        share = self.store.value("recall") or ""
        return float(share) if _SHARE.fullmatch(share) else None

    def _measure(self, view: View) -> Scale | None:
        opened = self._model if isinstance(self._model, Model) else None
        return measure(view.table, view.languages[1], self.store.contents, opened)

    def _find_scale(self, view: View) -> Scale:
        """What scores mean, as it is saved, or measured now."""
        if self._scale is None or self._scale[0] is not view:
            text = view.files.scale
            scale = Scale.from_json(text, self.store.name) if text else self._measure(view)
            self._scale = view, scale or Scale(0, 0.0, 0.5)
        return self._scale[1]

    @overload
    def search(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self, queries: str, k: int = 10, *, languages: _Codes = (), exclude: _Codes = (), effort: int | None = None
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str] | NDArray[Any],
        k: int = 10,
        *,
        languages: _Codes = (),
        exclude: _Codes = (),
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
        """The k nearest entries, each with its nearest sentence, best first; of equal scores the one added first.

        queries    one text, which gives a list of hits, or texts or vectors (Q, D), which give a list for each
        k          number of entries per query
        languages  languages to search in; default: all languages. Exact for all kinds of index
        exclude    languages to exclude, such as that of the queries. Exact, too
        effort     search effort of an approximate kind (IVF cells probed, HNSW list size); default: 64. Other
                   kinds, such as flat, have none and ignore it

        Raises `ValueError` for a blank query, a wrong shape or k, `CorpusError` for an unknown language.
        """
        if isinstance(queries, str):
            return self.search([queries], k, languages=languages, exclude=exclude, effort=effort)[0]
        codes, without = canonical_list(languages), canonical_list(exclude)
        given = texts_or_vectors(queries, "search")
        if isinstance(given, list) and (blank := [at for at, text in enumerate(given) if not text.strip()]):
            raise ValueError(f"queries[{blank[0]}] is blank; remove it, or pass a text to search for")
        vectors = encode_queries(self.model, given, self.origin) if isinstance(given, list) else given
        if vectors.ndim != 2 or vectors.shape[1] != self.origin.dim:
            raise ValueError(f"vectors of queries must be (Q, {self.origin.dim}), got {vectors.shape}")
        table = np.ascontiguousarray(normalized(vectors))
        place = str(self._model.device) if isinstance(self._model, Model) else self._device
        while True:
            view = self._current()
            searched = view.select(codes, without) if codes or without else view
            nearest_rows = searched.find(table, k, effort, place)
            scale = self._find_scale(view)
            with self.store.reading(view.files.changes) as is_same:
                if is_same:
                    hits = view.hits(nearest_rows, scale)
                    return [*map(with_equal_text, given, hits)] if isinstance(given, list) else hits
            self._load()  # rows were changed meanwhile

    @check_arguments()
    def vectors(self, rows: Sequence[int] | Rows) -> Vectors:
        """Copies (N, D) of the vectors of some rows. Raises `ValueError` for a row that the index does not have.

        Rows are numbers, in the order in which sentences were added; those of deleted sentences have vectors, too.
        """
        places, size = np.asarray(rows), self._current().files.rows
        if places.size and places.dtype.kind not in "iu":
            raise TypeError(f"rows are {quote(rows)}; pass numbers of rows")
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
        with atomic_folder(target) as new, Index.create(new, self.origin) as copy:
            for sentences, contents, vectors in self._pieces(tables.ROWS):
                copy._apply(_Changes(sentences, contents), vectors)
            if (scale := self._view.files.scale) is not None:
                with copy.store.writing():
                    copy.store.set_value("scale", scale)
                copy._load()
            with suppress(ValueError):  # too few sentences are left for this kind
                copy.restructure(self.kind)
        return target

    @check_arguments()
    def export(self, path: str | Path, *, format: str | None = None, progress: Progress | None = None) -> int:
        """Write all sentences to a file, whose suffix is the format unless `format` names it without the dot.

        Returns the number of rows or units.

        .parquet  id, text, language, `vector` (a list of D float32, of length one), and `translation` and
                  `translation_language` if any is known; the metadata name the model (`isoglot.model`,
                  `isoglot.identity`)
        .tmx      a translation memory: each pair of a sentence and its translation once
        others    such as .tsv: the same columns without the vectors; in TSV tabs and line ends become spaces

        Raises `OutputError` for another suffix, `MissingExtraError` for Parquet without pyarrow.
        """
        from isoglot.index import exporting

        form = format_of(Path(path), given=format)
        check_output(path)
        if self.folder is not None and Path(path).resolve().is_relative_to(self.folder.resolve()):
            raise OutputError(f"{path}: lies in the index; choose a file outside of it")
        pieces = ((sentences, vectors) for sentences, _, vectors in self._pieces(_EXPORTED, progress))
        return exporting.write(Path(path), form, pieces, self.origin, translated=self.store.has_translations())

    def _pieces(
        self, size: int, progress: Progress | None = None
    ) -> Iterator[tuple[list[Sentence], list[int], Vectors]]:
        """The sentences of one moment, their contents and vectors; later ones are left out."""
        view = self._current()
        rows = np.flatnonzero(view.live)
        for start in range(0, len(rows), size):
            some = rows[start : start + size].tolist()
            with self.store.reading(view.files.changes) as is_same:
                if not is_same:
                    raise SearchError(f"{self.store.name}: entries were changed while it was read; try again")
                sentences, contents = self.store.by_row(some), self.store.contents(some)
            yield [sentences[row] for row in some], [contents[row] for row in some], view.table[np.array(some)]
            if progress is not None:
                progress(start + len(some), len(rows))

    def _compact(self) -> None:
        """Write a file of vectors without the deleted rows, if more than half of all rows are deleted.

        Where too few are left to train the FAISS structure, or the disk is full, everything stays as it is, and
        `restructure` removes the unfinished file.
        """
        files = self._view.files
        if files.deleted < _WASTE or 2 * files.deleted <= files.rows:
            return
        name = f"vectors-{files.changes + 1}.npy"
        with suppress(ValueError, OutputError), self.store.writing() as now:
            self._load(now)
            rows = np.flatnonzero(self._view.live)
            self.store.renumber(rows.tolist(), name)
            for start in range(0, len(rows), tables.ROWS):
                self._storage.write(name, start, self._view.table[rows[start : start + tables.ROWS]])
            structure = None
            if self.kind != FLAT and len(rows):
                table = self._storage.open(name, len(rows))
                structure = self._storage.make_structure(self.kind, table, now.changes + 1, self._coding, None)
            self.store.set_approximate(structure, self.kind)
        self._load()

    def _current(self) -> View:
        """The view, anew if others have written since."""
        if self._view.files.version != self.store.version:
            self._load()
        return self._view

    def _load(self, files: Files | None = None) -> None:
        tried = None
        with self.store.lock:  # or another thread, which read an earlier state, would put it in place of a newer one
            while True:
                current = files or self.store.files()
                try:
                    table = self._storage.open(current.vectors, current.rows)
                    structure = self._storage.open_structure(current.approximate)
                    live = np.ones(current.rows, np.bool_)
                    live[self.store.find_deleted(current.rows)] = False
                    self._view = View(self.store, current, table, structure, live)
                    return
                except FileNotFoundError as error:  # replaced since the list was read; read the new list
                    if current == tried:
                        raise SearchError(f"{error.filename}: is missing; make the index again") from error
                    tried = current


def _lock(folder: Path | None) -> AbstractContextManager[None]:
    """`exclusive`, for an index in a folder."""
    return nullcontext() if folder is None else exclusive(folder)


def check_kind(kind: str, dim: int) -> None:
    """Raise `ValueError` for an unknown kind."""
    if kind != FLAT:
        faiss_index.create(kind, 1 << 16, dim)


def next_piece(units: Iterator[Unit]) -> list[Unit]:
    """The next units, with `tables.ROWS` sentences or a few more."""
    piece, size = [], 0
    while size < tables.ROWS and (unit := next(units, None)) is not None:
        piece.append(unit)
        size += len(unit.sentences)
    return piece


def _conflict(before: Sequence[Sentence], after: Sequence[Sentence], *, replacing: bool) -> str:
    """What is wrong with an id of two units: in one call, or of an entry that is not to be replaced."""
    differing = [*{*before} - {*after}, *before][0], [*{*after} - {*before}, *after][0]
    texts = " and to ".join(f"{one.text[:40]!r} ({one.language})" for one in differing)
    own_id = "each entry needs its own id (--content-ids ignores those of files)"
    advice = own_id if replacing else "`update` replaces entries"
    return f"the id {after[0].id!r} belongs to {texts}; {advice}"
