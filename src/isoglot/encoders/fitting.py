"""Fits a layer to the vectors of a text, without labels, and appends it to the frozen encoder.

**Whitening** (Su et al. 2021): mean zero and covariance I by one linear layer. With mu and Sigma = U Lambda U^T of the
raw vectors of a text, x becomes (x - mu) W, W = U Lambda^(-1/2), of which the first k columns may be kept, those of the
greatest variance. Normalisation to unit length comes after whitening, not before. It is linear, so it is saved as an
ordinary Dense layer, which other programs can run; in a static encoder it is folded into the rows, since the mean of
rows e W + b is the mean of the rows, times W, plus b. Sigma has N - 1 in its denominator, as numpy.cov, which the
published code calls. The sign of an eigenvector is arbitrary: here the entry of largest magnitude is positive, so that
two machines agree. Deviation: directions in which the text does not vary are left out, where the published code divides
by their rounding. Every transformer that ends in a layer norm (g, b) has one, since its states x fulfil sum_i (x_i -
b_i) / g_i = 0.

**A flow** (BERT-flow, Li et al. 2020). Vectors are computed once, into a temporary file of 4 D bytes per sentence (in
`$TMPDIR`), so that memory stays bounded and an epoch can have any order. They are not normalised: unit vectors lie on a
sphere, where a density in D dimensions does not exist. The loss is the negative log-likelihood in bits
per dimension. As in the published code: AdamW with 1e-3, weight decay 0.01 and epsilon 1e-6, no warm-up or decay,
gradients clipped to norm 1, batches of 32, one epoch.
Deviation: torch's AdamW corrects the bias of its first moments, which that code's does not.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from isoglot.core.arguments import NonNegativeInt, PositiveInt, Range, check_arguments
from isoglot.core.errors import EncoderError
from isoglot.core.progress import Progress
from isoglot.encoders.base import Encoder
from isoglot.encoders.layers import Dense, Flow, WithLayer
from isoglot.encoders.static import StaticEncoder
from isoglot.model import Model
from isoglot.model.engine import check_texts, engine, plan

EXACT = "float32"  # on accelerators too: bfloat16 rounds away what nearly equal vectors differ in
FLOOR = 1e-8  # share of the largest eigenvalue; smaller ones are rounding of float32 vectors, not variance


@dataclass(frozen=True, slots=True)
class Moments:
    """Number N of vectors, mean (D,) and covariance (D, D) with N - 1 in the denominator, float64."""

    count: int
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Whitened:
    """The whitened encoder, the number of sentences it was fitted to, and the share of their variance it keeps."""

    encoder: Encoder
    sentences: int
    kept: float

    def __str__(self) -> str:
        return f"{self.sentences:,} sentences, {self.encoder.dim} dimensions with {self.kept:.1%} of the variance"


@check_arguments()
def fit_whitening(
    model: Model, texts: Iterable[str], *, dim: PositiveInt | None = None, progress: Progress | None = None
) -> Whitened:
    """The encoder, whitened by its raw vectors of `texts`; repeated ones count as often.

    dim       number of dimensions to keep (whitening); None: all in which the text varies. Those of greatest variance
              are kept
    progress  as of `encode`: distinct texts done, and in all

    A static encoder comes back as one, its text without tokens still the zero vector, which is then the mean sentence;
    any other gets a dense layer after it. Raises ValueError for a `dim` that is not 1 to the encoder's, if the text
    varies in fewer directions than that, and without a `dim`, if there are no more sentences than dimensions.
    """
    encoder = model.trainable()
    if dim is not None and not 1 <= dim <= encoder.dim:
        raise ValueError(f"dim must lie between 1 and the encoder's {encoder.dim} dimensions, got {dim}")
    with engine(encoder, plan(encoder, normalize_embeddings=False, precision=EXACT), progress=progress) as blocks:
        statistics = moments(rows for _, rows in blocks(check_texts(texts)))
    layer, share = whitening(statistics, dim)
    if isinstance(encoder, StaticEncoder):
        return Whitened(_fold_into_rows(encoder, layer), statistics.count, share)
    return Whitened(WithLayer(encoder, layer.to(encoder.device)).eval(), statistics.count, share)


def moments(blocks: Iterable[NDArray[np.floating]]) -> Moments:
    """Mean and covariance of the rows of all blocks (n, D); one block is held, sums are float64 and about the mean.

    Raises ValueError if there are fewer than two rows.
    """
    count, mean, scatter = 0, np.zeros(1), np.zeros((1, 1))
    for block in blocks:
        rows = np.asarray(block, np.float64)
        more = len(rows)
        if not more:
            continue
        centre = rows.mean(0)
        shift = centre - mean
        scatter = (
            scatter + (rows - centre).T @ (rows - centre) + np.outer(shift, shift) * (count * more / (count + more))
        )
        mean = mean + shift * (more / (count + more))
        count += more
    if count < 2:
        raise ValueError(f"a covariance needs at least 2 sentences, got {count}; pass more text")
    return Moments(count, mean, scatter / (count - 1))


def whitening(statistics: Moments, dim: int | None = None) -> tuple[Dense, float]:
    """The layer (D to `dim`) that whitens rows of these moments, and the share of their variance that it keeps.

    A direction counts if its eigenvalue is above `FLOOR` times the greatest. `dim` and ValueError as above.
    """
    values, vectors = np.linalg.eigh(statistics.covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > FLOOR * max(values[0], np.finfo(np.float64).tiny)).sum())
    if rank < (dim or 1) or (dim is None and statistics.count <= len(values)):
        raise ValueError(
            f"{statistics.count:,} sentences vary in {rank:,} of {len(values):,} directions, too few to whiten "
            f"{dim or 'all'} of them; pass more varied text, or keep fewer dimensions (dim)"
        )
    dim = rank if dim is None else dim
    vectors, scale = vectors[:, :dim], np.sqrt(values[:dim])
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(dim)])
    w = vectors * (signs / scale)
    layer = Dense(len(values), dim, activation="Identity")
    with torch.no_grad():
        layer.linear.weight.copy_(torch.from_numpy(w.T.copy()))
        layer.linear.bias.copy_(torch.from_numpy(-statistics.mean @ w))
    return layer, float(values[:dim].sum() / values.sum())


def _fold_into_rows(encoder: StaticEncoder, layer: Dense) -> StaticEncoder:
    """A new static encoder whose rows have been through the layer."""
    table = encoder.fold()
    with torch.no_grad():
        rows = layer.to(table.device)(table.float())
    same = {name: getattr(encoder, name) for name in ("sparse", "max_length", "prompt", "prompts", "normalizes")}
    fitted = StaticEncoder(rows, encoder.tokenizer, **same)
    fitted.name, fitted.card = encoder.name, encoder.card and encoder.card.derive(encoder.name)
    return fitted.eval()


# Flows

Vectors = NDArray[np.floating]
_BLOCK = 4096


@dataclass(frozen=True, slots=True)
class Fitted:
    """The encoder with its flow, and how well that fits: mean log-likelihood of a sentence, nats.

    `before` is with actnorm set by the first batch and nothing trained, `after` when all is done.
    """

    encoder: WithLayer
    sentences: int
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.sentences:,} sentences, mean log-likelihood {self.before:.1f} -> {self.after:.1f} nats"


@check_arguments()
def fit_flow(
    model: Model,
    texts: Iterable[str],
    *,
    flow: Flow | None = None,
    permutation: str = "random",
    epochs: PositiveInt = 1,
    batch_size: Annotated[int, Range(2)] = 32,
    lr: Annotated[float, Range(1e-9)] = 1e-3,
    seed: NonNegativeInt = 0,
    progress: Progress | None = None,
) -> Fitted:
    """The encoder with a flow after it, fitted to its raw vectors of `texts`; repeated ones count as often.

    flow         a flow of the encoder's width to train; None: three levels of three steps of width 32
    permutation  channel permutations of a new flow: random, as in the paper, or reversed, as in its code
    epochs       number of epochs (flow)
    seed         random seed (flow). Of a new flow, and of the order of the texts
    progress     as of `encode`: distinct texts done, and in all

    Raises ValueError for fewer than two texts, a dimension without variance, impossible settings, or a flow of another
    width; EncoderError if the flow diverges.
    """
    encoder = model.trainable()
    flow = Flow(encoder.dim, permutation=cast(Any, permutation), seed=seed) if flow is None else flow
    whole = WithLayer(encoder, flow)
    with tempfile.TemporaryDirectory(prefix="isoglot-flow-") as folder:
        vectors = encoder.encode(
            check_texts(texts), normalize_embeddings=False, precision=EXACT, output=Path(folder) / "vectors.npy",
            progress=progress,
        )  # fmt: skip
        flow.to(encoder.device)
        before, after = train_flow(flow, vectors, epochs=epochs, batch_size=batch_size, lr=lr, seed=seed)
    return Fitted(whole.eval(), len(vectors), before, after)


def train_flow(
    flow: Flow, vectors: Vectors, *, epochs: int = 1, batch_size: int = 32, lr: float = 1e-3, seed: int = 0
) -> tuple[float, float]:
    """Train in place on vectors (N, D); the mean log-likelihood before and after, nats. Raises as `fit_flow` does."""
    if len(vectors) < 2:
        raise ValueError(f"a flow needs at least 2 sentences, got {len(vectors)}; pass more text")
    rng = np.random.default_rng(seed)
    adam = torch.optim.AdamW(flow.parameters(), lr=lr, weight_decay=0.01, eps=1e-6)
    before = None
    orders = (rng.permutation(len(vectors)) for _ in range(epochs))
    for rows in (order[start : start + batch_size] for order in orders for start in range(0, len(order), batch_size)):
        x = torch.from_numpy(np.asarray(vectors[rows], np.float32)).to(flow.device)
        if before is None:
            constant = (x == x[0]).all(0).nonzero()[:, 0]
            if len(constant):
                raise ValueError(
                    f"dimension {int(constant[0])} has one value in all {len(x)} sentences of the first batch, so it "
                    "cannot be scaled; pass more varied text, or cut such dimensions by whitening first"
                )
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
        raise EncoderError(f"the flow diverged (log-likelihood {after}); use a smaller lr or more varied text")
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
