"""Calls of many threads, worked on together: while one batch is encoded, whatever comes in becomes the next."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

TOGETHER = 4096  # texts of one batch, unless a single call has more


class _Job:
    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.done = texts, False
        self.results: Sequence[Any] = ()
        self.error: Exception | None = None


class Batching(Generic[Result]):
    """Calls `work`, which gives one result for each text, from one thread at a time, which holds `lock`.

    There is no thread of its own: the caller who gets the lock works for all that are waiting.
    """

    def __init__(self, work: Callable[[list[str]], Sequence[Result]], lock: Lock) -> None:
        self._work, self._lock = work, lock
        self._waiting: deque[_Job] = deque()

    def __call__(self, texts: Sequence[str]) -> Sequence[Result]:
        """The results of these texts; raises what `work` raises for them."""
        job = _Job(texts)
        self._waiting.append(job)
        with self._lock:
            while not job.done:
                self._round(self._take())
        if job.error is not None:
            raise job.error
        return job.results

    def _take(self) -> list[_Job]:
        jobs = [self._waiting.popleft()]
        size = len(jobs[0].texts)
        while self._waiting and size + len(self._waiting[0].texts) <= TOGETHER:
            jobs.append(self._waiting.popleft())
            size += len(jobs[-1].texts)
        return jobs

    def _round(self, jobs: Sequence[_Job]) -> None:
        try:
            results = self._work([text for job in jobs for text in job.texts])
        except Exception as error:  # handed to the caller whose text it was
            if len(jobs) == 1:
                jobs[0].error, jobs[0].done = error, True
                return
            for job in jobs:
                self._round([job])
            return
        start = 0
        for job in jobs:
            job.results, job.done = results[start : start + len(job.texts)], True
            start += len(job.texts)
