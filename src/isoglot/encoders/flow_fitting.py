"""Fits a flow to an encoder's vectors of a text, without labels: BERT-flow (Li et al. 2020). The encoder is frozen.

Vectors are computed once, into a temporary file of 4 D bytes a sentence (in `$TMPDIR`), so that memory stays bounded
and an epoch can be drawn in any order. They are the raw ones: a flow behind vectors of length one would be fitted to a
sphere, on which there is no density.

The loss is the negative log-likelihood in bits per dimension. As in the published code: AdamW with 1e-3, weight decay
0.01 and epsilon 1e-6, no warm-up or decay, gradients clipped to norm 1, batches of 32, one epoch.
Deviation: torch's AdamW corrects the bias of its first moments, which that code's does not.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isoglot.encoders.base import Encoder
from isoglot.encoders.behind import Behind
from isoglot.encoders.flow import Flow
from isoglot.errors import EncoderError
from isoglot.progress import Progress

Vectors = NDArray[np.floating]
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Fitted:
    """The encoder with its flow, and how well that fits: mean log-likelihood of a sentence, nats.

    `before` is with actnorm set by the first batch and nothing trained, `after` when all is done.
    """

    encoder: Behind
    sentences: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Training:
    """How a flow is trained; the defaults are BERT-flow's. `seed` draws the order of the sentences."""

    lr: float = 1e-3
    batch: int = 32
    epochs: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.lr > 0 and self.batch >= 2 and self.epochs >= 1):
            raise ValueError(
                f"lr must be above 0, batch at least 2, epochs at least 1, got {self.lr}, {self.batch}, {self.epochs}"
            )


def fit_flow(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    flow: Flow | None = None,
    training: Training = Training(),
    progress: Progress | None = None,
) -> Fitted:
    """The encoder with a flow behind it, fitted to its raw vectors of `texts`; repeated ones count as often.

    flow      a new one of the encoder's width, for other sizes than three levels of three steps of width 32
    progress  as of `encode`: distinct texts done, and in all

    Raises ValueError for fewer than two texts, a dimension without variance, or a flow of another width; EncoderError
    if the flow diverges.
    """
    flow = Flow(encoder.dim) if flow is None else flow
    whole = Behind(encoder, flow)
    with tempfile.TemporaryDirectory(prefix="isoglot-flow-") as folder:
        vectors = encoder.encode(
            texts, normalize_embeddings=False, output=Path(folder) / "vectors.npy", progress=progress
        )
        before, after = train(flow.to(encoder.device), vectors, training)
    return Fitted(whole.eval(), len(vectors), before, after)


def train(flow: Flow, vectors: Vectors, training: Training) -> tuple[float, float]:
    """Train in place on vectors (N, D); the mean log-likelihood before and after, nats. Raises as `fit_flow` does."""
    rng = np.random.default_rng(training.seed)
    adam = torch.optim.AdamW(flow.parameters(), lr=training.lr, weight_decay=0.01, eps=1e-6)
    before = None
    for rows in _batches(len(vectors), training, rng):
        x = torch.from_numpy(np.asarray(vectors[rows], np.float32)).to(flow.device)
        if before is None:
            _refuse_constant(x)
            with torch.no_grad():
                flow.train()(x)  # sets every actnorm
            before = mean_log_likelihood(flow, vectors)
        flow.train()
        loss = -flow.log_likelihood(x).mean() / (flow.dim * math.log(2))
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        adam.step()
    after = mean_log_likelihood(flow, vectors)
    if before is None or not math.isfinite(after):
        raise EncoderError(f"the flow diverged (log-likelihood {after}); take a smaller lr or more varied text")
    return before, after


@torch.no_grad()
def mean_log_likelihood(flow: Flow, vectors: Vectors) -> float:
    """Of vectors (N, D), nats per vector, in blocks; leaves the flow in evaluation mode."""
    flow.eval()
    total = 0.0
    for start in range(0, len(vectors), _BLOCK):
        block = torch.from_numpy(np.array(vectors[start : start + _BLOCK], np.float32))
        total += float(flow.log_likelihood(block.to(flow.device)).double().sum())
    return total / len(vectors)


def _batches(count: int, training: Training, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Rows of each batch; the last of an epoch may be smaller. Raises ValueError if there are not two sentences."""
    if count < 2:
        raise ValueError(f"a flow is fitted to at least 2 sentences, got {count}; give more text")
    for _ in range(training.epochs):
        order = rng.permutation(count)
        for start in range(0, count, training.batch):
            yield order[start : start + training.batch]


def _refuse_constant(x: Tensor) -> None:
    same = (x == x[0]).all(0).nonzero()[:, 0]
    if len(same):
        raise ValueError(
            f"dimension {int(same[0])} has one value in all {len(x)} sentences of the first batch, so it cannot be "
            "scaled; give more varied text, or cut such dimensions by whitening first"
        )
