"""FAISS indexes propose candidates when an exact search is too slow; candidates are then scored exactly.

Shared by approximate mining and by the approximate kinds of `isoglot.Index`. `recall` measures what a search missed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import NonNegativeInt, PositiveInt, check_arguments
from isoglot.core.errors import naming_extras, nearest
from isoglot.search.best import Best, Floats, Ids
from isoglot.search.blocks import load
from isoglot.search.exact import BUDGET, Neighbours, neighbours, rescore

# FAISS's own name of a kind, for a number of cells and the dimension.
KINDS: dict[str, Callable[[int, int], str]] = {
    "ivf": lambda cells, _: f"IVF{cells},Flat",
    # np: codes in any order, since only a search by Hamming distance needs one
    "ivf-pq": lambda cells, dim: f"IVF{cells},PQ{max(n for n in range(1, dim // 4 + 2) if dim % n == 0)}x8np",
    "hnsw": lambda _cells, _dim: "HNSW32,Flat",
}
PROBES = 32  # of mining
CELLS = 64  # that a search of an index looks into, however many there are
SAMPLE = 1000
SPARE = 12  # candidates beyond k that are scored in float32
_BLOCK = 1 << 16  # rows added to an index at a time
_TRAINING = 39  # rows per cell that the centres are computed from; with fewer, FAISS itself warns
_SAMPLE = 1 << 17  # rows of a training sample, at least
_ROUNDING = 1e-6  # by which equal cosines in float32 may differ
_LEAST = 512  # with fewer rows an exact search is faster


def faiss_module() -> Any:
    """The module `faiss`. Raises `MissingExtraError` with the command to install it."""
    with naming_extras():
        import faiss
    return faiss


def factory(kind: str, rows: int, dim: int) -> str:
    """FAISS's own name of a kind, for a number of rows; anything but one of `KINDS` is taken as such a name."""
    cells = max(1, min(int(4 * math.sqrt(rows)), rows // _TRAINING))
    return KINDS[kind](cells, dim) if kind in KINDS else kind


def create(kind: str, rows: int, dim: int) -> Any:
    """An empty index of a kind. Raises `ValueError` for an unknown one."""
    faiss = faiss_module()
    if "IDMap" in kind:
        raise ValueError(f"{kind!r} has numbers of its own for rows; leave IDMap out")
    try:
        return faiss.index_factory(dim, factory(kind, rows, dim), faiss.METRIC_INNER_PRODUCT)
    except (RuntimeError, TypeError) as error:  # a TypeError for a string that is not UTF-8
        problem = f"{kind!r} is not a kind of index, nor a name of FAISS's index_factory for {dim} dimensions"
        raise ValueError(f"{problem}; {nearest(kind, ('flat', *KINDS))}") from error


def train(index: Any, sample: Callable[[Ids], Floats], rows: int) -> None:
    """Compute the centres of an index from a sample of its rows, spread evenly; `ValueError` for too few rows."""
    if index.is_trained:
        return
    wanted = min(rows, max(_TRAINING * int(getattr(index, "nlist", 1)), _SAMPLE))
    try:
        index.train(sample(np.unique(np.linspace(0, rows - 1, wanted).astype(np.int64))))
    except RuntimeError as error:
        raise ValueError(f"this kind of index needs more than {rows} rows; use a flat one") from error


def candidates(index: Any, queries: Floats, k: int, *, effort: int | None = None) -> Ids:
    """Rows (Q, min(k, rows)) that are probably near; -1 where fewer are found.

    `effort`: number of cells searched (IVF; default 64) or size of the list during the walk (HNSW; default 64, at least
    k).
    """
    ids: Ids = index.search(queries, min(k, index.ntotal), params=_parameters(index, k, effort))[1]
    return ids


def _parameters(index: Any, k: int, effort: int | None) -> Any:
    """Parameters of one search alone, since others may run beside it, also of the index behind a transform."""
    faiss = faiss_module()
    inner = faiss.downcast_index(index)
    if isinstance(inner, faiss.IndexPreTransform):
        return faiss.SearchParametersPreTransform(index_params=_parameters(inner.index, k, effort))
    if isinstance(inner, faiss.IndexRefine):
        nested = _parameters(inner.base_index, k, effort)
        return faiss.IndexRefineSearchParameters(k_factor=inner.k_factor, base_index_params=nested)
    if isinstance(inner, faiss.IndexIVF):
        return faiss.SearchParametersIVF(nprobe=min(effort or CELLS, inner.nlist))
    is_graph = hasattr(inner, "hnsw")
    return faiss.SearchParametersHNSW(efSearch=min(max(effort or 64, k), inner.ntotal)) if is_graph else None


@check_arguments()
def approximate(
    x: NDArray[Any],
    y: NDArray[Any],
    k: PositiveInt,
    *,
    index: str = "ivf",
    probes: PositiveInt = PROBES,
    spare: NonNegativeInt = SPARE,
    budget: int = BUDGET,
) -> Neighbours:
    """Nearly the k nearest by cosine, both ways, as `neighbours` returns them; scores are exact.

    `index` is one of `KINDS`, with a size for the number of rows, or a name of FAISS's `index_factory`. `probes` is the
    `effort` of `candidates`: more is slower and finds more. `k + spare` candidates are scored in float32. One index of
    one side is in memory at a time: all its vectors, except for "ivf-pq". Where it finds too few, the last neighbour is
    repeated. Raises `ValueError` for fewer than 512 rows on a side, an unknown index and a row for which nothing is
    found; `MissingExtraError` without FAISS.
    """
    if min(len(x), len(y)) < _LEAST:
        counts = f"{len(x)} and {len(y)}"
        raise ValueError(f"an index needs at least {_LEAST} rows on both sides, got {counts}; search exactly")
    tables = list[Any]()
    for queries, rows in ((x, y), (y, x)):
        built = create(index, len(rows), rows.shape[1])
        train(built, lambda drawn, rows=rows: load(np.asarray(rows[drawn]), 0, len(drawn), "cosine"), len(rows))  # type: ignore[misc]
        for start in range(0, len(rows), _BLOCK):
            built.add(load(rows, start, start + _BLOCK, "cosine"))
        best = Best.empty(len(queries), min(k + spare, len(rows)))
        for start in range(0, len(queries), _BLOCK):
            block = load(queries, start, start + _BLOCK, "cosine")
            best.ids[start : start + _BLOCK] = candidates(built, block, k + spare, effort=probes)
        if (best.ids[:, 0] < 0).any():
            raise ValueError(f"{index} found nothing for row {int((best.ids[:, 0] < 0).argmax())}; increase the probes")
        for place in range(1, best.ids.shape[1]):
            missing = best.ids[:, place] < 0
            best.ids[missing, place] = best.ids[missing, place - 1]
        best = rescore(queries, rows, best, k, metric="cosine", budget=budget)
        tables += [best.scores, best.ids]
    return Neighbours(*tables)


@check_arguments()
def recall(
    x: NDArray[Any],
    y: NDArray[Any],
    hits: Neighbours,
    *,
    sample: PositiveInt = SAMPLE,
    seed: NonNegativeInt = 0,
    budget: int = BUDGET,
) -> float:
    """Share of the true k nearest, 0 to 1, in `hits`, for a sample of rows of both sides.

    A hit that scores as much as the last of them is one of them: which of equal rows is found does not matter.
    Raises `ValueError` for what `neighbours` rejects.
    """
    rng = np.random.default_rng(seed)
    shares = []
    for queries, rows, ids in ((x, y, hits.forward_ids), (y, x, hits.backward_ids)):
        drawn = np.sort(rng.choice(len(queries), min(sample, len(queries)), replace=False))
        sampled, k = np.asarray(queries[drawn]), ids.shape[1]
        scores = neighbours(sampled, rows, k, metric="cosine", budget=budget).forward_scores
        rescored = rescore(sampled, rows, Best(scores, ids[drawn]), k, metric="cosine", budget=budget)
        is_new = np.diff(rescored.ids, axis=1, prepend=-1) != 0  # a row is repeated where too few were found
        shares.append((is_new & (rescored.scores >= scores[:, -1:] - _ROUNDING)).mean())
    return float(np.mean(shares))
