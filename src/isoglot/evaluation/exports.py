"""Test sets as a hub stores them, on local disk: a folder with JSON lines or Parquet for each subset and split.

This is how copies of the data of MTEB lie about: a snapshot of the repository
(`sts17-crosslingual-sts/ko-ko/test.jsonl.gz`, `data/test-00000-of-00001.parquet`), the hub's cache with its snapshots
(`datasets--mteb--sib200/snapshots/<revision>/test/eng_Latn.parquet`), or what `datasets` wrote with `to_json` or
`to_parquet`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isoglot.data.files import COMPRESSED, json_object
from isoglot.errors import CorpusError, EvaluationError
from isoglot.evaluation.files import lines

_SHARD = re.compile(r"-(\d+)-of-(\d+)(?:-[0-9a-f]+)?\.")
_PLACES = ("", "mteb", "datasets", "data")
_ENDINGS = (*(f"{kind}{ending}" for kind in (".jsonl", ".json") for ending in ("", *COMPRESSED)), ".parquet")


def export(data: Path, names: Sequence[str], *, split: str, subset: str = "") -> list[Path]:
    """The files of a subset's split below `data`, in order; none when the set is not there.

    `names` are the folders that a copy may have, such as the last part of the repository's name. Raises
    `EvaluationError` when a shard of several is missing (`test-00000-of-00002.parquet` alone), and for a cache that
    has the set in more than one revision.
    """
    found = (_files(copy, split=split, subset=subset) for copy in _copies(data, names))
    return next(filter(None, found), [])


def subsets(data: Path, names: Sequence[str], *, split: str, pattern: str) -> tuple[str, ...]:
    """The subsets that have the split in the first copy with any, of those that begin as `pattern` says, sorted."""
    for copy in _copies(data, names):
        paths = (path for part in ("*", "data/*", f"{split}/*") for path in copy.glob(part))
        found = {match[0] for path in paths if (match := re.match(pattern, path.name))}
        if there := tuple(subset for subset in sorted(found) if _files(copy, split=split, subset=subset)):
            return there
    return ()


def _copies(data: Path, names: Sequence[str]) -> Iterator[Path]:
    """The folders that may hold the set; a cache with several revisions might give files of each."""
    for name in names:
        for place in _PLACES:
            yield data / place / name
            revisions = sorted((data / place).glob(f"datasets--mteb--{name}/snapshots/*"))
            if len(revisions) > 1:
                raise EvaluationError(
                    f"{revisions[0].parent}: {len(revisions)} revisions of the set are there, and nothing says which "
                    f"is meant; copy one of them into a folder {names[0]}, and give the folder that holds it"
                )
            yield from revisions


def _files(copy: Path, *, split: str, subset: str) -> list[Path]:
    inner = [subset, f"data/{subset}", split] if subset else ["", "data"]
    for folder in filter(Path.is_dir, (copy / part for part in inner)):
        stem = subset if subset and folder.name == split and folder.name != subset else split
        for ending in _ENDINGS:
            if (whole := folder / f"{stem}{ending}").exists():
                return [whole]
            if shards := sorted(folder.glob(f"{stem}-[0-9]*{ending}")):
                _refuse_missing_shards(shards)
                return shards
    return []


def _refuse_missing_shards(paths: Sequence[Path]) -> None:
    shards = [(int(shard[1]), int(shard[2])) for path in paths if (shard := _SHARD.search(path.name))]
    most = max((count for _, count in shards), default=0)
    if shards and shards != [(number, len(paths)) for number in range(len(paths))]:
        raise EvaluationError(
            f"{paths[0]}: {len(paths)} of {most} shards are there; a score over another part of the set than the whole "
            "would look like one over the whole, so copy all of one export there, and no others"
        )


def records(path: Path, fields: Sequence[str], *, where: str) -> Iterator[dict[str, Any]]:
    """The records of one file, each having at least `fields`. Raises `EvaluationError` with file and line."""
    return (record for _, record in numbered_records(path, fields, where=where))


def numbered_records(path: Path, fields: Sequence[str], *, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """`records` with the line of each, or in Parquet its number from 1."""
    for number, record in _parquet(path, where) if path.suffix == ".parquet" else _json(path, where):
        missing = [name for name in fields if name not in record]
        if missing:
            raise EvaluationError(f"{where}: {path}:{number}: lacks {', '.join(missing)}; export the set again")
        yield number, record


def _json(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines(path, where=where, carriage_returns=True, blank=True), 1):
        try:
            if line.strip():
                yield number, json_object(line, file=path, line=number)
        except CorpusError as error:
            raise EvaluationError(f"{where}: {error}") from error


def _parquet(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise EvaluationError(f'{where}: {path}: Parquet needs pyarrow: pip install "isoglot[models]"') from error
    try:
        yield from enumerate(parquet.read_table(path).to_pylist(), 1)
    except (ArrowException, OSError) as error:
        raise EvaluationError(f"{where}: {path}: cannot be read as Parquet ({error}); export it again") from error
