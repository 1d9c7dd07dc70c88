"""Texts to vectors: texts are read in windows, tokenised ahead in a thread, packed by token count, computed, and
reordered.

Only the distinct texts of a window are computed. Texts are sorted by token count, not by characters, because scripts
differ in tokens per character; chunks of similar lengths need little padding. The vectors are those of each sentence
alone, up to rounding. A window is some thousand texts, so that ten million lines need no more memory than their
vectors, and not even that when these go to a file. Windows depend on the texts alone: the same stream is always cut in
the same places, so a resumed encoding equals an uninterrupted one byte for byte.

A thread computes a whole chunk. If all threads shared each matmul, they would wait for each other some hundred times
per chunk: on two cores that was 17 to 40 % slower. Worker processes have one thread each; the parent reads, tokenises
and packs, a worker receives the token ids of a chunk and returns its rows. Chunks do not depend on the number of
threads or workers, nor do the rows, with one exception: all threads share the only chunk of a few texts, which no other
one would occupy, and torch rounds differently then. Workers are spawned, not forked, because threads do not survive a
fork; a script that uses them therefore needs the usual `if __name__ == "__main__":`.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain, count, islice
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isoglot.core.errors import EncoderError, quote
from isoglot.core.processes import WORKER_ENDED, run_ahead, start_worker
from isoglot.core.progress import Progress
from isoglot.data.tokens import Tokens, pack, padding_on
from isoglot.data.vectors import not_finite, unit
from isoglot.model.backend import Backend, Plan, Rows

Blocks = Callable[[Iterable[str]], Iterator[tuple["Window", Rows]]]
Apply = Callable[[Iterable[Tokens]], Iterator[Rows]]  # chunks to raw rows (N, width), in order
_Start = Callable[[Tokens], Callable[[], Rows]]
Cut = Callable[[NDArray[np.integer], int], list[NDArray[np.int64]]]  # lengths and a budget of tokens to rows of chunks

CPU_TOKENS, DEVICE_TOKENS = 512, 32_768  # a chunk that fits a core's cache; one that fills an accelerator
LEAST_TOKENS = 96  # a chunk of fewer spends most of its time on what a chunk costs
STATIC_TOKENS = 262_144  # without padding, chunks only bound the memory of their output
CPU_WINDOW, STATIC_WINDOW, DEVICE_WINDOW = 4_096, 4_096, 65_536  # texts sorted together: a hundred chunks or so
CHARACTERS = 16_777_216  # maximum characters of a window, for very long texts
_PARTS = 8  # chunks of a small window on a CPU, of LEAST_TOKENS each at least
_STEP = 64  # texts between two checks of their length
_AHEAD = 4  # chunks handed out to each worker or accelerator, so that none waits for the parent


# What is requested


def plan(
    model: Backend,
    *,
    normalize_embeddings: bool | None = None,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    precision: str | None = None,
    devices: Iterable[Any] = (),
) -> Plan:
    """Settings of `Model.encode`, checked and completed. `devices`: where it runs, if not where the model is.

    Raises ValueError for an impossible value.
    """
    width = model.dim if truncate_dim is None else truncate_dim
    if not 1 <= width <= model.dim:
        raise ValueError(f"truncate_dim must lie between 1 and the model's {model.dim} dimensions, got {width}")
    for name, value in (("batch_tokens", batch_tokens), ("batch_size", batch_size)):
        if value is not None and not 1 <= value < 1 << 63:
            raise ValueError(f"{name} must be {'at least 1' if value < 1 else 'below 2**63'}, got {value}")
    try:
        kind = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"dtype must be a kind of float, such as float32 or float16, got {quote(dtype)}") from error
    if kind.kind != "f":
        raise ValueError(f"dtype must be a kind of float, such as float32 or float16, got {kind}")
    unit = model.normalizes if normalize_embeddings is None else normalize_embeddings
    place = next(iter(devices), model.device)
    budget, window = STATIC_TOKENS, STATIC_WINDOW
    if model.pads:
        budget, window = (CPU_TOKENS, CPU_WINDOW) if str(place) == "cpu" else (DEVICE_TOKENS, DEVICE_WINDOW)
    settled = model.settle(precision, place)
    return Plan(width, unit, kind.str, batch_tokens or budget, batch_size, window, settled)


def encode(model: Backend, texts: str | Iterable[str], asked: Plan, **engaged: Any) -> Rows:
    """Vectors (N, D) of N texts, or (D,) of a string. `engaged` is passed to `engine`."""
    given = check_texts(texts)
    with engine(model, asked, **engaged) as blocks:
        rows = _to_array(blocks, given, asked) if isinstance(given, Sequence) else _grow_array(blocks, given, asked)
    return rows[0] if isinstance(texts, str) else rows


def encode_tokens(
    model: Backend, texts: str | Iterable[str], asked: Plan, *, prompt: str | None, progress: Progress | None
) -> Any:
    """The states (T, H) of the T tokens of each text, as a list; those of a string alone."""
    model = model.at(asked.precision).evaluating()
    rows: list[Rows] = []
    with closing(windows(check_texts(texts), asked.window, partial(model.tokenize, prompt=prompt))) as parts:  # type: ignore[type-var]
        for part in parts:
            lengths = part.tokens.lengths
            states: list[Any] = [None] * len(lengths)
            for chunk in pack(lengths, asked.budget, most=asked.most, padding=padding_on(model.device)):
                padded = model.states(part.tokens.select(chunk), asked.precision).astype(asked.dtype, copy=False)
                for row, table in zip(chunk.tolist(), padded, strict=True):
                    states[row] = table[: lengths[row]]
            rows += states if part.rows is None else [states[row].copy() for row in part.rows]  # one for each text
            if progress is not None:
                progress(len(rows), None)
    return rows[0] if isinstance(texts, str) else rows


def check_texts(texts: object) -> Iterable[str]:
    """The texts as an iterable of strings. Raises TypeError for anything else than a string or an iterable."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping):
        raise TypeError(f"texts must be a string or an iterable of strings, got {type(texts).__name__}")
    if hasattr(texts, "columns") or hasattr(texts, "column_names"):  # its iterator gives names, or rows
        raise TypeError(f"texts is a table ({type(texts).__name__}); pass one of its columns, such as table['text']")
    return texts


@contextmanager
def engine(
    model: Backend,
    asked: Plan,
    *,
    prompt: str | None = None,
    places: Sequence[Any] = (),
    progress: Progress | None = None,
    share: Callable[[Apply], Apply] | None = None,
) -> Iterator[Blocks]:
    """A function from texts to pairs (window, rows of its texts), one after the other, each in the texts' order.

    `share` makes a function that divides the chunks of a window among several processes, all of which encode the same
    texts, of one that computes chunks in this process.
    """
    model = model.at(asked.precision).evaluating()
    place = str(next(iter(places), model.device))
    cut_padded = cut_small_windows if place == "cpu" else partial(pack, padding=padding_on(place))
    cut = partial(cut_padded if model.pads else cut_runs, most=asked.most)
    tokenize = model.tokenize if prompt is None else partial(model.tokenize, prompt=prompt)
    with run_chunks(model, asked, places) as apply:
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
                    rows = compute_window(part, asked, cut, pads=model.pads, apply=apply, tick=tick)
                    yield part, rows if part.rows is None else rows[part.rows]

        yield blocks


# Where the rows go


def _to_array(blocks: Blocks, texts: Sequence[str], asked: Plan) -> Rows:
    """Texts in memory: duplicates are found among all of them, and each distinct text is encoded at its first place."""
    different, rows = distinct(texts)
    first = None if rows is None else np.unique(rows, return_index=True)[1]
    out: Rows = np.empty((len(texts), asked.width), dtype=asked.dtype)
    done = 0
    for _, vectors in blocks(different):
        stop = done + len(vectors)
        out[slice(done, stop) if first is None else first[done:stop]] = vectors
        done = stop
    if rows is not None and first is not None:
        repeated = np.setdiff1d(np.arange(len(texts)), first, assume_unique=True)
        for start in range(0, len(repeated), asked.window):  # in parts, so that no second array of this size is made
            part = repeated[start : start + asked.window]
            out[part] = out[first[rows[part]]]
    return out


def _grow_array(blocks: Blocks, texts: Iterable[str], asked: Plan) -> Rows:
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
        yield _window(*head[0], tokenize)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="tokenize") as pool:
        yield from run_ahead(lambda part: pool.submit(_window, *part, tokenize).result, 2, chain(head, parts))


def distinct(texts: Sequence[str], first: int = 0) -> tuple[list[str], NDArray[np.int64] | None]:
    """The distinct texts in order of first appearance, and which of them each text is; None if all differ.

    `first` is the number of the first text, for the message of the TypeError that is raised for another type.
    """
    if not set(map(type, texts)) <= {str}:  # the loop below is slow and rarely needed
        for row, text in enumerate(texts, first):
            if not isinstance(text, str):
                raise TypeError(f"text {row} is {quote(text)}, a {type(text).__name__}; every text must be a string")
    place = dict.fromkeys(texts, 0)
    if len(place) == len(texts):
        return list(texts), None
    different = list(place)
    place.update(zip(different, range(len(different)), strict=True))
    return different, np.fromiter(map(place.__getitem__, texts), dtype=np.int64, count=len(texts))


def _window(first: int, texts: list[str], tokenize: Callable[[list[str]], Tokens]) -> Window:
    different, rows = distinct(texts, first)
    return Window(texts, different, rows, tokenize(different))


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


def compute_window(
    part: Window, asked: Plan, cut: Cut, *, pads: bool, apply: Apply, tick: Callable[[int], None]
) -> Rows:
    """Rows (N, width) of the N distinct texts of a window in their order, normalised if the plan requests it.

    `cut` divides rows of some lengths into chunks; `tick` is called with the size of every finished chunk. Raises
    EncoderError, naming the text, for a vector that is not finite.
    """
    tokens, lengths = part.tokens, part.tokens.lengths
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


def cut_small_windows(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """As `pack`, but a small window is cut into several chunks: they need less padding and occupy more threads.

    Their number does not depend on that of the threads, processes or ranks.
    """
    return pack(lengths, min(budget, max(LEAST_TOKENS, int(lengths.sum()) // _PARTS)), most=most)


def cut_runs(lengths: NDArray[np.integer], budget: int, *, most: int | None = None) -> list[NDArray[np.int64]]:
    """The rows in their order, cut where the tokens so far pass another `budget`, and at `most` rows."""
    rounds = lengths.cumsum() // budget
    runs: list[NDArray[np.int64]] = np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(rounds)) + 1)
    if most is not None:
        runs = [run[start : start + most] for run in runs for start in range(0, len(run), most)]
    return [run for run in runs if len(run)]


def _pieces(tokens: Tokens, chunks: list[NDArray[np.int64]], pads: bool) -> Iterator[Tokens]:
    """The tokens of each chunk. Sorted once, so that a chunk is a slice and not a gather."""
    if pads:
        tokens = tokens.select(np.concatenate([np.empty(0, np.int64), *chunks]))
    ends = np.cumsum([len(chunk) for chunk in chunks])
    lengths = np.split(tokens.lengths, ends[:-1])
    ids = np.split(tokens.ids, np.cumsum([counts.sum() for counts in lengths])[:-1])
    return map(Tokens, ids, lengths)


def _require_finite(rows: Rows, chunk: NDArray[np.int64], texts: list[str], why: str) -> None:
    if len(bad := not_finite(rows)):
        text = texts[chunk[bad[0]]]
        raise EncoderError(f"the encoder's vector of {text[:60]!r} is not finite (NaN or infinity): {why}")


# Chunks in parallel


@contextmanager
def run_chunks(model: Backend, plan: Plan, places: Sequence[Any]) -> Iterator[Apply]:
    """A function from chunks to rows: in this process if `places` is empty, else with a worker for each place.

    This process computes as many chunks in parallel as the model has threads. Raises EncoderError when a worker dies.
    """
    if places:
        with _start_workers(model, plan, places) as start:
            yield partial(run_ahead, start, _AHEAD * len(places))
        return
    if model.overlaps:  # while the host handles the rows of one chunk, the accelerator computes the next ones
        yield partial(run_ahead, lambda piece: model.begin(piece, plan), _AHEAD)
        return
    threads = model.threads
    with ExitStack() as stack:

        def work(piece: Tokens) -> Rows:
            return model.begin(piece, plan)()

        @cache
        def pool_of_threads() -> ThreadPoolExecutor:
            pool = model.start_threads(threads)
            stack.callback(pool.shutdown, cancel_futures=True)
            return pool

        def apply(pieces: Iterable[Tokens]) -> Iterator[Rows]:
            pieces = iter(pieces)
            head = list(islice(pieces, 2))
            pieces = chain(head, pieces)
            if threads == 1 or len(head) == 1:  # a single chunk is computed by the calling thread
                return map(work, pieces)
            return run_ahead(lambda piece: pool_of_threads().submit(work, piece).result, _AHEAD * threads, pieces)

        yield apply


@contextmanager
def _start_workers(model: Backend, plan: Plan, places: Sequence[Any]) -> Iterator[_Start]:
    """A function that hands a chunk to the next worker; call its result to wait for the rows."""
    context = multiprocessing.get_context("spawn")
    workers: list[tuple[Any, Any]] = []
    turns = count()
    with ExitStack() as stack:
        for place in places:
            pieces, (answers, answering) = context.Queue(), context.Pipe(duplex=False)
            process = context.Process(target=_serve, args=(model, plan, str(place), pieces, answering))
            process.start()
            for end in (process.join, process.terminate, pieces.cancel_join_thread):  # in the opposite order
                stack.callback(end)
            answering.close()  # or the end of the process would not end its answers
            workers.append((pieces, answers))

        def start(piece: Tokens) -> Callable[[], Rows]:
            pieces, answers = workers[next(turns) % len(workers)]
            pieces.put(piece)
            return partial(_answer, answers)

        yield start


def _answer(answers: Any) -> Rows:
    try:
        answer = answers.recv()
    except (EOFError, OSError) as error:
        raise EncoderError(WORKER_ENDED) from error
    if isinstance(answer, Exception):
        raise answer
    rows: Rows = answer
    return rows


def _serve(model: Backend, plan: Plan, place: str, pieces: Any, answers: Any) -> None:
    """In a worker process: compute chunks in their order; an accelerator has up to _AHEAD of them, while some wait."""
    start_worker()
    model = model.move(place)
    ahead = _AHEAD if model.overlaps else 1
    queued: deque[Callable[[], Rows]] = deque()
    while True:
        try:
            while queued and (len(queued) == ahead or pieces.empty()):
                answers.send(queued.popleft()())
            queued.append(model.begin(pieces.get(), plan))
        except Exception as error:
            answers.send(error)
