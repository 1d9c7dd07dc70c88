"""Texts to vectors: texts are read in windows, tokenised ahead in a thread, packed by token count, computed, and
reordered.

Only the distinct texts of a window are computed. Texts are sorted by token count, not by characters, because scripts
differ in tokens per character; chunks of similar lengths need little padding. The vectors are those of each sentence
alone, up to rounding. A window is some thousand texts, so that ten million lines need no more memory than their
vectors, and not even that when these go to a file. Windows depend on the texts alone: the same stream is always cut in
the same places, so a resumed encoding equals an uninterrupted one byte for byte.

A thread computes a whole chunk. If all of torch's threads shared each matmul, they would wait for each other some
hundred times per chunk: on two cores that was 17 to 40 % slower. Worker processes have one thread each; the parent
reads, tokenises and packs, a worker receives the token ids of a chunk and returns its rows. Chunks and rows do not
depend on the number of threads or workers. Weights on a CPU are shared memory, not copies. Workers are spawned, not
forked, because torch's threads do not survive a fork; a script that uses them therefore needs the usual `if __name__ ==
"__main__":`.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch import Tensor

from isoglot.data.batch import Tokens, pack
from isoglot.data.vectors import not_finite, unit
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.device import autocast, resolve, settle
from isoglot.errors import EncoderError
from isoglot.processes import start_worker
from isoglot.progress import Progress

Rows = NDArray[np.floating]
Blocks = Callable[[Iterable[str]], Iterator[tuple["Window", Rows]]]
Apply = Callable[[Iterable[Tokens]], Iterator[Rows]]  # chunks to raw rows (N, width), in order
Cut = Callable[[NDArray[np.integer], int], list[NDArray[np.int64]]]  # lengths and a budget of tokens to rows of chunks

CPU_TOKENS, DEVICE_TOKENS = 512, 32_768  # a chunk that fits a core's cache; one that fills an accelerator
LEAST_TOKENS = 96  # a chunk of fewer spends most of its time on what a chunk costs
STATIC_TOKENS = 262_144  # without padding, chunks only bound the memory of their output
CPU_WINDOW, STATIC_WINDOW, DEVICE_WINDOW = 4_096, 4_096, 65_536  # texts sorted together: a hundred chunks or so
CHARACTERS = 16_777_216  # maximum characters of a window, for very long texts
_PARTS = 8  # chunks of a small window on a CPU, of LEAST_TOKENS each at least
_STEP = 64  # texts between two checks of their length
_AHEAD = 4  # chunks handed out to each worker or accelerator, so that none waits for the parent

_alone = threading.RLock()  # for encoders whose forward is not thread-safe
_starting = threading.Lock()
_task: partial[Rows]  # in a worker process: its encoder and plan, set when it starts


def _forked() -> None:
    """In a forked process: torch's other threads, and those that held these locks, are gone."""
    global _alone, _starting
    _alone, _starting = threading.RLock(), threading.Lock()
    torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_forked)


# What is requested


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of an encoding, complete. `window` and `most` count texts, `budget` padded tokens."""

    width: int
    unit: bool
    dtype: str
    budget: int
    most: int | None
    window: int
    precision: str


def plan(
    encoder: Encoder,
    *,
    normalize_embeddings: bool | None = None,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    precision: str | None = None,
    devices: Iterable[torch.device] = (),
) -> Plan:
    """Settings of `Encoder.encode`, checked and completed. `devices`: where it runs, if not where the encoder is.

    Raises ValueError for an impossible value.
    """
    width = encoder.dim if truncate_dim is None else truncate_dim
    if not 1 <= width <= encoder.dim:
        raise ValueError(f"truncate_dim must lie between 1 and the encoder's {encoder.dim} dimensions, got {width}")
    for name, value in (("batch_tokens", batch_tokens), ("batch_size", batch_size)):
        if value is not None and not 1 <= value < 1 << 63:
            raise ValueError(f"{name} must be {'at least 1' if value < 1 else 'below 2**63'}, got {value}")
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"dtype must be a kind of float, such as float32 or float16, got {kind}")
    unit = encoder.normalizes if normalize_embeddings is None else normalize_embeddings
    where = next(iter(devices), encoder.device)
    budget, window = STATIC_TOKENS, STATIC_WINDOW
    if encoder.pads:
        budget, window = (CPU_TOKENS, CPU_WINDOW) if where.type == "cpu" else (DEVICE_TOKENS, DEVICE_WINDOW)
    return Plan(width, unit, kind.str, batch_tokens or budget, batch_size, window, settle(precision, where))


def places(encoder: Encoder, workers: int | Sequence[str | torch.device]) -> list[torch.device]:
    """The device of each worker process; none: this process.

    Raises ValueError for less than one worker, EncoderError for a device that is absent.
    """
    if isinstance(workers, int):
        if workers < 1:
            raise ValueError(f"workers must be at least 1, or a list of devices, got {workers}")
        return [encoder.device] * workers if workers > 1 else []
    if isinstance(workers, str) or not workers:
        raise ValueError(f"workers must be a number or a list of devices such as ['cuda:0', 'cuda:1'], got {workers!r}")
    return [resolve(name) for name in workers]


def encode(encoder: Encoder, texts: str | Iterable[str], asked: Plan, **engaged: Any) -> Rows:
    """Vectors (N, D) of N texts, or (D,) of a string. `engaged` is passed to `engine`."""
    single = isinstance(texts, str)
    given = checked(texts)
    with engine(encoder, asked, **engaged) as blocks:
        rows = _to_array(blocks, given, asked) if isinstance(given, Sequence) else _grown(blocks, given, asked)
    return rows[0] if single else rows


def checked(texts: object) -> Iterable[str]:
    """The texts as an iterable of strings. Raises TypeError for anything else than a string or an iterable."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping):
        raise TypeError(f"texts must be a string or an iterable of strings, got {type(texts).__name__}")
    if hasattr(texts, "columns") or hasattr(texts, "column_names"):  # its iterator gives names, or rows
        raise TypeError(f"texts is a table ({type(texts).__name__}); pass one of its columns, such as table['text']")
    if hasattr(texts, "to_pylist"):  # a column of PyArrow, whose items are not strings
        values: list[str] = texts.to_pylist()
        return values
    return texts


@contextmanager
def engine(
    encoder: Encoder,
    asked: Plan,
    *,
    prompt: str | None = None,
    places: Sequence[torch.device] = (),
    progress: Progress | None = None,
    share: Callable[[Apply], Apply] | None = None,
) -> Iterator[Blocks]:
    """A function from texts to pairs (window, rows of its texts), one after the other, each in the texts' order.

    `share` makes a function that divides the chunks of a window among several processes, all of which encode the same
    texts, of one that computes chunks in this process.
    """
    if asked.precision == "int8":
        from isoglot.encoders.int8 import quantize

        encoder = quantize(encoder)
    encoder = evaluating(encoder)
    where = next(iter(places), encoder.device)
    cut = partial(runs if not encoder.pads else _finely if where.type == "cpu" else pack, most=asked.most)
    tokenize = encoder.tokenize if prompt is None else partial(encoder.tokenize, prompt=prompt)
    with _applying(encoder, asked, places) as apply:
        if share is not None:
            apply = share(apply)

        def blocks(texts: Iterable[str]) -> Iterator[tuple[Window, Rows]]:
            total = len(texts) if isinstance(texts, Sequence) else None
            done = 0

            def tick(count: int) -> None:
                nonlocal done
                done += count
                if progress is not None:
                    progress(done, total)

            with closing(windows(texts, asked.window, tokenize)) as parts:  # type: ignore[type-var]
                for part in parts:
                    rows = _computed(part, asked, cut, pads=encoder.pads, apply=apply, tick=tick)
                    yield part, rows if part.rows is None else rows[part.rows]

        yield blocks


# Where the rows go


def _to_array(blocks: Blocks, texts: Sequence[str], asked: Plan) -> Rows:
    """Texts in memory: duplicates are found among all of them, and each distinct text is encoded at its first place."""
    found, rows = distinct(texts)
    first = None if rows is None else np.unique(rows, return_index=True)[1]
    out: Rows = np.empty((len(texts), asked.width), dtype=asked.dtype)
    done = 0
    for _, vectors in blocks(found):
        stop = done + len(vectors)
        out[slice(done, stop) if first is None else first[done:stop]] = vectors
        done = stop
    if rows is not None and first is not None:
        repeated = np.setdiff1d(np.arange(len(texts)), first, assume_unique=True)
        for start in range(0, len(repeated), asked.window):  # in parts, so that no second array of this size is made
            part = repeated[start : start + asked.window]
            out[part] = out[first[rows[part]]]
    return out


def _grown(blocks: Blocks, texts: Iterable[str], asked: Plan) -> Rows:
    """Texts of unknown number: the array grows in place, where the system can move its pages without a copy."""
    out: Rows = np.empty((0, asked.width), dtype=asked.dtype)
    done = 0
    for _, vectors in blocks(texts):
        if done + len(vectors) > len(out):
            out.resize((max(done + len(vectors), len(out) * 5 // 4), asked.width), refcheck=False)
        out[done : done + len(vectors)] = vectors
        done += len(vectors)
    out.resize((done, asked.width), refcheck=False)
    return out


# Texts to windows


@dataclass(frozen=True, slots=True)
class Window:
    """Texts in their order, the distinct ones, which of these each text is (None: all differ), and their tokens."""

    texts: list[str]
    distinct: list[str]
    rows: NDArray[np.int64] | None
    tokens: Tokens


def windows(texts: Iterable[str], size: int, tokenize: Callable[[list[str]], Tokens]) -> Iterator[Window]:
    """Windows of at most `size` texts, tokenised one ahead of the caller. Raises TypeError for texts of other types.

    At most three windows are in memory: one being computed, one being tokenised, one being read.
    """
    parts = _cut(texts, size)
    head = list(islice(parts, 2))
    if len(head) == 1:  # a few texts: starting a thread would take longer than a static encoder needs for one of them
        yield _window(head[0][1], head[0][0], tokenize)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
        waiting: deque[Future[Window]] = deque()
        for first, part in chain(head, parts):
            waiting.append(pool.submit(_window, part, first, tokenize))
            if len(waiting) > 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def distinct(texts: Sequence[str], first: int = 0) -> tuple[list[str], NDArray[np.int64] | None]:
    """The distinct texts in order of first appearance, and which of them each text is; None if all differ.

    `first` is the number of the first text, for the message of the TypeError that is raised for another type.
    """
    if not set(map(type, texts)) <= {str}:  # the loop below is slow and rarely needed
        for row, text in enumerate(texts, first):
            if not isinstance(text, str):
                raise TypeError(f"text {row} is {text!r}, of type {type(text).__name__}; every text must be a string")
    place = dict.fromkeys(texts, 0)
    if len(place) == len(texts):
        return list(texts), None
    found = list(place)
    place.update(zip(found, range(len(found)), strict=True))
    return found, np.fromiter(map(place.__getitem__, texts), dtype=np.int64, count=len(texts))


def _window(texts: list[str], first: int, tokenize: Callable[[list[str]], Tokens]) -> Window:
    found, rows = distinct(texts, first)
    return Window(texts, found, rows, tokenize(found))


def _cut(texts: Iterable[str], size: int) -> Iterator[tuple[int, list[str]]]:
    """(number of the first text, texts), ended by `size` or, checked every 64 texts, by CHARACTERS."""
    source, first = iter(texts), 0
    part: list[str] = []
    length = 0
    while step := list(islice(source, min(_STEP, size - len(part)))):
        part += step
        length += sum(len(text) for text in step if isinstance(text, str))
        if len(part) == size or length >= CHARACTERS:
            yield first, part
            first, part, length = first + len(part), [], 0
    if part:
        yield first, part


# Windows to rows


def _computed(part: Window, asked: Plan, cut: Cut, *, pads: bool, apply: Apply, tick: Callable[[int], None]) -> Rows:
    """Rows (N, width) of the N distinct texts of a window in their order, normalised if the plan requests it.

    `cut` divides rows of some lengths into chunks; `tick` is called with the size of every finished chunk. Raises
    EncoderError, naming the text, for a vector that is not finite.
    """
    tokens, lengths = part.tokens, part.tokens.lengths.numpy()
    chunks = cut(lengths, asked.budget)
    out: Rows = np.zeros((len(tokens), asked.width), dtype=asked.dtype)
    for chunk, rows in zip(chunks, apply(_pieces(tokens, chunks, pads)), strict=True):
        damaged = "the weights are damaged or training diverged; use an earlier checkpoint"
        _require_finite(rows, chunk, part.distinct, damaged)
        with np.errstate(over="ignore"):  # overflow is an error below
            out[chunk] = unit(rows) if asked.unit else rows
        _require_finite(out[chunk], chunk, part.distinct, f"it does not fit {out.dtype}; use a wider dtype")
        tick(len(chunk))
    return out


def _finely(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """As `pack`, but a small window is cut into several chunks: they need less padding and occupy more threads.

    Their number does not depend on that of the threads, processes or ranks, and so the vectors do not either.
    """
    return pack(lengths, min(budget, max(LEAST_TOKENS, int(lengths.sum()) // _PARTS)), most=most)


def runs(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """The rows in their order, cut where the tokens so far pass another `budget`, and at `most` rows."""
    rounds = lengths.cumsum() // budget
    found: list[NDArray[np.int64]] = np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(rounds)) + 1)
    if most is not None:
        found = [run[start : start + most] for run in found for start in range(0, len(run), most)]
    return [run for run in found if len(run)]


def _pieces(tokens: Tokens, chunks: list[NDArray[np.int64]], pads: bool) -> Iterator[Tokens]:
    """The tokens of each chunk. Sorted once, so that a chunk is a slice and not a gather."""
    if pads:
        tokens = tokens.select(torch.from_numpy(np.concatenate([np.empty(0, np.int64), *chunks])))
    lengths = torch.split(tokens.lengths, [len(chunk) for chunk in chunks])
    ids = torch.split(tokens.ids, [int(counts.sum()) for counts in lengths])
    return map(Tokens, ids, lengths)


def _require_finite(rows: Rows, chunk: NDArray[np.int64], texts: list[str], why: str) -> None:
    if len(bad := not_finite(rows)):
        text = texts[chunk[bad[0]]]
        raise EncoderError(f"the encoder's vector of {text[:60]!r} is not finite (NaN or infinity): {why}")


def _applied(encoder: Encoder, asked: Plan, piece: Tokens) -> Rows:
    """The raw rows (N, width) of one chunk, in float32."""
    return _begun(encoder, asked, piece)()


def _begun(encoder: Encoder, asked: Plan, piece: Tokens) -> Callable[[], Rows]:
    """A chunk that is being computed; call the result to wait for its rows. Only an accelerator makes one wait."""
    device = encoder.device
    with torch.inference_mode(), autocast(asked.precision, device), nullcontext() if encoder.concurrent else _alone:
        rows: Tensor = encoder(piece)[:, : asked.width].float().to("cpu", non_blocking=True)
    copied = None if device.type == "cpu" else torch.Event(device)
    if copied is not None:  # by default on the stream of the current device, which may be another one
        copied.record(torch.accelerator.current_stream(device))

    def finish() -> Rows:
        if copied is not None:
            copied.synchronize()
        found: Rows = rows.numpy()
        return found

    return finish


def _overlapped(encoder: Encoder, asked: Plan, pieces: Iterable[Tokens]) -> Iterator[Rows]:
    """The rows of each chunk: while the host handles those of one, the accelerator computes the next ones."""
    waiting: deque[Callable[[], Rows]] = deque()
    for piece in pieces:
        waiting.append(_begun(encoder, asked, piece))
        if len(waiting) == _AHEAD:
            yield waiting.popleft()()
    while waiting:
        yield waiting.popleft()()


# Chunks in parallel


@contextmanager
def _applying(encoder: Encoder, plan: Plan, places: Sequence[torch.device]) -> Iterator[Apply]:
    """A function from chunks to rows: in this process if `places` is empty, else with a worker for each place.

    This process computes as many chunks in parallel as torch has threads, if the encoder is thread-safe. Raises
    EncoderError when a worker dies.
    """
    if not places and encoder.device.type != "cpu":
        yield partial(_overlapped, encoder, plan)
        return
    if not places:
        with _threading(encoder, partial(_applied, encoder, plan)) as apply:
            yield apply
        return
    from torch import multiprocessing

    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    for place in places:
        queue.put(str(place))
    pool = ProcessPoolExecutor(len(places), context, initializer=_start, initargs=(encoder, plan, queue))

    def submit(piece: Tokens) -> Future[Rows]:
        return pool.submit(_work, piece.ids.numpy(), piece.lengths.numpy())

    try:
        yield partial(_spread, submit, _AHEAD * len(places))
    except BrokenProcessPool as error:
        raise EncoderError(
            "a worker process ended before its work was done: possibly out of memory, or the script lacks "
            '`if __name__ == "__main__":`; use fewer workers'
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _threading(encoder: Encoder, work: Callable[[Tokens], Rows]) -> Iterator[Apply]:
    """As many threads as torch has, each with one of torch's; a single chunk is computed with all of them."""
    with _starting:  # a thread's first look at the setting, while a pool starts, would find that of the pool
        threads = torch.get_num_threads() if encoder.concurrent else 1
    if threads == 1:
        yield partial(map, work)
        return
    with ExitStack() as stack:
        pool: ThreadPoolExecutor | None = None

        def apply(pieces: Iterable[Tokens]) -> Iterator[Rows]:
            nonlocal pool
            rest = iter(pieces)
            head = list(islice(rest, 2))
            if len(head) == 1:
                return map(work, head)
            made = pool = pool or single_threads(threads)
            stack.callback(made.shutdown, cancel_futures=True)
            return _spread(lambda piece: made.submit(work, piece), _AHEAD * threads, chain(head, rest))

        yield apply


def single_threads(count: int) -> ThreadPoolExecutor:
    """A pool of `count` threads that compute with one of torch's threads each; the caller keeps as many as it has."""
    pool = ThreadPoolExecutor(count, "isoglot-encode")
    started = threading.Barrier(count + 1)

    def start() -> None:
        torch.get_num_threads()  # the first call in a thread copies the global setting; later ones do not
        torch.set_num_threads(1)
        started.wait()

    with _starting:  # a thread's setting is also the initial one of later threads, until it is reset
        own = torch.get_num_threads()
        for _ in range(count):
            pool.submit(start)
        started.wait()
        torch.set_num_threads(own)
    return pool


def _spread(submit: Callable[[Tokens], Future[Rows]], ahead: int, pieces: Iterable[Tokens]) -> Iterator[Rows]:
    waiting: deque[Future[Rows]] = deque()
    for piece in pieces:
        waiting.append(submit(piece))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _start(encoder: Encoder, plan: Plan, places: Any) -> None:
    global _task
    start_worker()
    torch.set_num_threads(1)
    place = torch.device(places.get())
    if place.type != "cpu":  # or every worker would also open a context on the first device
        torch.accelerator.set_device_index(place)
    _task = partial(_applied, encoder.to(place).eval(), plan)


def _work(ids: NDArray[np.int64], lengths: NDArray[np.int64]) -> Rows:
    return _task(Tokens(torch.from_numpy(ids), torch.from_numpy(lengths)))
