"""Texts to vectors: tokenised in a thread ahead, distinct sentences only, packed by token count, scattered into rows.

Sorting by token count rather than by characters matters for languages whose characters carry more: a chunk of like
lengths spends its time on tokens, not on padding. The vectors are those of one sentence at a time, up to rounding.
What is sorted together is a window of some thousand texts, so that ten million lines need no more memory than their
vectors, and not even that when these go to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from isoglot.data.files import atomic_write
from isoglot.encoders import vectorfile
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.computing import Plan, compute, plan
from isoglot.encoders.streaming import Window, distinct, windows
from isoglot.encoders.workers import applying, devices

Progress = Callable[[int, int], None]
Blocks = Callable[[Iterable[str]], Iterator[tuple[Window, NDArray[np.floating]]]]


def encode(
    encoder: Encoder,
    texts: str | Iterable[str],
    *,
    prompt: str | None = None,
    normalize: bool | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    precision: str = "fp32",
    workers: int | Sequence[str | torch.device] = 1,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> NDArray[np.floating]:
    """Vectors (N, D) of N texts in their order, or (D,) of a single string; no texts give (0, D).

    texts         a string, a list, or any iterable, which is read once and never held as a whole
    prompt        put before every text instead of the encoder's own; None keeps the encoder's, "" uses none
    normalize     scale every vector to length one, after truncation, a zero vector stays zero; None: as the model was
                  saved, that is, if a Normalize module ends it
    batch_tokens  padded tokens per chunk; None: 512 on a CPU, tens of thousands elsewhere, more without padding
    truncate_dim  keep only the first so many dimensions
    precision     fp32, bf16, int8 (CPU, transformers, extra `onnx`), or auto: bf16 where the hardware has it, else fp32
    workers       number of processes, each with one thread, or a list of devices, a process for each
    out           a .npy file to write, atomically, and to give back as a read-only memory map
    progress      called with (distinct sentences done, distinct sentences in all) after every chunk; of an iterable
                  that is no list, "in all" is what has been read

    The encoder is in evaluation mode meanwhile, whatever its mode is, and nothing in it is changed: any number of
    threads may encode with it at once, each with its own prompt and settings.

    Raises ValueError for a text that is no string or an impossible setting, EncoderError if the encoder gives a vector
    that is not finite, cannot be had in this precision, or a worker dies.
    """
    single = isinstance(texts, str)
    given = [texts] if isinstance(texts, str) else texts
    settings = {"normalize": normalize, "batch_tokens": batch_tokens, "truncate_dim": truncate_dim, "dtype": dtype}
    encoder = evaluating(encoder)
    places = devices(encoder, workers)
    asked = plan(encoder, **settings, precision=precision, devices=places)  # type: ignore[arg-type]
    with engine(encoder, asked, prompt=prompt, places=places, progress=progress) as blocks:
        if out is not None:
            return _to_file(blocks, given, asked, Path(out))
        rows = _to_array(blocks, given, asked) if isinstance(given, Sequence) else _grown(blocks, given, asked)
    return rows[0] if single else rows


@contextmanager
def engine(
    encoder: Encoder,
    asked: Plan,
    *,
    prompt: str | None = None,
    places: Sequence[torch.device] = (),
    progress: Progress | None = None,
) -> Iterator[Blocks]:
    """What turns texts into (window, rows of its texts), one after the other, each window's texts in their order."""
    if asked.precision == "int8":
        from isoglot.encoders.int8 import quantize

        encoder = quantize(encoder)
    encoder = evaluating(encoder)
    tokenize = encoder.tokenize if prompt is None else partial(encoder.tokenize, prompt=prompt)
    with applying(encoder, asked, places) as apply:

        def blocks(texts: Iterable[str]) -> Iterator[tuple[Window, NDArray[np.floating]]]:
            total = len(texts) if isinstance(texts, Sequence) else None
            done = read = 0

            def tick(count: int) -> None:
                nonlocal done
                done += count
                if progress is not None:
                    progress(done, read if total is None else total)

            with closing(windows(texts, asked.window, tokenize)) as parts:  # type: ignore[type-var]
                for part in parts:
                    read += len(part.distinct)
                    rows = compute(part.tokens, part.distinct, asked, pads=encoder.pads, apply=apply, tick=tick)
                    yield part, rows if part.rows is None else rows[part.rows]

        yield blocks


def _to_array(blocks: Blocks, texts: Sequence[str], asked: Plan) -> NDArray[np.floating]:
    """Texts that are held anyway: repetitions are found among all of them, and rows go where they first appear."""
    found, rows = distinct(texts)
    first = None if rows is None else np.unique(rows, return_index=True)[1]
    out: NDArray[np.floating] = np.empty((len(texts), asked.width), dtype=asked.dtype)
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


def _grown(blocks: Blocks, texts: Iterable[str], asked: Plan) -> NDArray[np.floating]:
    """Texts of unknown number: the array grows in place, where the system can move its pages without a copy."""
    out: NDArray[np.floating] = np.empty((0, asked.width), dtype=asked.dtype)
    done = 0
    for _, vectors in blocks(texts):
        if done + len(vectors) > len(out):
            out.resize((max(done + len(vectors), len(out) * 5 // 4), asked.width), refcheck=False)
        out[done : done + len(vectors)] = vectors
        done += len(vectors)
    out.resize((done, asked.width), refcheck=False)
    return out


def _to_file(blocks: Blocks, texts: Iterable[str], asked: Plan, path: Path) -> NDArray[np.floating]:
    with atomic_write(path, binary=True) as stream:
        stream.write(bytes(vectorfile.HEADER))
        count = 0
        for _, vectors in blocks(texts):
            stream.write(vectors.data if vectors.size else b"")
            count += len(vectors)
        stream.seek(0)
        stream.write(vectorfile.header(count, asked.width, asked.dtype))
    mapped: NDArray[np.floating] = np.load(path, mmap_mode="r")
    return mapped
