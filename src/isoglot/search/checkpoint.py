"""Saves a long search to disk, so that it can be resumed.

The file is an `.npz` archive, whose checksums show damage, and is only ever replaced as a whole. One that is damaged or
of another search is reported and ignored.
"""

from __future__ import annotations

import hashlib
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The file in which a search is saved every `every` seconds; `report` receives a message about a file that can't be
    used.
    """

    path: Path
    every: float = 60.0
    report: Callable[[str], None] = lambda _message: None


class Saver:
    """Saves a search after `every` seconds, and not before `SHARE` times the duration of the last save.

    `key` identifies the search, whose result so far is in `tables`. Without a checkpoint nothing is saved.
    """

    def __init__(self, checkpoint: Checkpoint | None, key: Callable[[], str], tables: Sequence[Best]) -> None:
        self._checkpoint = checkpoint
        self._key = key() if checkpoint else ""
        self._tables = {f"table {number}": table for number, table in enumerate(tables)}
        self._last, self._cost = time.monotonic(), 0.0

    def load(self) -> int:
        """Fill the tables with what was saved under this key. Returns the number of tiles done; 0: nothing saved."""
        if self._checkpoint is None:
            return 0
        try:
            with np.load(self._checkpoint.path) as saved:
                if str(saved["key"]) == self._key:
                    for name, table in self._tables.items():
                        table.scores[:], table.ids[:] = saved[f"{name} scores"], saved[f"{name} ids"]
                    return int(saved["tiles"])
                problem = "belongs to another search"
        except FileNotFoundError:
            return 0
        except Exception as error:  # zipfile and NumPy have many, depending on which byte is damaged
            for table in self._tables.values():
                table.clear()
            problem = f"is not a valid checkpoint ({error})"
        self._checkpoint.report(f"{self._checkpoint.path}: {problem}; starting again")
        return 0

    def due(self) -> bool:
        """Whether it is time to save."""
        if self._checkpoint is None:
            return False
        return time.monotonic() - self._last >= max(self._checkpoint.every, SHARE * self._cost)

    def save(self, tiles: int) -> None:
        """Save now, after this number of tiles. Raises `OutputError` if the file can't be written."""
        if self._checkpoint is None:
            return
        began, arrays = time.monotonic(), {"key": np.array(self._key), "tiles": np.array(tiles)}
        for name, table in self._tables.items():
            arrays |= {f"{name} scores": table.scores, f"{name} ids": table.ids}
        with atomic_write(self._checkpoint.path, binary=True) as stream:
            np.savez(stream, **arrays)  # type: ignore[arg-type]
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
