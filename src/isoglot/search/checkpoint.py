"""Saves a long search to disk, so that it can be resumed.

The file begins with the SHA-256 of the rest and is only ever replaced as a whole. A file that is truncated, damaged or
of another search is recognised and ignored.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write
from isoglot.search.best import Best

SHARE = 20  # saving takes at most 1/SHARE of the time
_BLOCK = 1 << 24  # bytes hashed at a time
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file in which a search is saved every `every` seconds; `report` receives a message about a file that can't be
    used.
    """

    path: Path
    every: float = 60.0
    report: Callable[[str], None] = lambda _message: None

    def load(self, key: str, tables: Sequence[Best]) -> int:
        """Fill the tables with what was saved under this key. Returns the number of tiles done; 0: nothing saved."""
        try:
            with self.path.open("rb") as stream:
                wanted, header = stream.read(_DIGEST), stream.readline()
                checksum = hashlib.sha256(header)
                known = json.loads(header)
                if known["key"] != key:
                    self.report(f"{self.path}: belongs to another search; starting again")
                    return 0
                for part in _parts(tables):
                    if stream.readinto(part.data.cast("B")) != part.nbytes:
                        raise ValueError("truncated")
                    checksum.update(part.data)
                if checksum.digest() != wanted or stream.read(1):
                    raise ValueError("damaged")
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            for table in tables:
                table.clear()
            self.report(f"{self.path}: is not a valid checkpoint ({error}); starting again")
            return 0
        return int(known["tiles"])

    def save(self, key: str, tiles: int, tables: Sequence[Best]) -> None:
        """Write the tables after `done` tiles. Raises `OutputError` if they can't be written."""
        header = json.dumps({"key": key, "tiles": tiles}).encode() + b"\n"
        checksum = hashlib.sha256(header)
        for part in _parts(tables):
            checksum.update(part.data)
        with atomic_write(self.path, binary=True) as stream:
            stream.write(checksum.digest())
            stream.write(header)
            for part in _parts(tables):
                stream.write(part.data.cast("B"))


class Saver:
    """Saves a search after `every` seconds, and not before `SHARE` times the duration of the last save."""

    def __init__(self, checkpoint: Checkpoint | None, key: Callable[[], str], tables: Sequence[Best]) -> None:
        self._checkpoint, self._tables = checkpoint, tables
        self._key = key() if checkpoint else ""
        self._last, self._cost = time.monotonic(), 0.0

    def load(self) -> int:
        """How many tiles are done already."""
        return self._checkpoint.load(self._key, self._tables) if self._checkpoint else 0

    def due(self) -> bool:
        """Whether it is time to save."""
        if self._checkpoint is None:
            return False
        return time.monotonic() - self._last >= max(self._checkpoint.every, SHARE * self._cost)

    def save(self, tiles: int) -> None:
        """Save now, if there is a checkpoint."""
        if self._checkpoint is None:
            return
        began = time.monotonic()
        self._checkpoint.save(self._key, tiles, self._tables)
        self._last = time.monotonic()
        self._cost = self._last - began


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Digest of the content, type and shape of arrays, read block by block."""
    checksum = hashlib.sha256()
    for array in arrays:
        checksum.update(f"{array.dtype.str} {array.shape}".encode())
        step = max(1, _BLOCK // max(1, array.nbytes // max(1, len(array))))
        for start in range(0, len(array), step):
            checksum.update(np.ascontiguousarray(array[start : start + step]).data)
    return checksum.hexdigest()


def _parts(tables: Sequence[Best]) -> list[NDArray[Any]]:
    return [part for table in tables for part in (table.scores, table.ids)]
