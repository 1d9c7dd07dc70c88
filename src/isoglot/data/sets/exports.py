"""Local copies of test sets in the layout of the Hugging Face hub: a folder with JSON lines or Parquet for each subset
and split.

Copies of the data of MTEB have these forms: a snapshot of the repository
(`sts17-crosslingual-sts/ko-ko/test.jsonl.gz`, `data/test-00000-of-00001.parquet`), the hub's cache with its snapshots
(`datasets--mteb--sib200/snapshots/<revision>/test/eng_Latn.parquet`), or what `datasets` wrote with `to_json` or
`to_parquet`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isoglot.core.errors import CorpusError
from isoglot.data.files import COMPRESSED
from isoglot.data.formats import read_records

_SHARD = re.compile(r"-(\d+)(?:-of-(\d+))?(?:-[0-9a-f]+)?\.")
_PLACES = ("", "mteb", "datasets", "data")
_ENDINGS = (*(f"{kind}{ending}" for kind in (".jsonl", ".json") for ending in ("", *COMPRESSED)), ".parquet")


def export(data: Path, names: Sequence[str], *, split: str, subset: str = "") -> tuple[Path, ...]:
    """The files of a subset's split below `data`, in order, from the first copy that has the split; or none.

    `names` are the folders that a copy may have, such as the last part of the repository's name. Raises `CorpusError`
    when a shard of several is missing (`test-00000-of-00002.parquet` alone), and for a cache that has the split in more
    than one revision, none of them being its `main`.
    """
    copy = _copy(data, names, split)
    return _files(copy, split=split, subset=subset) if copy else ()


def subsets(data: Path, names: Sequence[str], *, split: str, pattern: str) -> tuple[str, ...]:
    """The subsets of that copy that have the split and whose names begin with a match of `pattern`, sorted."""
    copy = _copy(data, names, split)
    paths = (path for part in ("*", "data/*", f"{split}/*") for path in copy.glob(part)) if copy else ()
    matching = {match[0] for path in paths if (match := re.match(pattern, path.name))}
    return tuple(subset for subset in sorted(matching) if copy and _files(copy, split=split, subset=subset))


def records(paths: Sequence[Path], fields: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of an export, each with its place: file and line, or in Parquet file and number from 1.

    Raises `CorpusError` for files that cannot be read and for a record that lacks one of the `fields`.
    """
    for path in paths:
        for number, record in read_records(path, skip_blank=True):
            if missing := [name for name in fields if name not in record]:
                raise CorpusError(f"lacks {', '.join(missing)}; export the set again", file=path, line=number)
            yield f"{path}:{number}", record


def _copy(data: Path, names: Sequence[str], split: str) -> Path | None:
    """The folder that a set is read from: one only, so that no score mixes parts of two copies."""
    for name in names:
        for place in _PLACES:
            if _holds(data / place / name, split):
                return data / place / name
            if revision := _revision(data / place / f"datasets--mteb--{name}", split):
                return revision
    return None


def _revision(cache: Path, split: str) -> Path | None:
    """The snapshot of the hub's cache that has the split, or of several the one that the cache calls `main`."""
    copies = [path for path in sorted(cache.glob("snapshots/*")) if _holds(path, split)]
    main = cache / "refs" / "main"
    if len(copies) > 1 and main.is_file():
        copies = [path for path in copies if path.name == main.read_text().strip()] or copies
    if len(copies) > 1:
        problem = f"{len(copies)} revisions of the set and no ref 'main' to choose one; copy one of them into"
        name = cache.name.rpartition("--")[2]
        raise CorpusError(f"{problem} a folder {name}, and pass the folder that contains it", file=copies[0].parent)
    return copies[0] if copies else None


def _holds(copy: Path, split: str) -> bool:
    parts = [*(f"{folder}{split}[.-]*" for folder in ("", "data/", "*/", "data/*/")), f"{split}/*"]
    return any(path.name.endswith(_ENDINGS) for part in parts for path in copy.glob(part))


def _files(copy: Path, *, split: str, subset: str) -> tuple[Path, ...]:
    inner = [subset, f"data/{subset}", split] if subset else ["", "data"]
    for folder in filter(Path.is_dir, (copy / part for part in inner)):
        stem = subset if subset and folder.name == split and folder.name != subset else split
        for ending in _ENDINGS:
            if (whole := folder / f"{stem}{ending}").exists():
                return (whole,)
            if shards := list(folder.glob(f"{stem}-[0-9]*{ending}")):
                return _sort_shards(shards)
    return ()


def _sort_shards(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Shards by number. Raises `CorpusError` for missing or duplicate shards if a name states their number."""
    numbering = {path: (int(name[1]), int(name[2] or 0)) for path in paths if (name := _SHARD.search(path.name))}
    shards = sorted(numbering, key=lambda path: (numbering[path], path.name))
    numbers, counts = Counter(number for number, _ in numbering.values()), {count for _, count in numbering.values()}
    total = max(counts, default=0)
    wrong = [f"{number} is missing" for number in range(total) if number not in numbers]
    wrong += [f"{number} appears twice" for number in sorted(numbers) if numbers[number] > 1]
    if len(counts) > 1:
        wrong.append("some belong to another export")
    if total and wrong:
        problem = f"of its {total} shards, numbered from 0, {', '.join(wrong[:4])}"
        raise CorpusError(f"{problem}; copy all shards of one export there, and no others", file=shards[0])
    return tuple(shards)
