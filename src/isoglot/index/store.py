"""Texts, ids and languages of an index, and the list of its files: one SQLite database.

What is special here: the database is also the commit point. Files of vectors are written first, whole and synced; they
belong to the index from the moment in which the transaction that names them, together with their sentences, is
committed. SQLite undoes a transaction that was cut off, so a writer may be killed anywhere and the next reader finds
the index as it was before.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.languages import UNKNOWN
from isoglot.errors import OutputError
from isoglot.index.errors import SearchError
from isoglot.index.origin import Origin

FORMAT = 1
NAME = "index.sqlite"

_APPLICATION = 0x69736F67  # "isog" in the header of the database: an index, and not any other
_ASKED = 500  # parameters of one statement; old builds of SQLite allow 999
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE languages (number INTEGER PRIMARY KEY, code TEXT NOT NULL UNIQUE);
CREATE TABLE sentences (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, language INTEGER NOT NULL
);
CREATE TABLE shards (number INTEGER PRIMARY KEY, rows INTEGER NOT NULL);
CREATE TABLE approximate (name TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an index: an id that no other has, its text, and its house language code."""

    id: str
    text: str
    language: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Files:
    """What belongs to an index at one moment: rows of each shard, and the FAISS file as (name, rows, bytes)."""

    shards: tuple[int, ...]
    approximate: tuple[str, int, int] | None

    @property
    def rows(self) -> int:
        """Sentences in all."""
        return sum(self.shards)


class Store:
    """The database of an index; threads may share one. Raises `SearchError` for a folder that holds no index."""

    def __init__(self, folder: Path) -> None:
        path = folder / NAME
        if not path.is_file():
            raise SearchError(f"{folder}: holds no index; make one with: isoglot index MODEL FILE -o {folder}")
        self.folder = folder
        self._lock = threading.RLock()
        self._connection = _connect(path)
        try:
            application, version = (self._value(f"PRAGMA {name}") for name in ("application_id", "user_version"))
        except sqlite3.DatabaseError as error:
            raise SearchError(f"{path}: cannot be read as an index ({error}); make it again") from error
        if application != _APPLICATION:
            raise SearchError(f"{path}: is not a finished index; make it with: isoglot index MODEL FILE -o {folder}")
        if version != FORMAT:
            raise SearchError(f"{path}: has format {version}, this isoglot reads {FORMAT}; use the isoglot it is of")

    @classmethod
    def create(cls, folder: Path, origin: Origin, kind: str) -> Store:
        """An empty index. Raises `SearchError` for a folder that holds anything else."""
        path = folder / NAME
        folder.mkdir(parents=True, exist_ok=True)
        # What a creation that was cut off leaves is a database without tables.
        ours = (NAME, f"{NAME}-journal", f"{NAME}-wal", f"{NAME}-shm")
        if _has_tables(path) or any(one.name not in ours for one in folder.iterdir()):
            raise SearchError(f"{folder}: is not empty; name another folder with --output")
        connection = _connect(path)
        marks = f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT};"
        try:
            connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} {marks}")
            rows = [("origin", json.dumps(asdict(origin))), ("kind", kind)]
            connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise SearchError(f"{path}: cannot be made ({error}); remove it, or name another folder") from error
        finally:
            connection.close()
        return cls(folder)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._connection.close()

    @property
    def origin(self) -> Origin:
        """The model of the index."""
        return Origin(**json.loads(self._value("SELECT value FROM meta WHERE key = 'origin'")))

    @property
    def kind(self) -> str:
        """How the index is to be searched, as it was asked for."""
        return str(self._value("SELECT value FROM meta WHERE key = 'kind'"))

    def files(self) -> Files:
        """Shards and FAISS file, of one moment."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                shards = self._connection.execute("SELECT rows FROM shards ORDER BY number").fetchall()
                found = self._connection.execute("SELECT name, rows, bytes FROM approximate").fetchone()
            finally:
                self._connection.execute("COMMIT")
        return Files(tuple(rows for (rows,) in shards), found)

    @contextmanager
    def writing(self) -> Iterator[Files]:
        """The only writer, until the block ends; an exception undoes what was written in it."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                raise SearchError(f"{self.folder}: cannot be written to ({error}); try again later") from error
            try:
                shards = tuple(n for (n,) in self._connection.execute("SELECT rows FROM shards ORDER BY number"))
                found = self._connection.execute("SELECT name, rows, bytes FROM approximate").fetchone()
                yield Files(shards, found)
                self._connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.OperationalError):  # SQLite itself has done so where the disk is full
                    self._connection.execute("ROLLBACK")
                if isinstance(error, sqlite3.OperationalError):
                    raise OutputError(f"{self.folder}: can't be written: {error}; the index is as before") from error
                raise

    def add(self, sentences: Sequence[Sentence], first: int) -> None:
        """Add sentences as rows `first` and on; inside `writing`. Raises `SearchError` for an id that is taken."""
        codes = self._codes()
        for code in dict.fromkeys(sentence.language for sentence in sentences):
            if code not in codes:
                codes[code] = len(codes)
                self._connection.execute("INSERT INTO languages VALUES (?, ?)", (codes[code], code))
        for row, one in enumerate(sentences, first):
            try:
                values = (row, one.id, one.text, codes[one.language])
                self._connection.execute("INSERT INTO sentences VALUES (?, ?, ?, ?)", values)
            except sqlite3.IntegrityError:
                raise SearchError(f"{self.folder}: the id {one.id!r} is taken; ids must differ") from None

    def set_shard(self, number: int, rows: int) -> None:
        """Shard `number` has so many rows now; inside `writing`."""
        self._connection.execute("INSERT OR REPLACE INTO shards VALUES (?, ?)", (number, rows))

    def set_approximate(self, found: tuple[str, int, int] | None, kind: str) -> None:
        """The FAISS file and the kind it is of; inside `writing`."""
        self._connection.execute("DELETE FROM approximate")
        if found is not None:
            self._connection.execute("INSERT INTO approximate VALUES (?, ?, ?)", found)
        self._connection.execute("UPDATE meta SET value = ? WHERE key = 'kind'", (kind,))

    def by_row(self, rows: Sequence[int]) -> dict[int, Sentence]:
        """The sentences of some rows."""
        return dict(self._select("row", rows))

    def by_id(self, ids: Sequence[str]) -> dict[str, Sentence]:
        """Those of the ids that are there."""
        return {sentence.id: sentence for _, sentence in self._select("id", ids)}

    def languages(self) -> dict[str, int]:
        """How many sentences there are of each language, most first."""
        query = (
            "SELECT code, count(*) AS n FROM sentences JOIN languages ON number = language "
            "GROUP BY language ORDER BY n DESC, code"
        )
        with self._lock:
            return dict(self._connection.execute(query).fetchall())

    def language_of_rows(self, rows: int) -> tuple[dict[str, int], NDArray[np.int32]]:
        """A number for each language, and the number (rows,) of every row's language."""
        with self._lock:
            found = self._connection.execute("SELECT language FROM sentences WHERE row < ? ORDER BY row", (rows,))
            return self._codes(), np.fromiter((number for (number,) in found), np.int32, rows)

    def _codes(self) -> dict[str, int]:
        with self._lock:
            return dict(self._connection.execute("SELECT code, number FROM languages").fetchall())

    def _select(self, column: str, keys: Sequence[Any]) -> Iterator[tuple[int, Sentence]]:
        for start in range(0, len(keys), _ASKED):
            part = list(keys[start : start + _ASKED])
            marks = ",".join("?" * len(part))
            query = (
                "SELECT row, id, text, code FROM sentences JOIN languages ON number = language "
                f"WHERE {column} IN ({marks})"
            )
            with self._lock:
                found = self._connection.execute(query, part).fetchall()
            for row, *values in found:
                yield row, Sentence(*values)

    def _value(self, query: str) -> Any:
        with self._lock:
            return self._connection.execute(query).fetchone()[0]


def _has_tables(path: Path) -> bool:
    if not path.exists():
        return False
    connection = _connect(path)
    try:
        return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    except sqlite3.DatabaseError:  # another kind of file
        return True
    finally:
        connection.close()


def is_index(folder: Path) -> bool:
    """Whether the folder holds an index whose creation was finished."""
    path = folder / NAME
    if not path.is_file():
        return False
    connection = _connect(path)
    try:
        return bool(connection.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION)
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    # Written to only inside explicit transactions. Opened for writing even by readers, so that the transaction of a
    # writer that was killed can be undone.
    return sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
