"""The sentences of a file as mining needs them: each once, on disk, found by row; 32 bytes a line are in memory.

What is special here: repeated lines are told by 64-bit hashes (see `data.filters` for how often two different
sentences would be taken for one: hardly ever), so a corpus need not fit into memory to be freed of them.
"""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write, read_lines
from isoglot.data.filters import Seen, hash_sentence
from isoglot.errors import CorpusError
from isoglot.search.top import Ids

ABSENT = -1


@dataclass(frozen=True, slots=True)
class Lines:
    """R sentences. Row r stands in line `numbers[r]` (from 1) of `path`, first of all its repetitions.

    `rows` (L,) gives the row of each of the L lines, `ABSENT` for those that take no part; `hashes` (R,) are equal for
    equal sentences; `ids` (L,) are the names of the lines, None where they have none.
    """

    path: Path
    numbers: Ids
    rows: Ids
    hashes: NDArray[np.uint64]
    ids: tuple[str, ...] | None
    offsets: Ids
    data: mmap.mmap

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> str:
        return self.data[int(self.offsets[row]) : int(self.offsets[row + 1]) - 1].decode("utf-8")

    def part(self, start: int, stop: int) -> list[str]:
        """The sentences of some rows."""
        return [self[row] for row in range(start, min(stop, len(self)))]

    def sizes(self) -> Ids:
        """Bytes of each sentence in UTF-8, (R,)."""
        return np.diff(self.offsets) - 1

    def name(self, row: int) -> str:
        """The id of a row, or the number of its line."""
        number = int(self.numbers[row])
        return str(number) if self.ids is None else self.ids[number - 1]


def gather(
    path: Path,
    into: Path,
    *,
    ids: bool = False,
    deduplicate: bool = True,
    keep: Callable[[str], bool] | None = None,
) -> Lines:
    """Read a file, one sentence a line (with `ids`: id, tab, sentence), and write what takes part to the file `into`.

    Blank lines take no part, nor do repetitions with `deduplicate`, nor what `keep` refuses. Raises `CorpusError` for
    what `read_lines` refuses, a line without an id, an id that stands twice, and a file of which nothing is left.
    """
    seen = Seen()
    names: list[str] | None = [] if ids else None
    digests, numbers, offsets = array("Q"), array("q"), array("q", [0])
    rows = array("q")
    with atomic_write(into, binary=True) as stream:
        for number, name, text in _sentences(path, ids):
            if names is not None:
                names.append(name)
            digest = hash_sentence(text, "")
            digests.append(int.from_bytes(digest, "little"))
            usable = bool(text.strip()) and (keep is None or keep(text))
            new = usable and (not deduplicate or seen.add(digest))
            rows.append(len(numbers) if new else ABSENT)
            if new:
                line = text.encode() + b"\n"
                stream.write(line)
                numbers.append(number)
                offsets.append(offsets[-1] + len(line))
    if not len(numbers):
        raise CorpusError("no line is left to mine; all are blank or filtered", file=path)
    if names is not None and len(set(names)) < len(names):
        raise CorpusError(f"two lines have the id {max(names, key=names.count)!r}; ids must differ", file=path)
    with into.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    first, every = np.array(numbers, np.int64), np.array(digests, np.uint64)
    known = every[first - 1]
    return Lines(
        path, first, _repeated(np.array(rows, np.int64), every, known), known, None if names is None else tuple(names),
        np.array(offsets, np.int64), data,
    )  # fmt: skip


def _sentences(path: Path, ids: bool) -> Iterator[tuple[int, str, str]]:
    for number, line in read_lines(path):
        if not ids:
            yield number, "", line
            continue
        name, tab, text = line.partition("\t")
        if not tab or not name:
            raise CorpusError("is not an id, a tab and a sentence; mend it, or leave --ids out", file=path, line=number)
        yield number, name, text


def _repeated(rows: Ids, every: NDArray[np.uint64], known: NDArray[np.uint64]) -> Ids:
    """Lines that repeat a sentence get its row."""
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], every), len(known) - 1)
    row = order[place]
    return np.where((rows == ABSENT) & (known[row] == every), row, rows)
