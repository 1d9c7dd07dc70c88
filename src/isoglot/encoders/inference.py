"""Texts to vectors: tokenised once, distinct sentences only, packed by token count, scattered into one array.

Sorting by token count rather than by characters matters for languages whose characters carry more: a chunk of like
lengths spends its time on tokens, not on padding. The vectors are those of one sentence at a time, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray
from torch.nn import functional as F

from isoglot.data.batch import Tokens
from isoglot.encoders.base import Encoder
from isoglot.encoders.packing import pack
from isoglot.errors import EncoderError

CPU_TOKENS, DEVICE_TOKENS = 512, 32_768  # a chunk that stays in a core's cache; one that fills an accelerator
STATIC_TOKENS = 262_144  # without padding, chunks only bound the memory of their output


def encode(
    encoder: Encoder,
    texts: str | Iterable[str],
    *,
    prompt: str | None = None,
    normalize: bool | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.floating]:
    """Vectors (N, D) of N texts in their order, or (D,) of a single string; no texts give (0, D).

    prompt        put before every text instead of the encoder's own; None keeps the encoder's, "" uses none
    normalize     scale every vector to length one, after truncation, a zero vector stays zero; None: as the model was
                  saved, that is, if a Normalize module ends it
    batch_tokens  padded tokens per chunk; None: 512 on a CPU, tens of thousands elsewhere, more without padding
    truncate_dim  keep only the first so many dimensions
    progress      called with (distinct sentences done, distinct sentences in all) after every chunk

    Raises ValueError for a text that is no string or an impossible `truncate_dim`, EncoderError if the encoder gives
    a vector that is not finite.
    """
    listed = [texts] if isinstance(texts, str) else list(texts)
    width = encoder.dim if truncate_dim is None else truncate_dim
    if not 1 <= width <= encoder.dim:
        raise ValueError(f"truncate_dim must lie between 1 and the encoder's {encoder.dim} dimensions, got {width}")
    unit = bool(getattr(encoder, "normalizes", False)) if normalize is None else normalize
    distinct, rows = _distinct(listed)
    out: NDArray[np.floating] = np.zeros((len(distinct), width), dtype=dtype)
    done = 0
    with _inference(encoder, prompt):
        for chunk, vectors in _chunks(encoder, encoder.tokenize(distinct), batch_tokens):
            kept = vectors[:, :width].float()
            out[chunk] = (F.normalize(kept, dim=1) if unit else kept).cpu().numpy()
            _refuse_nonfinite(out[chunk], chunk, distinct)
            done += len(chunk)
            if progress is not None:
                progress(done, len(distinct))
    if len(distinct) < len(listed):
        out = out[rows]
    return out[0] if isinstance(texts, str) else out


def _chunks(encoder: Encoder, tokens: Tokens, budget: int | None) -> Iterator[tuple[NDArray[np.int64], torch.Tensor]]:
    """Row indices and their vectors, chunk after chunk. Sorted once, so that a chunk is a slice and not a gather."""
    device = device_of(encoder)
    if encoder.pads:
        chunks = pack(tokens.lengths.numpy(), budget or (CPU_TOKENS if device.type == "cpu" else DEVICE_TOKENS))
        tokens = tokens.select(torch.from_numpy(np.concatenate([np.empty(0, np.int64), *chunks])))
    else:
        chunks = _runs(tokens.lengths.numpy(), budget or STATIC_TOKENS)
    lengths = torch.split(tokens.lengths, [len(chunk) for chunk in chunks])
    ids = torch.split(tokens.ids, [int(counts.sum()) for counts in lengths])
    for chunk, *piece in zip(chunks, ids, lengths, strict=True):
        yield chunk, encoder(Tokens(*piece).to(device))


def _runs(lengths: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """The rows in their order, cut where the tokens so far pass another `budget`."""
    rounds = lengths.cumsum() // budget
    runs: list[NDArray[np.int64]] = np.split(np.arange(len(lengths)), np.flatnonzero(np.diff(rounds)) + 1)
    return [run for run in runs if len(run)]


def device_of(encoder: Encoder) -> torch.device:
    """Where the encoder's weights are; the CPU if it has none."""
    return next((weight.device for weight in encoder.parameters()), torch.device("cpu"))


def _distinct(texts: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    """The distinct texts in order of first appearance, and for each text which of them it is."""
    place: dict[str, int] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"text {row} is {text!r}, of type {type(text).__name__}; every text must be a string")
        place.setdefault(text, len(place))
    return list(place), np.fromiter((place[text] for text in texts), dtype=np.int64, count=len(texts))


@contextmanager
def _inference(encoder: Encoder, prompt: str | None) -> Iterator[None]:
    """No gradient, no dropout, another prompt; afterwards every module is in the mode it was in."""
    modes = [(module, module.training) for module in encoder.modules()]
    own: str = getattr(encoder, "prompt", "")
    encoder.eval()
    try:
        if prompt is not None:
            encoder.prompt = prompt  # type: ignore[assignment]
        with torch.inference_mode():
            yield
    finally:
        encoder.prompt = own  # type: ignore[assignment]
        for module, training in modes:
            module.training = training


def _refuse_nonfinite(vectors: NDArray[np.floating], chunk: NDArray[np.int64], texts: list[str]) -> None:
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        text = texts[chunk[bad[0]]]
        raise EncoderError(
            f"the encoder's vector of {text[:60]!r} is not finite (NaN or infinite as {vectors.dtype}): the weights "
            "are damaged or training diverged; take an earlier checkpoint or a wider dtype"
        )
