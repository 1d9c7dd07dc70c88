"""Where the vectors and the FAISS structure of an index are: in a folder, or in memory.

Both places have the same methods. What is written counts once the database (store.py) names it, or counts its rows.
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from isoglot.core.errors import CorpusError, SearchError
from isoglot.data.store import write_rows
from isoglot.index import structures
from isoglot.index.store import VECTORS, Files, Structure
from isoglot.index.table import Table, Vectors
from isoglot.search.faiss_index import faiss_module

_OURS = re.compile(r"\.?[-0-9A-Za-z]+-\d+\.(faiss|parts)(\.[0-9a-f]{8}\.tmp)?")


class Folder:
    """The files of vectors and of FAISS in a folder."""

    def __init__(self, folder: Path, dim: int) -> None:
        self._folder, self._dim = folder, dim
        self._structures: dict[Structure | None, Any] = {None: None}  # the newest one that was opened

    def open(self, name: str, rows: int) -> Table:
        """The first rows of a file; see `Table.open`."""
        return Table.open(self._folder / name, rows, self._dim)

    def write(self, name: str, first: int, vectors: Vectors) -> None:
        """Write vectors as the rows `first` and on, which are the last ones then."""
        try:
            write_rows(self._folder / name, first, vectors)
        except CorpusError as error:
            raise SearchError(f"{self._folder / name}: is truncated; make the index again") from error

    def cut(self, name: str, rows: int) -> None:
        """Remove the vectors of an addition that failed: they take room, and don't count."""
        path = self._folder / name
        if not rows:
            path.unlink(missing_ok=True)
        elif path.exists():
            self.write(name, rows, np.empty((0, self._dim), np.float32))

    def make_structure(
        self, kind: str, table: Table, changes: int, coding: structures.Coding | None, earlier: Structure | None
    ) -> Structure:
        """Write a FAISS structure over all rows of a table, which continues an earlier one if there is one."""
        path = self._folder / "faiss" / _name_structure(kind, table, changes)
        opened = earlier and structures.open_structure(path.with_name(earlier.name), earlier, self._dim)
        return structures.write(path, kind, table, coding, opened)

    def open_structure(self, record: Structure | None) -> Any:
        """The FAISS structure, if there is one, read if it is another than before; see `structures.open_structure`."""
        if record is not None and record not in self._structures:
            opened = structures.open_structure(self._folder / "faiss" / record.name, record, self._dim)
            self._structures = {None: None, record: opened}
        return self._structures[record]

    def sweep(self, files: Files) -> None:
        """Remove files that were replaced, or that a killed or failed writer has left; nobody else writes now."""
        current = {files.vectors, files.approximate and files.approximate.name}
        ours = [path for path in (self._folder / "faiss").glob("*") if _OURS.fullmatch(path.name)]
        ours += [path for path in self._folder.glob("vectors*.npy") if VECTORS.fullmatch(path.name)]
        for path in ours:
            if path.name not in current:
                with suppress(PermissionError):  # Windows keeps what another process has open
                    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


class Memory:
    """What `Folder` has in files, for an index without a folder."""

    def __init__(self, dim: int) -> None:
        self._empty = np.empty((0, dim), np.float32)
        self._vectors: dict[str, Vectors] = {}  # by the name that a file would have, with room to grow
        self._structures: dict[Structure | None, Any] = {None: None}

    def open(self, name: str, rows: int) -> Table:
        """The first rows; a table that is open already keeps what it has."""
        return Table(self._vectors.get(name, self._empty)[:rows])

    def write(self, name: str, first: int, vectors: Vectors) -> None:
        """Write vectors as the rows `first` and on."""
        room, needed = self._vectors.get(name, self._empty), first + len(vectors)
        if needed > len(room):
            larger = np.empty((max(needed, 2 * first), room.shape[1]), np.float32)
            larger[:first] = room[:first]
            self._vectors[name] = room = larger
        room[first:needed] = vectors

    def cut(self, name: str, rows: int) -> None:
        """Nothing: the room of an addition that failed is used by the next one."""

    def make_structure(
        self, kind: str, table: Table, changes: int, _coding: structures.Coding | None, earlier: Structure | None
    ) -> Structure:
        """Make a FAISS structure over all rows of a table; an earlier one is copied, since others may search it."""
        copy = earlier and faiss_module().clone_index(self._structures[earlier])
        record = Structure(_name_structure(kind, table, changes), len(table), 0, None)
        self._structures[record] = structures.make(kind, table, copy)
        return record

    def open_structure(self, record: Structure | None) -> Any:
        """The FAISS structure, if there is one."""
        return self._structures[record]

    def sweep(self, files: Files) -> None:
        """Forget what was replaced."""
        self._structures = {record: self._structures[record] for record in {None, files.approximate}}
        self._vectors = {name: rows for name, rows in self._vectors.items() if name == files.vectors}


def _name_structure(kind: str, table: Table, changes: int) -> str:
    return re.sub("[^0-9A-Za-z]+", "-", kind) + (f"-{changes}" if changes else "") + f"-{len(table)}.faiss"
