"""Whitening: mean zero and covariance I for an encoder's vectors, by one linear layer (Su et al. 2021).

With mu and Sigma = U Lambda U^T of the raw vectors of a text, x becomes (x - mu) W, W = U Lambda^(-1/2), of which the
first k columns may be kept, those of the greatest variance. Any scaling to length one comes afterwards: before, it
would change what is whitened. Being linear it is saved as an ordinary Dense layer, which other programs run too; in a
static encoder it is folded into the rows, since the mean of rows e W + b is the mean of the rows, times W, plus b.

Sigma has N - 1 in its denominator, as numpy.cov, which the published code calls. Eigenvectors have no sign of their
own: here the entry of greatest size is positive, so that two machines agree.
Deviation: directions in which the text does not vary are left out, where the published code divides by their rounding.
Every transformer that ends in a layer norm (g, b) has one, since its states x fulfil sum_i (x_i - b_i) / g_i = 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from isoglot.encoders.base import Encoder
from isoglot.encoders.behind import Behind
from isoglot.encoders.dense import Dense
from isoglot.encoders.engine import engine, plan
from isoglot.encoders.static import StaticEncoder
from isoglot.progress import Progress

FLOOR = 1e-8  # of the greatest eigenvalue: what lies below is the rounding of float32 vectors, not variance


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


def fit_whitening(
    encoder: Encoder, texts: Iterable[str], *, dim: int | None = None, progress: Progress | None = None
) -> Whitened:
    """The encoder, whitened by its raw vectors of `texts`; repeated ones count as often.

    dim       dimensions to keep, those of greatest variance first; None: all in which the text varies
    progress  as of `encode`: distinct texts done, and in all

    A static encoder comes back as one, its text without tokens still the zero vector, which is then the mean sentence;
    any other gets a dense layer behind it. Raises ValueError for a `dim` that is not 1 to the encoder's, if the text
    varies in fewer directions than that, and without a `dim`, if there are no more sentences than dimensions.
    """
    if dim is not None and not 1 <= dim <= encoder.dim:
        raise ValueError(f"dim must lie between 1 and the encoder's {encoder.dim} dimensions, got {dim}")
    with engine(encoder, plan(encoder, normalize_embeddings=False), progress=progress) as blocks:
        found = moments(rows for _, rows in blocks(texts))
    layer, share = whitening(found, dim)
    return Whitened(_put(encoder, layer), found.count, share)


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
        own = rows.mean(0)
        apart = own - mean
        scatter = scatter + (rows - own).T @ (rows - own) + np.outer(apart, apart) * (count * more / (count + more))
        mean = mean + apart * (more / (count + more))
        count += more
    if count < 2:
        raise ValueError(f"a covariance takes at least 2 sentences, got {count}; give more text")
    return Moments(count, mean, scatter / (count - 1))


def whitening(found: Moments, dim: int | None = None) -> tuple[Dense, float]:
    """The layer (D to `dim`) that whitens rows of these moments, and the share of their variance that it keeps.

    A direction counts if its eigenvalue is above `FLOOR` times the greatest. `dim` and ValueError as above.
    """
    values, vectors = np.linalg.eigh(found.covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    rank = int((values > FLOOR * max(values[0], np.finfo(np.float64).tiny)).sum())
    if rank < (dim or 1) or (dim is None and found.count <= len(values)):
        raise ValueError(
            f"{found.count:,} sentences vary in {rank:,} of {len(values):,} directions, too few to whiten "
            f"{dim or 'all'} of them; give more varied text, or fewer dimensions to keep (dim)"
        )
    dim = rank if dim is None else dim
    vectors, scale = vectors[:, :dim], np.sqrt(values[:dim])
    signs = np.sign(vectors[np.abs(vectors).argmax(0), np.arange(dim)])
    w = vectors * (signs / scale)
    layer = Dense(len(values), dim, activation="Identity")
    with torch.no_grad():
        layer.linear.weight.copy_(torch.from_numpy(w.T.copy()))
        layer.linear.bias.copy_(torch.from_numpy(-found.mean @ w))
    return layer, float(values[:dim].sum() / values.sum())


def _put(encoder: Encoder, layer: Dense) -> Encoder:
    if isinstance(encoder, StaticEncoder):
        return _folded(encoder, layer)
    return Behind(encoder, layer.to(encoder.device)).eval()


def _folded(encoder: StaticEncoder, layer: Dense) -> StaticEncoder:
    """A new static encoder whose rows have been through the layer."""
    table = encoder.folded()
    with torch.no_grad():
        rows = layer.to(table.device)(table.float())
    return StaticEncoder(
        rows,
        encoder.tokenizer,
        sparse=encoder.sparse,
        max_length=encoder.max_length,
        prompt=encoder.prompt,
        normalizes=encoder.normalizes,
    ).eval()
