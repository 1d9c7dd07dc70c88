"""Test sets as a hub stores them, on local disk: a folder with JSON lines or Parquet for each subset and split.

This is how copies of the data of MTEB lie about: a snapshot of the repository
(`sts17-crosslingual-sts/ko-ko/test.jsonl.gz`, `data/test-00000-of-00001.parquet`) or what `datasets` wrote with
`to_json` or `to_parquet`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isoglot.data.files import COMPRESSED
from isoglot.errors import EvaluationError
from isoglot.evaluation.files import lines

_SHARD = re.compile(r"-\d+-of-(\d+)\.")
_PLACES = ("", "mteb", "datasets", "data")
_ENDINGS = (*(f"{kind}{ending}" for kind in (".jsonl", ".json") for ending in ("", *COMPRESSED)), ".parquet")


def export(data: Path, names: Sequence[str], *, split: str, subset: str = "") -> list[Path]:
    """The files of a subset's split below `data`, in order; none when the set is not there.

    `names` are the folders that a copy may have, such as the last part of the repository's name. Raises
    `EvaluationError` when a shard of several is missing (`test-00000-of-00002.parquet` alone).
    """
    inner = [subset, f"data/{subset}", split] if subset else ["", "data"]
    folders = (data / place / name / part for name in names for place in _PLACES for part in inner)
    for folder in filter(Path.is_dir, folders):
        stem = subset if subset and folder.name == split and folder.name != subset else split
        for ending in _ENDINGS:
            found = sorted([*folder.glob(f"{stem}{ending}"), *folder.glob(f"{stem}-[0-9]*{ending}")])
            if found:
                _refuse_missing_shards(found)
                return found
    return []


def _refuse_missing_shards(paths: Sequence[Path]) -> None:
    counts = {int(shard[1]) for path in paths if (shard := _SHARD.search(path.name))}
    if counts and counts != {len(paths)}:
        raise EvaluationError(
            f"{paths[0]}: {len(paths)} of {max(counts)} shards are there; a score over a part of the set would look "
            "like one over the whole, so copy them all"
        )


def records(path: Path, fields: Sequence[str], *, where: str) -> Iterator[dict[str, Any]]:
    """The records of one file, each having at least `fields`. Raises `EvaluationError` with file and line."""
    return (record for _, record in numbered_records(path, fields, where=where))


def numbered_records(path: Path, fields: Sequence[str], *, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """`records` with the line of each, or in Parquet its number from 1."""
    for number, record in _parquet(path, where) if path.suffix == ".parquet" else _json(path, where):
        missing = [name for name in fields if not isinstance(record, dict) or name not in record]
        if missing:
            raise EvaluationError(f"{where}: {path}:{number}: lacks {', '.join(missing)}; export the set again")
        yield number, record


def _json(path: Path, where: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(lines(path, where=where, carriage_returns=True, blank=True), 1):
        try:
            if line.strip():
                yield number, json.loads(line)
        except json.JSONDecodeError as error:
            raise EvaluationError(f"{where}: {path}:{number}: is no JSON ({error.msg}); export it again") from error


def _parquet(path: Path, where: str) -> Iterator[tuple[int, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise EvaluationError(f'{where}: {path}: Parquet needs pyarrow: pip install "isoglot[models]"') from error
    try:
        yield from enumerate(parquet.read_table(path).to_pylist(), 1)
    except (ArrowException, OSError) as error:
        raise EvaluationError(f"{where}: {path}: cannot be read as Parquet ({error}); export it again") from error
