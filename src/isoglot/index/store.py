"""Texts, ids and languages of an index, and which of its files and rows count: one SQLite database.

The database is also the commit point. Vectors and FAISS files are written first and synced; they become part of the
index when the transaction that counts or names them, together with their sentences, is committed. SQLite rolls back an
interrupted transaction, so after a writer was killed the next reader finds the index unchanged.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import OutputError, SearchError
from isoglot.data.files import LOCK
from isoglot.data.languages import UNKNOWN
from isoglot.index.origin import Origin

FORMAT = 5
NAME = "index.sqlite"
VECTORS = re.compile(r"vectors(-\d+)?\.npy")

_APPLICATION = 0x69736F67  # "isog" in the header of the database: an index, and not any other
_ASKED = 500  # parameters of one statement; old builds of SQLite allow 999
_FAILED = "disk I/O error"  # what SQLite says of a quota and of a file-size limit too
_PERMISSIONS = "can't be written ({error}); check its permissions and the disk"
_PROBLEMS = {  # words of SQLite's errors, with what is raised
    "closed": (SearchError, "is closed; open it again with Index.open"),
    "locked": (SearchError, "another process is writing it ({error}); try again later"),
    "is full": (OutputError, "can't be written ({error}); make room on the disk"),
    "readonly": (OutputError, _PERMISSIONS),
    "unable to open": (OutputError, _PERMISSIONS),
    _FAILED: (SearchError, "can't be read ({error}); check the disk"),
}
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE languages (number INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE);
CREATE TABLE sentences (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, language INTEGER NOT NULL,
    translation TEXT, translation_language INTEGER NOT NULL, content INTEGER NOT NULL
);
CREATE INDEX ids ON sentences (id);
CREATE INDEX contents ON sentences (content);
CREATE TABLE deleted (row INTEGER PRIMARY KEY);
CREATE TABLE approximate (name TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
"""
_ANALYZED = (  # statistics that SQLite's own ANALYZE leaves
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an index: the id of its entry, its text, its language code, and a translation to show with it.

    Sentences with one id are the sides of one entry. `translation_language` is `und` if it is not known, and without
    a translation.
    """

    id: str
    text: str
    language: str = UNKNOWN
    translation: str | None = None
    translation_language: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Structure:
    """A FAISS file: its name, the rows it covers, its bytes, and a SHA-256 of them (None: written before it was kept).

    Where lists follow, the SHA-256 is that of the first bytes, and their number follows it.
    """

    name: str
    rows: int
    size: int
    digest: str | None


@dataclass(frozen=True, slots=True)
class Files:
    """The state of an index.

    rows         rows of the file of vectors, deleted ones too
    approximate  the FAISS file
    version      `Store.version` of this state
    vectors      name of the file of vectors
    deleted      how many of the rows are deleted
    changes      how often rows were deleted or renumbered; among states with one number, rows are only added
    scale        the table of `Scale`, or None
    """

    rows: int
    approximate: Structure | None
    version: int
    vectors: str
    deleted: int
    changes: int
    scale: str | None


class Store:
    """The database of an index; threads may share one.

    Raises `SearchError` for a folder that contains no index, and from every method for a database that is damaged.
    """

    def __init__(self, folder: Path | None, *, connection: sqlite3.Connection | None = None) -> None:
        path = Path(":memory:") if folder is None else folder / NAME
        if folder is not None and not path.is_file():
            raise SearchError(f"{folder}: contains no index; make one with: isoglot index MODEL FILE -o {folder}")
        self.folder, self._path = folder, path
        self.lock = threading.RLock()
        self._is_writing = False
        with _explaining(path, "can't be opened ({error}); check its permissions"):
            # Before the connection, so that a file that takes its place meanwhile is not mistaken for it.
            self._opened = None if folder is None else path.stat()
            self._connection = connection or _connect(path)
        try:
            self._check_format(path)
            self._check_schema()
            self.origin = self._origin()
        except BaseException:
            self._connection.close()
            raise

    @classmethod
    def create(cls, folder: Path | None, origin: Origin, kind: str) -> Store:
        """An empty index; without a folder in memory. Raises `SearchError` for a folder that contains anything else."""
        if folder is None:
            memory = _connect(Path(":memory:"))
            _initialise(memory, origin, kind)
            return cls(None, connection=memory)
        path = folder / NAME
        folder.mkdir(parents=True, exist_ok=True)
        # A creation that was interrupted leaves a database without tables.
        ours = (NAME, f"{NAME}-journal", f"{NAME}-wal", f"{NAME}-shm", LOCK)
        if _inspect(path)[1] or any(one.name not in ours for one in folder.iterdir()):
            raise SearchError(f"{folder}: is not empty; choose another folder")
        problem = "cannot be made ({error}); remove it, or choose another folder"
        with closing(_connect(path)) as connection, _explaining(path, problem, is_writing=True):
            _initialise(connection, origin, kind)
        return cls(folder)

    def close(self) -> None:
        """Close the database."""
        with self.lock:
            self._connection.close()

    @property
    def name(self) -> str:
        """The folder, for messages."""
        return "this index" if self.folder is None else str(self.folder)

    @property
    def kind(self) -> str:
        """How the index is searched."""
        return self.value("kind") or self._fail("does not name its kind")

    @property
    def version(self) -> int:
        """A number that is another one after others have written to the index."""
        return int(self._ask("PRAGMA data_version")[0][0])

    def files(self) -> Files:
        """Rows and FAISS file, of one moment."""
        with self._transaction("BEGIN"):
            return self._files()

    @contextmanager
    def writing(self) -> Iterator[Files]:
        """The only writer, until the block ends; an exception undoes what was written in it."""
        with self.lock:
            self._is_writing = True
            try:
                with self._transaction("BEGIN IMMEDIATE"):
                    self._check_place()
                    yield self._files()
            finally:
                self._is_writing = False

    def _check_place(self) -> None:
        """Raise `SearchError` if the folder has another database now, whose vectors would be overwritten."""
        with suppress(FileNotFoundError):
            if self._opened is None or os.path.samestat(self._opened, self._path.stat()):
                return
        raise SearchError(f"{self.folder}: was removed or replaced since it was opened; open it again with Index.open")

    def add(self, sentences: Sequence[Sentence], contents: Sequence[int], first: int) -> None:
        """Add sentences as rows `first` and on, each with the content of its unit; inside `writing`."""
        codes = self._number_languages(code for one in sentences for code in (one.language, one.translation_language))
        self._connection.executemany(
            "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (row, one.id, one.text, codes[one.language], one.translation, codes[one.translation_language], content)
                for row, (one, content) in enumerate(zip(sentences, contents, strict=True), first)
            ),
        )
        self.set_value("rows", str(first + len(sentences)))

    def delete(self, rows: Sequence[int]) -> None:
        """Delete sentences; their vectors stay until `renumber`; inside `writing`."""
        values = [(row,) for row in rows]
        self._connection.executemany("DELETE FROM sentences WHERE row = ?", values)
        self._connection.executemany("INSERT INTO deleted VALUES (?)", values)
        self.set_value("changes", str(self._changes() + 1))

    def renumber(self, rows: Sequence[int], vectors: str) -> None:
        """Let these rows, in this order, be all rows from 0 on, whose vectors are in another file; inside `writing`."""
        moved = ((new, old) for new, old in enumerate(rows) if new != old)
        self._connection.executemany("UPDATE sentences SET row = ? WHERE row = ?", moved)
        self._connection.execute("DELETE FROM deleted")
        for key, value in (("vectors", vectors), ("rows", len(rows)), ("changes", self._changes() + 1)):
            self.set_value(key, str(value))

    def _number_languages(self, named: Iterable[str]) -> dict[str, int]:
        """The numbers of all languages, of new ones too, which are added; inside `writing`."""
        codes = self._codes()
        for code in dict.fromkeys(named):
            if code not in codes:
                codes[code] = len(codes)
                self._connection.execute("INSERT INTO languages VALUES (?, ?)", (codes[code], code))
        return codes

    def set_value(self, key: str, value: str) -> None:
        """Set the table of the `scale`, the `recall`, or another value; inside `writing`."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def set_approximate(self, file: Structure | None, kind: str) -> None:
        """The FAISS file and the kind it is of; inside `writing`."""
        self._connection.execute("DELETE FROM approximate")
        self._connection.execute("DELETE FROM meta WHERE key LIKE 'sha256 %'")
        if file is not None:
            self._connection.execute("INSERT INTO approximate VALUES (?, ?, ?)", (file.name, file.rows, file.size))
            if file.digest is not None:
                self.set_value(f"sha256 {file.name}", file.digest)
        self.set_value("kind", kind)

    @contextmanager
    def reading(self, changes: int) -> Iterator[bool]:
        """A moment in which nobody writes; whether the rows are those of a state with this number of changes."""
        with self._transaction("BEGIN"):
            yield self._changes() == changes

    def by_row(self, rows: Sequence[int]) -> dict[int, Sentence]:
        """The sentences of some rows, all of which must be there."""
        sentences = dict(self._select("row", rows))
        if (missing := next((row for row in rows if row not in sentences), None)) is not None:
            self._fail(f"has no sentence {missing}")
        return sentences

    def by_id(self, ids: Sequence[str]) -> dict[str, dict[int, Sentence]]:
        """The ids that exist in the index, each with its rows, in their order."""
        units = dict[str, dict[int, Sentence]]()
        for row, sentence in sorted(self._select("id", ids), key=itemgetter(0)):
            units.setdefault(sentence.id, {})[row] = sentence
        return units

    def contents(self, rows: Sequence[int]) -> dict[int, int]:
        """The content of the unit of each of these rows that is there."""
        return dict(self._ask_many("SELECT row, content FROM sentences WHERE row IN ({})", rows))

    def counts(self, contents: Sequence[int]) -> dict[int, int]:
        """How many ids have each of these contents."""
        query = "SELECT content, count(DISTINCT id) FROM sentences WHERE content IN ({}) GROUP BY content"
        return dict(self._ask_many(query, contents))

    def find_deleted(self, rows: int) -> list[int]:
        """Those of the first `rows` rows that are deleted; of later ones, others may have deleted some meanwhile."""
        return [row for (row,) in self._ask("SELECT row FROM deleted WHERE row < ?", (rows,))]

    def has_translations(self) -> bool:
        """Whether any sentence has a translation."""
        return bool(self._ask("SELECT EXISTS (SELECT 1 FROM sentences WHERE translation IS NOT NULL)")[0][0])

    def languages(self) -> dict[str, int]:
        """How many sentences there are of each language, most first."""
        query = (
            "SELECT code, count(*) AS n FROM sentences JOIN languages ON number = language "
            "GROUP BY language ORDER BY n DESC, code"
        )
        return dict(self._ask(query))

    def language_of_rows(self, rows: int) -> tuple[dict[str, int], NDArray[np.int32]]:
        """A number for each language, and the number (rows,) of every row's language, -1 where it is deleted."""
        numbers = np.full(rows, -1, np.int32)
        with self._asking() as connection:
            cursor = connection.execute("SELECT row, language FROM sentences WHERE row < ?", (rows,))
            try:
                pairs = np.fromiter(cursor, np.dtype([("row", np.int64), ("language", np.int32)]))
                numbers[pairs["row"]] = pairs["language"]
            except (ValueError, TypeError, OverflowError, IndexError) as error:  # not integers
                self._fail("lacks languages of sentences", error)
        return self._codes(), numbers

    def _codes(self) -> dict[str, int]:
        return dict(self._ask("SELECT code, number FROM languages"))

    def _select(self, column: str, keys: Sequence[Any]) -> Iterator[tuple[int, Sentence]]:
        query = (
            "SELECT row, id, text, of_text.code, translation, of_translation.code FROM sentences "
            "JOIN languages AS of_text ON of_text.number = language "
            f"JOIN languages AS of_translation ON of_translation.number = translation_language WHERE {column} IN ({{}})"
        )
        for row, *values in self._ask_many(query, keys):
            if not all(isinstance(values[at], str) for at in (0, 1, 2, 4)) or not isinstance(values[3], str | None):
                self._fail(f"has no text as sentence {row}")
            yield row, Sentence(*values)

    def _ask_many(self, query: str, keys: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        """The answers for some keys, which stand for the braces of the query."""
        for start in range(0, len(keys), _ASKED):
            part = list(keys[start : start + _ASKED])
            yield from self._ask(query.format(",".join("?" * len(part))), part)

    def _check_format(self, path: Path) -> None:
        application, version = (self._ask(f"PRAGMA {name}")[0][0] for name in ("application_id", "user_version"))
        if application != _APPLICATION:
            how = f"isoglot index MODEL FILE -o {self.folder}"
            raise SearchError(f"{path}: is not a finished index; make it with: {how}")
        if version != FORMAT:
            again = f"make it again in another folder: isoglot index {self._model_name()} FILE... -o FOLDER"
            upgrade = "" if version < FORMAT else "upgrade isoglot, or "
            problem = f"{self.folder}: an index of format {version}, and this isoglot reads {FORMAT}"
            raise SearchError(f"{problem}; {upgrade}{again}")

    def _check_schema(self) -> None:
        """Only the tables of `_SCHEMA`, word for word: a view, a trigger or a computed column could run for ever."""
        statements = self._ask("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        expected = sorted(" ".join(sql.split()) for sql in _SCHEMA.split(";") if sql.strip())
        if sorted(" ".join(str(sql).split()) for (sql,) in statements if sql not in _ANALYZED) != expected:
            self._fail("has other tables than an index")

    def _model_name(self) -> str:
        """The name of the model of an index of any format, as far as it can be read."""
        with suppress(SearchError, ValueError, TypeError, KeyError):
            return str(json.loads(self.value("origin") or "")["name"])
        return "MODEL"

    def _origin(self) -> Origin:
        try:
            return Origin(**json.loads(self.value("origin") or ""))
        except (ValueError, TypeError, RecursionError):
            self._fail("does not name its model")

    def _files(self) -> Files:
        """Inside a transaction."""
        rows = self._number("rows", "does not record how many vectors count")
        last, deleted = self._ask(
            "SELECT max((SELECT ifnull(max(row), -1) FROM sentences), (SELECT ifnull(max(row), -1) FROM deleted)), "
            "(SELECT count(*) FROM deleted)"
        )[0]
        if rows != last + 1:
            self._fail(f"has sentences up to row {last} for {rows} vectors")
        structure = None
        for name, covered, size in self._ask("SELECT name, rows, bytes FROM approximate"):
            if not isinstance(name, str) or Path(name).name != name or type(covered) is not int:
                self._fail("does not name its FAISS file")
            structure = Structure(name, covered, size, self.value(f"sha256 {name}"))
        vectors = self.value("vectors") or ""
        if not VECTORS.fullmatch(vectors):
            self._fail("does not name its vectors")
        return Files(rows, structure, self.version, vectors, deleted, self._changes(), self.value("scale"))

    def _changes(self) -> int:
        return self._number("changes", "does not count its changes")

    def _number(self, key: str, problem: str) -> int:
        value = self.value(key) or ""
        return int(value) if value.isdecimal() else self._fail(problem)

    def value(self, key: str) -> str | None:
        """A value that is kept; None if it is missing."""
        values = self._ask("SELECT value FROM meta WHERE key = ?", (key,))
        return values[0][0] if values and isinstance(values[0][0], str) else None

    def _ask(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._asking() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """One transaction, undone by an exception."""
        with self._asking() as connection:
            connection.execute(begin)
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # some errors end the transaction
                    with suppress(sqlite3.DatabaseError):  # on a full disk: the next reader undoes it
                        connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _asking(self) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone."""
        problem = "can't be read as an index ({error}); make the index again"
        with self.lock, _explaining(self._path if self.folder else self.name, problem, is_writing=self._is_writing):
            yield self._connection

    def _fail(self, problem: str, error: Exception | None = None) -> NoReturn:
        raise SearchError(f"{self._path}: {problem}; make the index again") from error


@contextmanager
def _explaining(path: Path | str, problem: str, *, is_writing: bool = False) -> Iterator[None]:
    """Raise errors of SQLite as `SearchError` or `OutputError`; those that are not in `_PROBLEMS` with a problem."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        kind, problem = next((_PROBLEMS[words] for words in _PROBLEMS if words in str(error)), (SearchError, problem))
        if is_writing and _FAILED in str(error):
            kind, problem = _PROBLEMS["is full"]
        raise kind(f"{path}: {problem.format(error=error)}") from error


def _initialise(connection: sqlite3.Connection, origin: Origin, kind: str) -> None:
    marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks}")
    values = {"origin": json.dumps(asdict(origin)), "kind": kind, "rows": "0", "changes": "0", "vectors": "vectors.npy"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", values.items())
    connection.execute("COMMIT")


def is_index(folder: Path) -> bool:
    """Whether the folder contains a completely created index."""
    return _inspect(folder / NAME)[0] == _APPLICATION


def _inspect(path: Path) -> tuple[int, int]:
    """The application of a database and how many tables it has; of another kind of file, one of none."""
    if not path.is_file():
        return 0, int(path.exists())
    with closing(_connect(path)) as connection, suppress(sqlite3.DatabaseError):
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        return connection.execute("PRAGMA application_id").fetchone()[0], tables
    return 0, 1


def _connect(path: Path) -> sqlite3.Connection:
    # Written to only inside explicit transactions. Opened for writing even by readers, so that the transaction of a
    # writer that was killed can be undone.
    return sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
