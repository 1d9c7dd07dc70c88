"""Vectors in several files as one memory-mapped table; which pieces a job makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import CorpusError, EncoderError
from isoglot.data.files import read_record, without_compression
from isoglot.data.vectors import open_table

NOTE = "shards.json"  # in a folder of vectors: what `encode_shards` made them of


@dataclass(frozen=True, slots=True)
class Shards:
    """Concatenated NumPy files of vectors with `counts` rows and `dim` columns; contains only paths, so it can be sent
    to workers.
    """

    files: tuple[Path, ...]
    counts: tuple[int, ...]
    dim: int

    def __len__(self) -> int:
        return sum(self.counts)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and width, as an array has them."""
        return len(self), self.dim

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Rows `start` to `stop`: a map of the file, or a copy where they lie in several.

        Raises `EncoderError` when a file is missing or has changed since the shards were opened.
        """
        parts = []
        for file, count, end in zip(self.files, self.counts, accumulate(self.counts), strict=True):
            first = end - count
            if first < stop and start < end:
                table = _map(file)
                if table.shape != (count, self.dim):
                    raise EncoderError(f"{file}: has shape {table.shape}, not {(count, self.dim)}; it was replaced")
                parts.append(table[max(0, start - first) : stop - first])
        if not parts:
            return np.empty((0, self.dim), np.float32)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


@check_arguments()
def open_shards(source: str | Path | Sequence[str | Path]) -> Shards:
    """Vectors in one `.npy` file, in several files in their order, or in those of a folder: in the order of the texts
    that `encode_shards` made them of, else sorted by name.

    Raises `EncoderError` if there are none, if a piece of `encode_shards` is missing, if one is not a table of numbers,
    and if their widths differ.
    """
    paths = [Path(path) for path in ([source] if isinstance(source, str | Path) else source)]
    files = _list_files(paths[0]) if isinstance(source, str | Path) and paths[0].is_dir() else paths
    if not files:
        raise EncoderError(f"{source}: contains no vectors (*.npy); encode text into it first")
    tables = [_map(file) for file in files]
    for file, table in zip(files, tables, strict=True):
        if table.shape[1] != tables[0].shape[1]:
            raise EncoderError(f"{file}: is {table.shape[1]} wide, {files[0]} {tables[0].shape[1]}; of another model?")
    # Workers may run in another folder.
    return Shards(tuple(file.resolve() for file in files), tuple(map(len, tables)), int(tables[0].shape[1]))


def select_range(total: int, shard: tuple[int, int]) -> slice:
    """The range of `total` pieces that is shard (3, 64), the third of 64. Raises `ValueError` for an impossible one."""
    number, count = shard
    if not 1 <= number <= count:
        raise ValueError(f"shard is {number}/{count}; it must be 1/{count} to {count}/{count}")
    return slice((number - 1) * total // count, number * total // count)


def _list_files(folder: Path) -> list[Path]:
    record = read_record(folder / NOTE) or {}
    places = {without_compression(name): place for place, (name, _) in enumerate(record.get("inputs", ()))}
    files = sorted(folder.glob("*.npy"), key=lambda file: (places.get(file.stem.rpartition("-")[0], 0), file.name))
    if files and len(files) != (pieces := record.get("pieces", len(files))):
        raise EncoderError(f"{folder}: has {len(files)} of {pieces} pieces; complete it by the call that began it")
    return files


def _map(file: Path) -> NDArray[Any]:
    try:
        return open_table(file)
    except CorpusError as error:
        raise EncoderError(str(error)) from error
