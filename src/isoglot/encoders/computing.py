"""Tokens to finished rows: what one encoding is asked for, chunk after chunk, in this process.

A plan is settled once, before the first text is read, so that a wrong argument is told at once, and so that the same
texts are cut into the same chunks however they arrive: from a list, from a stream, or from a file that is resumed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from isoglot.data.batch import Tokens
from isoglot.data.vectors import not_finite, unit
from isoglot.encoders.base import Encoder
from isoglot.encoders.packing import pack
from isoglot.encoders.precision import autocast, settled
from isoglot.errors import EncoderError

CPU_TOKENS, DEVICE_TOKENS = 512, 32_768  # a chunk that stays in a core's cache; one that fills an accelerator
STATIC_TOKENS = 262_144  # without padding, chunks only bound the memory of their output
CPU_WINDOW, STATIC_WINDOW, DEVICE_WINDOW = 4_096, 16_384, 65_536  # texts sorted together: a hundred chunks or so

Apply = Callable[[Iterable[Tokens]], Iterator[NDArray[np.floating]]]  # chunks to raw rows (N, width), in order

_alone = threading.RLock()  # held for a forward that only one thread may be in


@dataclass(frozen=True, slots=True)
class Plan:
    """What an encoding was asked for, nothing left open. `window` is in texts, `budget` in padded tokens."""

    width: int
    unit: bool
    dtype: str
    budget: int
    window: int
    precision: str


def plan(
    encoder: Encoder,
    *,
    normalize: bool | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    precision: str = "fp32",
    devices: Iterable[torch.device] = (),
) -> Plan:
    """Arguments of `encode`, checked and completed. `devices`: where it will run, if not where the encoder is.

    Raises ValueError for an impossible `truncate_dim`, `batch_tokens`, `dtype` or `precision`.
    """
    width = encoder.dim if truncate_dim is None else truncate_dim
    if not 1 <= width <= encoder.dim:
        raise ValueError(f"truncate_dim must lie between 1 and the encoder's {encoder.dim} dimensions, got {width}")
    if batch_tokens is not None and batch_tokens < 1:
        raise ValueError(f"batch_tokens must be at least one token, got {batch_tokens}")
    kind = np.dtype(dtype)
    if kind.kind != "f":
        raise ValueError(f"dtype must be a kind of float, such as float32 or float16, got {kind}")
    unit = encoder.normalizes if normalize is None else normalize
    where = next(iter(devices), encoder.device)
    budget, window = STATIC_TOKENS, STATIC_WINDOW
    if encoder.pads:
        budget, window = (CPU_TOKENS, CPU_WINDOW) if where.type == "cpu" else (DEVICE_TOKENS, DEVICE_WINDOW)
    return Plan(width, unit, kind.str, batch_tokens or budget, window, settled(precision, where))


def applied(encoder: Encoder, asked: Plan, piece: Tokens) -> NDArray[np.floating]:
    """The raw rows (N, width) of one chunk, in float32."""
    device = encoder.device
    with torch.inference_mode(), autocast(asked.precision, device), nullcontext() if encoder.concurrent else _alone:
        rows: NDArray[np.floating] = encoder(piece.to(device))[:, : asked.width].float().cpu().numpy()
    return rows


def compute(
    tokens: Tokens, texts: list[str], asked: Plan, *, pads: bool, apply: Apply, tick: Callable[[int], None]
) -> NDArray[np.floating]:
    """Rows (N, width) of N tokenised texts in their order, of length one if the plan says so.

    `tick` is called with the size of every chunk done. Raises EncoderError, naming the text, for a vector that is not
    finite.
    """
    cut = pack if pads else runs
    chunks = cut(tokens.lengths.numpy(), asked.budget)
    out: NDArray[np.floating] = np.zeros((len(tokens), asked.width), dtype=asked.dtype)
    for chunk, rows in zip(chunks, apply(_pieces(tokens, chunks, pads)), strict=True):
        _refuse_nonfinite(
            rows, chunk, texts, "the weights are damaged or training diverged; take an earlier checkpoint"
        )
        with np.errstate(over="ignore"):  # what does not fit is refused below
            out[chunk] = unit(rows) if asked.unit else rows
        _refuse_nonfinite(out[chunk], chunk, texts, f"it does not fit {out.dtype}; take a wider dtype")
        tick(len(chunk))
    return out


def runs(lengths: NDArray[np.integer], budget: int) -> list[NDArray[np.int64]]:
    """The rows in their order, cut where the tokens so far pass another `budget`."""
    rounds = lengths.cumsum() // budget
    found: list[NDArray[np.int64]] = np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(rounds)) + 1)
    return [run for run in found if len(run)]


def _pieces(tokens: Tokens, chunks: list[NDArray[np.int64]], pads: bool) -> Iterator[Tokens]:
    """The tokens of each chunk. Sorted once, so that a chunk is a slice and not a gather."""
    if pads:
        tokens = tokens.select(torch.from_numpy(np.concatenate([np.empty(0, np.int64), *chunks])))
    lengths = torch.split(tokens.lengths, [len(chunk) for chunk in chunks])
    ids = torch.split(tokens.ids, [int(counts.sum()) for counts in lengths])
    return map(Tokens, ids, lengths)


def _refuse_nonfinite(rows: NDArray[np.floating], chunk: NDArray[np.int64], texts: list[str], why: str) -> None:
    if len(bad := not_finite(rows)):
        text = texts[chunk[bad[0]]]
        raise EncoderError(f"the encoder's vector of {text[:60]!r} is not finite (NaN or infinity): {why}")
