"""A long pass in shards on disk, computed by several processes and resumable after an interruption.

Items are assigned to shards by their index alone, each shard is a file that gets its final name when it is complete,
and results are written in the order of the items. So the files are identical for any number of processes and after any
number of interruptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from isoglot.core.processes import run_ahead, start_worker, worker_pool
from isoglot.data.files import atomic_write

T = TypeVar("T")
SHARD, JOB = 2048, 16  # items per shard on disk, items per call of a process
_AHEAD = 4  # calls queued per process, so that none waits

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]


@contextmanager
def mapping(workers: int) -> Iterator[Map]:
    """An order-preserving `map` over `workers` processes; with one worker, in this process.

    Raises `IsoglotError` when a process dies.
    """
    if workers == 1:
        yield map
        return
    with worker_pool(workers, start_worker) as pool:
        yield lambda function, items: run_ahead(
            lambda item: pool.submit(function, item).result, _AHEAD * workers, items
        )


def write_shards(
    folder: Path,
    items: Callable[[], Iterable[T]],
    work: Callable[[Sequence[T]], Sequence[str]],
    spread: Map,
    *,
    size: int = SHARD,
    progress: Callable[[int], None] = lambda _done: None,
) -> None:
    """Write `folder/000000.jsonl`, ... with the lines that `work` returns for the items, `size` items per file.

    Existing files are kept; `folder/complete` is written last, and a folder with it is not changed. `progress` is
    called with the number of items done.
    """
    if (folder / "complete").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    stream, done = iter(items()), 0
    for number, block in enumerate(iter(lambda: list(islice(stream, size)), [])):
        path = folder / f"{number:06d}.jsonl"
        if not path.exists():
            with atomic_write(path) as file:
                jobs_of_block = (block[start : start + JOB] for start in range(0, len(block), JOB))
                for jobs, lines in enumerate(spread(work, jobs_of_block), 1):
                    file.writelines(lines)
                    progress(done + min(jobs * JOB, len(block)))
        done += len(block)
        progress(done)  # also for an existing shard
    with atomic_write(folder / "complete") as file:
        file.write(f"{done}\n")


def read_shards(folder: Path, pattern: str = "*.jsonl") -> Iterator[str]:
    """The lines of all files of a complete pass, in order."""
    for path in sorted(folder.glob(pattern)):
        with path.open(encoding="utf-8", newline="\n") as file:
            yield from file
