"""Keeps groups in a temporary file, so that text which is needed again is not read, filtered and counted again."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile

from isoglot.data.groups import Group

BLOCK = 4096  # groups


class Spool:
    """Groups, in a file without a name that is gone when the spool is closed or the process ends.

    `complete` says that `write` has come to its end, and `counts` are those of the groups' source at that time.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        self.counts: Counter[str] = Counter()
        self.complete = False

    def write(self, groups: Iterable[Group], counts: Counter[str]) -> Iterator[Group]:
        """The same groups, written as they pass."""
        groups = iter(groups)
        while block := list(islice(groups, BLOCK)):
            rows = [(one.texts, one.langs, one.key, one.hard_negatives, one.hard_langs, one.extras) for one in block]
            pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)
            yield from block
        self.counts = counts.copy()
        self.complete = True

    def read(self, passed: Callable[[float], None] = lambda _: None) -> Iterator[Group]:
        """The groups that were written. `passed` is called with the share of them that each block is."""
        end, place = self._file.seek(0, 2), 0
        while place < end:
            self._file.seek(place)
            rows = pickle.load(self._file)
            passed((self._file.tell() - place) / end)
            place = self._file.tell()
            yield from (Group(*row) for row in rows)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()
        self.complete = False
