"""Vectors on disk with a journal of finished work: the basis of every cache and every resumable encoding.

Three layers, each built on the one before:

- `write_rows` and `map_rows`: a table of one width and type in a `.npy` file that grows in place. How many of its rows
  count is recorded by the caller.
- `Rows`: such a file and its journal, `FILE.journal`. The first line identifies the content; one line per finished
  block has the number of rows so far, the block's checksum, and fields of the caller.
- `VectorStore`: `Rows` whose journal holds a digest of each text, so that a vector is found by its text.

Data are synced before the line that counts them, so a killed process or a power cut leaves complete blocks; the next
append removes anything after them. Reading stops at the first damaged line and at the first incomplete block. Readers
map the file and need no lock; writers enter `exclusive`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import secrets
import zlib
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.files import atomic_write, exclusive, writing
from isoglot.data.vectors import not_finite

HEADER = 128  # bytes; NumPy pads the header of a table to a multiple of 64 and leaves room for the count to grow
FORMAT = 1
BLOCK = 16_384  # texts encoded between two writes of a store: about a minute for a small transformer on two cores

_DIGEST = 16  # bytes of a text's digest
_WAIT = 600.0  # seconds to wait for the lock, which another process holds while it writes one block
_MOVE = "move it away, or choose another output"

Table = NDArray[Any]


def header(count: int, width: int, dtype: DTypeLike) -> bytes:
    """The 128 bytes that precede `count` rows of `width` values in a `.npy` file."""
    stream = BytesIO()
    shape = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (count, width)}
    np.lib.format.write_array_header_1_0(stream, shape)
    made = stream.getvalue()
    assert len(made) == HEADER, "NumPy changed the length of the header of a table"
    return made


def write_rows(path: Path, at: int, block: Table) -> None:
    """Write a block (N, D) as rows `at` and following of a `.npy` file, cut off what followed, and sync it.

    Raises `CorpusError` if the file holds fewer than `at` rows, and `OutputError` if it can't be written.
    """
    table = np.ascontiguousarray(block)
    start = HEADER + at * table.shape[1] * table.itemsize
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b") as stream:
            size = os.fstat(stream.fileno()).st_size
            if at and size < start:  # the gap would be read as rows of zeros
                raise CorpusError(f"contains {size} bytes, and {at} rows take {start}; delete it", file=path)
            stream.truncate(start)
            stream.seek(start)
            stream.write(table.data if table.size else b"")
            stream.seek(0)
            stream.write(header(at + len(table), table.shape[1], table.dtype))
            stream.flush()
            os.fsync(stream.fileno())


def is_header(content: bytes, width: int) -> bool:
    """Whether a file that begins so was left by `write_rows`, with any number of rows in float32."""
    begin, _, _ = header(0, width, np.float32).partition(b"0, ")
    count = content[len(begin) :].partition(b",")[0]
    return count.isdigit() and len(count) < 20 and content == header(int(count), width, np.float32)


def map_rows(path: Path, count: int, width: int, dtype: DTypeLike = np.float32) -> Table:
    """The first `count` rows of a file of `write_rows`, as a read-only memory map. Its header is not read.

    Raises `CorpusError` for a file that is missing or cut short.
    """
    if not count:
        return np.empty((0, width), dtype)
    try:
        return np.memmap(path, dtype, "r", HEADER, (count, width))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is cut short"
        raise CorpusError(f"can't be read as {count} rows of {width} values ({why}); delete it", file=path) from error


class Rows:
    """A table of vectors that grows in one file, and its journal.

    `note` identifies the content, as passed to `begin`, or is None; `records` are the finished blocks: how many
    `rows` there are with each, its checksum `crc`, and what `append` was given. With `replace`, for caches and work
    folders, files that are not of this version or whose journal is damaged count as absent, and `begin` replaces them.
    Otherwise they are an `OutputError`, so that no foreign file is overwritten.
    """

    def __init__(self, path: Path, *, replace: bool = False) -> None:
        self.path, self.journal = path, journal_of(path)
        self.note: dict[str, Any] | None = None
        self.records: list[dict[str, Any]] = []
        self._replace = replace
        self._first = b""  # first line of the journal, which identifies this table
        self._ends = [0]  # bytes of the journal before each of its lines
        self.refresh()

    def __len__(self) -> int:
        return int(self.records[-1]["rows"]) if self.records else 0

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Remove a table if its first block failed."""
        if kind is not None and not len(self):
            self.path.unlink(missing_ok=True)
            self.journal.unlink(missing_ok=True)

    @property
    def table(self) -> Table:
        """The rows (N, D), a read-only memory map."""
        return map_rows(self.path, len(self), self.note["width"], self.note["dtype"]) if self.note else np.empty((0, 0))

    def refresh(self) -> None:
        """Read what other processes have added; all of it if they have begun again."""
        if not self.journal.is_file():
            self._forget()
            if self._size() and not self._replace:
                raise OutputError(f"{self.path}: exists without its journal, {self.journal.name}; {_MOVE}")
            return
        with self.journal.open("rb") as stream:
            first = stream.readline()
            if first != self._first or os.fstat(stream.fileno()).st_size < self._ends[-1]:
                self._forget()
                self._first = first
            stream.seek(self._ends[-1])
            for line in stream:
                content = _parse(line)
                if content is None:
                    break
                if self.note is None:
                    self.note = content
                else:
                    self.records.append(content)
                self._ends.append(self._ends[-1] + len(line))
        if self.note is None or self.note.get("store") != FORMAT:
            self._forget()
            if not self._replace:
                raise OutputError(f"{self.journal}: is not a journal of this version of isoglot; {_MOVE}")
            return
        row = self.note["width"] * np.dtype(self.note["dtype"]).itemsize
        size = self._size()
        while self.records and HEADER + self.records[-1]["rows"] * row > size:
            self.cut(len(self.records) - 1)

    def begin(self, note: Mapping[str, Any], *, width: int, dtype: DTypeLike) -> None:
        """Begin an empty table, replacing an existing one."""
        kind = {"width": width, "dtype": np.dtype(dtype).str}
        line = _line({"store": FORMAT, "id": secrets.token_hex(8), **kind, **note})
        with writing(self.path):
            self.path.unlink(missing_ok=True)  # not truncated: others may have mapped it
        with atomic_write(self.journal, binary=True) as stream:
            stream.write(line)
        self.refresh()

    def append(self, block: Table, **more: Any) -> None:
        """Add a block (N, D); on return it is on disk, and counts. `more`, values of JSON, is kept in its record."""
        assert self.note is not None, "begin was not called"
        table = np.ascontiguousarray(block, np.dtype(self.note["dtype"]))
        if table.ndim != 2 or table.shape[1] != self.note["width"]:
            raise ValueError(f"{self.path}: contains rows of {self.note['width']} values, not of shape {table.shape}")
        end = self._ends[-1]
        with writing(self.journal), self.journal.open("r+b") as stream:
            if stream.seek(0, os.SEEK_END) > end:  # remove the invalid lines first, or they would count the new rows
                stream.truncate(end)
                os.fsync(stream.fileno())
            write_rows(self.path, len(self), table)
            record = {"rows": len(self) + len(table), "crc": _checksum(table), **more}
            line = _line(record)
            stream.seek(end)
            stream.write(line)
            stream.flush()
            os.fsync(stream.fileno())
        self.records.append(record)
        self._ends.append(end + len(line))

    def verify(self) -> None:
        """Read all rows; drop the first damaged block and those that follow."""
        table, start = self.table, 0
        for number, record in enumerate(self.records):
            if _checksum(table[start : record["rows"]]) != record["crc"]:
                self.cut(number)
                return
            start = record["rows"]

    def cut(self, blocks: int) -> None:
        """Keep only the first `blocks` blocks; the next append removes the others from disk."""
        del self.records[blocks:]
        del self._ends[blocks + 2 :]

    def finish(self, path: Path | None = None) -> None:
        """Make the file complete, and if `path` is given, let it take that name and remove the journal."""
        assert self.note is not None, "begin was not called"
        write_rows(self.path, len(self), np.empty((0, self.note["width"]), self.note["dtype"]))
        if path is not None:
            with writing(path):
                self.path.replace(path)
                self.journal.unlink()

    def _size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _forget(self) -> None:
        self.note, self.records, self._first, self._ends = None, [], b"", [0]


def journal_of(path: Path) -> Path:
    """Where the journal of a table is."""
    return path.with_name(f"{path.name}.journal")


class VectorStore:
    """Vectors (D,) of one encoder, float32, found by their text, in a folder that is made with the first of them.

    The folder's name must identify the encoder and all that its vectors depend on (`encoders.identity`). Any number of
    processes may read and add at once: each block is added under a lock, without the texts that others have added
    meanwhile. In memory are some 150 bytes for each text. Damaged or older files count as absent.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rows = Rows(folder / "vectors.npy", replace=True)
        self._id: str | None = None
        self._read = 0
        self._places: dict[bytes, int] = {}
        self._read_digests()

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The row (N,) of each text, -1 where it is not kept."""
        return np.fromiter((self._places.get(_digest(text), -1) for text in texts), np.int64, len(texts))

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Copies (N, D) of some rows. Raises `CorpusError` for a row that is not there or not finite."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            problem = f"has {len(self)} vectors, but row {int(rows.max())} was requested; delete this folder"
            raise CorpusError(problem, file=self.folder)
        vectors: NDArray[np.float32] = np.array(self._rows.table[rows], np.float32)
        if len(not_finite(vectors)):
            raise CorpusError("contains a vector that is not finite; delete this folder", file=self._rows.path)
        return vectors

    def add(self, texts: Sequence[str], vectors: NDArray[Any]) -> None:
        """Keep the vectors (N, D) of N distinct texts, except for those that are kept already, as one block."""
        table, digests = np.asarray(vectors, np.float32), [_digest(text) for text in texts]
        with exclusive(self._rows.path, wait=_WAIT):
            self._rows.refresh()
            if self._rows.note is None or not len(self._rows):
                self._rows.begin({"of": "texts"}, width=table.shape[1], dtype=np.float32)
            self._read_digests()
            if (width := self._rows.table.shape[1]) != table.shape[1]:
                problem = f"contains vectors of {width} values, not {table.shape[1]}; delete this folder"
                raise CorpusError(problem, file=self.folder)
            new = [number for number, digest in enumerate(digests) if digest not in self._places]
            if new:
                keys = base64.b64encode(b"".join(digests[number] for number in new)).decode()
                self._rows.append(table[new], keys=keys)
        self._read_digests()

    def encode(self, compute: Callable[[list[str]], NDArray[Any]], texts: Sequence[str]) -> NDArray[np.int64]:
        """The row (N,) of each text; `compute` gives the vectors (M, D) of the M texts that are not kept yet.

        They are kept block by block, so that the same call after a kill computes only what is missing.
        """
        missing = list(dict.fromkeys(text for text, row in zip(texts, self.find(texts), strict=True) if row < 0))
        for start in range(0, len(missing), BLOCK):
            part = missing[start : start + BLOCK]
            self.add(part, compute(part))
        return self.find(texts)

    def _read_digests(self) -> None:
        """Read the digests of new blocks."""
        table_id = (self._rows.note or {}).get("id")
        if table_id != self._id or self._read > len(self._rows.records):
            self._id, self._read = table_id, 0
            self._places.clear()
        for record in self._rows.records[self._read :]:
            keys = base64.b64decode(record["keys"])
            first = record["rows"] - len(keys) // _DIGEST
            for start in range(0, len(keys), _DIGEST):
                self._places[keys[start : start + _DIGEST]] = first + start // _DIGEST
        self._read = len(self._rows.records)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def _checksum(table: Table) -> int:
    return zlib.crc32(np.ascontiguousarray(table).data if table.size else b"")


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> dict[str, Any] | None:
    """The content of a line of a journal, None if it is damaged or cut short."""
    checksum, _, text = line.partition(b" ")
    if not text.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text[:-1]):
        return None
    content = json.loads(text)
    return content if isinstance(content, dict) else None
