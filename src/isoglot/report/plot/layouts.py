"""Vectors laid into a plane: PCA, t-SNE (van der Maaten and Hinton 2008), UMAP (McInnes et al. 2018).

All three see unit vectors, so that near means a great cosine. PCA keeps the directions in which the sentences differ
most, and is the one whose distances mean something; the other two keep neighbours. Each gives the same plane for the
same vectors: one thread, a fixed seed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.vectors import not_finite, unit
from isoglot.errors import EvaluationError
from isoglot.evaluation.tasks.sentence_map import plane

Plane = NDArray[np.float64]

_FEWEST = 5  # points below which there are no neighbourhoods to keep, and PCA is taken
_ROUNDING = 1e-9  # a sum of squares below is that of equal vectors


def pca(points: Plane) -> Plane:
    """The two directions of the greatest variance, (N, 2); zeros where there are fewer."""
    from sklearn.decomposition import PCA

    width = min(2, *points.shape)
    laid = np.zeros((len(points), 2))
    if np.square(points - points.mean(axis=0)).sum() > _ROUNDING:
        laid[:, :width] = PCA(width, svd_solver="full").fit_transform(points)
    return laid


def tsne(points: Plane) -> Plane:
    """t-SNE from PCA, perplexity 30 or less for few points: the plane of the task `map`."""
    return plane(points)


def umap(points: Plane) -> Plane:
    """UMAP with 15 neighbours, or fewer for few points. Raises `EvaluationError` when umap-learn is not installed."""
    try:
        module: Any = importlib.import_module("umap")
    except ImportError as error:
        raise EvaluationError(
            'UMAP needs the package umap-learn: pip install "isoglot[umap]", or take the layout tsne'
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a seed means one thread
        layout = module.UMAP(n_neighbors=min(15, len(points) - 1), random_state=0, n_jobs=1)
        return np.asarray(layout.fit_transform(points), np.float64)


LAYOUTS: dict[str, Callable[[Plane], Plane]] = {"pca": pca, "tsne": tsne, "umap": umap}


def lay_out(vectors: NDArray[Any], layout: str) -> Plane:
    """Vectors (N, D) as points of a plane (N, 2) between 0 and 1, its longer side filled, its proportions kept.

    Fewer than five sentences are laid out by `pca` in any case. Raises `EvaluationError` for an unknown layout, one
    that is not installed, and vectors that are not finite.
    """
    if layout not in LAYOUTS:
        raise EvaluationError(f"unknown layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
    from threadpoolctl import threadpool_limits

    points = _unit(np.asarray(vectors, np.float64))
    same = np.square(points - points.mean(axis=0)).sum() <= _ROUNDING
    small = len(points) < _FEWEST or points.shape[1] < 2 or same
    with threadpool_limits(1):  # threads would add up in the order in which they finish
        return _framed(pca(points) if small else LAYOUTS[layout](points))


def _unit(points: Plane) -> Plane:
    if len(bad := not_finite(points)):
        raise EvaluationError(f"the vector of sentence {bad[0] + 1} is not finite; the model is damaged")
    return unit(points, np.float64)


def _framed(laid: Plane) -> Plane:
    low, high = laid.min(axis=0), laid.max(axis=0)
    side = float((high - low).max())
    middle = (low + high) / 2
    placed: Plane = np.asarray(((laid - middle) / side if side > 0 else laid * 0) + 0.5).round(5)
    return placed
