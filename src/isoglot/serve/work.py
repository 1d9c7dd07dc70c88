"""A single thread that does all encoding and searching, in slices that are shared fairly between requests.

The event loop queues jobs and never computes. Jobs that arrive while a slice is computed wait for the next one, which
takes a part of every waiting job: two hundred single queries are encoded together, and a request of two
thousand texts holds up a query for one slice, not for all of its texts. The kinds of work (searches, embeddings) take
turns. A slice is cut by characters, and their number follows the time that slices take: a static model gets through a
million while a transformer on a CPU is at some thousands.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

Work = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Job:
    """What a request asks the worker for.

    items  what the work takes, one for each text
    texts  their texts; longer ones take longer
    size   bytes of the answer, about
    write  makes the answer of the results
    """

    items: Sequence[Any]
    texts: Sequence[str]
    size: int
    write: Callable[[list[Any]], bytes]


SECONDS = 0.1  # target duration of a slice
_FIRST, _LEAST, _MOST = 1 << 12, 1 << 8, 1 << 20  # characters of a slice


class _Progress:
    """Items of one request, of which the first `done` have results, and the future of all results."""

    def __init__(self, work: Work, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.work, self.items, self.sizes = work, items, sizes
        self.results: list[Any] = []
        self.future: Future[list[Any]] = Future()

    @property
    def done(self) -> int:
        return len(self.results)

    def share(self, characters: int) -> int:
        """The end of the next items with `characters` characters in total; at least one item."""
        end = self.done + 1
        remaining = characters - self.sizes[self.done]
        while end < len(self.items) and self.sizes[end] <= remaining:
            remaining -= self.sizes[end]
            end += 1
        return end


class Worker:
    """Runs jobs in a thread of its own, which starts with the first job."""

    def __init__(self) -> None:
        self._arrivals: SimpleQueue[_Progress | None] = SimpleQueue()  # None ends the thread
        self._queues: dict[Work, deque[_Progress]] = {}  # of the thread alone, as all below
        self._budgets: dict[Work, int] = {}
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    @property
    def is_alive(self) -> bool:
        """Whether jobs are run: the thread runs, or the first job will start it."""
        thread = self._thread
        return thread is None or thread.is_alive()

    def submit(self, work: Work, items: Sequence[Any], sizes: Sequence[int]) -> Future[list[Any]]:
        """The results of `work`, one for each item; a job that is cancelled is dropped.

        Raises what `work` raises, as the cause of a RuntimeError if it is not an Exception.
        """
        job = _Progress(work, items, sizes)
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="isoglot-worker", daemon=True)
                self._thread.start()
        self._arrivals.put(job)
        return job.future

    def close(self) -> None:
        """End the thread after the slice it is at; jobs that wait are cancelled. Another job starts it again."""
        with self._starting:
            if self._thread is not None:
                self._arrivals.put(None)
                self._thread.join()
            self._thread = None

    def _run(self) -> None:
        unfinished: list[_Progress] = []
        while self._receive(wait=not unfinished and not any(self._queues.values())):
            for job in unfinished:
                self._queues.setdefault(job.work, deque()).append(job)
            work, parts = self._take()
            unfinished = []
            if parts:
                began = monotonic()
                self._compute(work, parts)
                self._adapt(work, parts, monotonic() - began)
                unfinished = [job for job, _ in parts if job.done < len(job.items) and not job.future.done()]
        for job in [*unfinished, *(job for queue in self._queues.values() for job in queue)]:
            job.future.cancel()
        self._queues.clear()

    def _receive(self, *, wait: bool) -> bool:
        """Queue the jobs that have arrived; wait for one if asked to. False at the end."""
        with suppress(Empty):
            while (job := self._arrivals.get(block=wait)) is not None:
                self._queues.setdefault(job.work, deque()).append(job)
                wait = False
            return False
        return True

    def _take(self) -> tuple[Work, list[tuple[_Progress, int]]]:
        """The kind of work whose turn it is, and parts of its jobs, each with the end of the part."""
        work = next(work for work, queue in self._queues.items() if queue)
        queue = self._queues.pop(work)  # moved to the end of the queue
        self._queues[work] = queue
        budget = self._budgets.get(work, _FIRST)
        share = budget // len(queue)
        parts: list[tuple[_Progress, int]] = []
        while queue and (budget > 0 or not parts):
            job = queue.popleft()
            if job.future.cancelled():
                continue
            end = job.share(share)
            budget -= sum(job.sizes[job.done : end])
            parts.append((job, end))
        return work, parts

    def _compute(self, work: Work, parts: Sequence[tuple[_Progress, int]]) -> None:
        try:
            results = iter(work([item for job, end in parts for item in job.items[job.done : end]]))
        except BaseException as error:  # a panic of tokenizers is not an Exception, and must not end the thread
            if len(parts) > 1:
                for part in parts:
                    self._compute(work, [part])
            elif parts and parts[0][0].future.set_running_or_notify_cancel():
                failure = error
                if not isinstance(error, Exception):
                    failure = RuntimeError(f"the work raised {type(error).__name__}")
                    failure.__cause__ = error
                parts[0][0].future.set_exception(failure)
            return
        for job, end in parts:
            job.results += [next(results) for _ in range(end - job.done)]
            if job.done == len(job.items) and job.future.set_running_or_notify_cancel():
                job.future.set_result(job.results)

    def _adapt(self, work: Work, parts: Sequence[tuple[_Progress, int]], seconds: float) -> None:
        budget = self._budgets.get(work, _FIRST)
        if seconds > 2 * SECONDS:
            self._budgets[work] = max(budget // 2, _LEAST)
        elif seconds < SECONDS / 2 and any(job.done < len(job.items) for job, _ in parts):
            self._budgets[work] = min(budget * 2, _MOST)
