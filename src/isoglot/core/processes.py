"""Worker processes: their pool, their first calls, and work that is handed out ahead of its results."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Any, TypeVar

from isoglot.core.errors import IsoglotError

Part = TypeVar("Part")
Result = TypeVar("Result")

WORKER_ENDED = (
    "a worker process ended before its work was done: possibly out of memory, or the script lacks "
    '`if __name__ == "__main__":`; use fewer workers'
)


@contextmanager
def worker_pool(
    count: int, start: Callable[..., None], *arguments: Any, error: type[IsoglotError] = IsoglotError
) -> Iterator[ProcessPoolExecutor]:
    """A pool of worker processes, each of which first calls `start`. Raises `error` when one of them dies.

    They are spawned, not forked, because threads do not survive a fork.
    """
    pool = ProcessPoolExecutor(count, get_context("spawn"), initializer=start, initargs=arguments)
    try:
        yield pool
    except BrokenProcessPool as broken:
        raise error(WORKER_ENDED) from broken
    finally:
        pool.shutdown(cancel_futures=True)


def run_ahead(start: Callable[[Part], Callable[[], Result]], most: int, parts: Iterable[Part]) -> Iterator[Result]:
    """The result of each part, in order; up to `most` are started before the first one is waited for."""
    waiting: deque[Callable[[], Result]] = deque()
    for part in parts:
        waiting.append(start(part))
        if len(waiting) == most:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


def start_worker() -> None:
    """Leave Ctrl-C to the parent, which ends its workers, and end this worker when the parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """End this worker when its parent dies: a killed parent cannot end its workers, and their queue stays open."""
    if (parent := parent_process()) is not None:

        def wait() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=wait, daemon=True).start()
