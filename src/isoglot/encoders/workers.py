"""Chunks computed side by side: by the threads of this process, or by several processes, for GPUs one each.

A thread makes a whole chunk. Were all of torch's threads to share each product of it, they would wait for each other
some hundred times a chunk: on two cores that cost a sixth to two fifths of the speed. Processes have one thread each;
the parent reads, tokenises and packs, a worker gets the token ids of a chunk and gives its rows. Chunks are the same
whatever the number of threads or workers, and so are the rows. Weights on a CPU are shared memory, not copies. Workers
are spawned, not forked, because torch's threads do not survive a fork; a script that uses them therefore needs the
usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, islice
from multiprocessing import parent_process
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from isoglot.data.batch import Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.computing import Apply, Plan, applied
from isoglot.errors import EncoderError

_AHEAD = 4  # chunks handed out for each worker, so that none waits for the parent

_starting = threading.Lock()
_task: partial[NDArray[np.floating]]  # of a worker: its encoder and plan, set when it starts


def devices(encoder: Encoder, workers: int | Sequence[str | torch.device]) -> list[torch.device]:
    """Where each worker computes; none: in this process. Raises ValueError for less than one worker."""
    if isinstance(workers, int):
        if workers < 1:
            raise ValueError(f"workers must be at least 1, or a list of devices, got {workers}")
        return [encoder.device] * workers if workers > 1 else []
    if isinstance(workers, str) or not workers:
        raise ValueError(f"workers must be a number or a list of devices such as ['cuda:0', 'cuda:1'], got {workers!r}")
    return [torch.device(name) for name in workers]


@contextmanager
def applying(encoder: Encoder, plan: Plan, places: Sequence[torch.device]) -> Iterator[Apply]:
    """What turns chunks into rows: this process if `places` is empty, else a worker for each place.

    This process computes as many chunks at once as torch has threads, if the encoder allows it. Raises EncoderError
    when a worker dies.
    """
    if not places:
        with _threading(encoder, partial(applied, encoder, plan)) as apply:
            yield apply
        return
    from torch import multiprocessing

    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for place in places:
        queue.put(str(place))
    pool = ProcessPoolExecutor(len(places), context, initializer=_start, initargs=(encoder, plan, queue))

    def submit(piece: Tokens) -> Future[NDArray[np.floating]]:
        return pool.submit(_work, piece.ids.numpy(), piece.lengths.numpy())

    try:
        yield partial(_spread, submit, _AHEAD * len(places))
    except BrokenProcessPool as error:
        raise EncoderError(
            "a worker process ended before its work was done, perhaps for want of memory, or the script lacks "
            '`if __name__ == "__main__":`; take fewer workers'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _threading(encoder: Encoder, work: Callable[[Tokens], NDArray[np.floating]]) -> Iterator[Apply]:
    """A thread for each of torch's, with one of them; a chunk that comes alone has all of them."""
    threads = torch.get_num_threads() if encoder.device.type == "cpu" and encoder.concurrent else 1
    if threads == 1:
        yield partial(map, work)
        return
    with ExitStack() as stack:
        pool: ThreadPoolExecutor | None = None

        def apply(pieces: Iterable[Tokens]) -> Iterator[NDArray[np.floating]]:
            nonlocal pool
            rest = iter(pieces)
            head = list(islice(rest, 2))
            if len(head) == 1:
                return map(work, head)
            made = pool = pool or _single_threads(threads)
            stack.callback(made.shutdown, cancel_futures=True)
            return _spread(lambda piece: made.submit(work, piece), _AHEAD * threads, chain(head, rest))

        yield apply


def _single_threads(count: int) -> ThreadPoolExecutor:
    """A pool of threads that compute with one of torch's threads each; `count` is how many the caller has."""
    pool = ThreadPoolExecutor(count, "isoglot-encode")
    started = threading.Barrier(count + 1)

    def start() -> None:
        torch.get_num_threads()  # the first call in a thread takes over what others have set; later ones leave it be
        torch.set_num_threads(1)
        started.wait()

    with _starting:  # what a thread sets for itself is also what later threads begin with, until it is set back
        for _ in range(count):
            pool.submit(start)
        started.wait()
        torch.set_num_threads(count)
    return pool


def _spread(
    submit: Callable[[Tokens], Future[NDArray[np.floating]]], ahead: int, pieces: Iterable[Tokens]
) -> Iterator[NDArray[np.floating]]:
    waiting: deque[Future[NDArray[np.floating]]] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _start(encoder: Encoder, plan: Plan, places: Any) -> None:
    global _task
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    _task = partial(applied, encoder.to(torch.device(places.get())).eval(), plan)


def _end_with_parent() -> None:
    """A parent that was killed cannot tell its workers, and their queue stays open."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.floating]:
    return _task(Tokens(torch.from_numpy(ids), torch.from_numpy(lengths)))
