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
from dataclasses import dataclass
from time import monotonic
from typing import Any

Work = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Job:
    """What a request asks the worker for.

    items  what the work takes, one for each text
    texts  their texts, of which the length tells how long the work takes
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

    def __init__(self, items: Sequence[Any], sizes: Sequence[int]) -> None:
        self.items, self.sizes = items, sizes
        self.results: list[Any] = []
        self.future: Future[list[Any]] = Future()

    @property
    def done(self) -> int:
        return len(self.results)

    def share(self, characters: int) -> int:
        """The end of the next items with `characters` characters in total; at least one item."""
        end = self.done + 1
        left = characters - self.sizes[self.done]
        while end < len(self.items) and self.sizes[end] <= left:
            left -= self.sizes[end]
            end += 1
        return end


class Worker:
    """Runs jobs in a thread of its own, which starts with the first job."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[Work, deque[_Progress]] = {}
        self._budgets: dict[Work, int] = {}
        self._thread: threading.Thread | None = None
        self._closing = False

    @property
    def is_alive(self) -> bool:
        """Whether jobs are run: the thread runs, or the first job will start it."""
        thread = self._thread
        return thread is None or thread.is_alive()

    def submit(self, work: Work, items: Sequence[Any], sizes: Sequence[int]) -> Future[list[Any]]:
        """The results of `work`, one for each item; a job that is cancelled is dropped.

        Raises what `work` raises, as the cause of a RuntimeError if it is not an Exception.
        """
        job = _Progress(items, sizes)
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="isoglot-worker", daemon=True)
                self._thread.start()
            self._queues.setdefault(work, deque()).append(job)
            self._changed.notify()
        return job.future

    def close(self) -> None:
        """End the thread after the slice it is at; jobs that wait are cancelled. Another job starts it again."""
        with self._changed:
            self._closing = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        with self._changed:
            for job in [job for queue in self._queues.values() for job in queue]:
                job.future.cancel()
            self._queues.clear()
            self._thread, self._closing = None, False

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or any(self._queues.values()))
                if self._closing:
                    return
                work, parts = self._take()
            if not parts:
                continue
            began = monotonic()
            self._compute(work, parts)
            self._adapt(work, parts, monotonic() - began)
            with self._changed:
                left = [job for job, _ in parts if job.done < len(job.items) and not job.future.done()]
                self._queues.setdefault(work, deque()).extend(left)

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
