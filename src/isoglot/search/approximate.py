"""Neighbours by FAISS when exact ones take too long: found in an index, then scored exactly.

What is special here: an approximate search without a number for what it misses is worth little, so `recall` compares
it with an exact search for a sample of the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.search.neighbours import BUDGET, SPARE, Neighbours, neighbours
from isoglot.search.rescore import load, rescore
from isoglot.search.top import Best

INDEXES = ("IVF,Flat", "IVF-PQ", "HNSW")
PROBES = 32
SAMPLE = 1000
_BLOCK = 1 << 16  # rows shown to an index at a time
_TRAINING = 64  # rows per list that the lists are found from
_LEAST = 512  # fewer rows are no task for an index


def approximate(
    x: NDArray[Any],
    y: NDArray[Any],
    k: int,
    *,
    index: str = "IVF,Flat",
    probes: int = PROBES,
    spare: int = SPARE,
    seed: int = 0,
    budget: int = BUDGET,
) -> Neighbours:
    """Nearly the k nearest by cosine, both ways, as `neighbours` gives them; scores are exact.

    `index` is one of `INDEXES`, whose sizes follow the number of rows, or any description that FAISS understands.
    `probes` is how many lists are looked into, or how wide an HNSW graph is searched: more is slower and finds more.
    `k + spare` candidates of the index are scored in float32. The rows that lists are made from are drawn with `seed`.
    In memory is one index of one side at a time: all its vectors, except for IVF-PQ. Where an index finds too few, the
    last one found stands again. Raises `ValueError` for fewer than 512 rows on a side, a description FAISS does not
    know and a row for which nothing is found; `ImportError` without FAISS.
    """
    if min(len(x), len(y)) < _LEAST:
        raise ValueError(
            f"an index needs at least {_LEAST} rows on both sides, not {len(x)} and {len(y)}; search exactly"
        )
    sides = []
    for queries, rows in ((x, y), (y, x)):
        best = _candidates(queries, rows, min(k + spare, len(rows)), index, probes, seed)
        sides.append(rescore(queries, rows, best, k, metric="cosine", budget=budget))
    return Neighbours(sides[0].scores, sides[0].ids, sides[1].scores, sides[1].ids)


def recall(
    x: NDArray[Any], y: NDArray[Any], found: Neighbours, *, sample: int = SAMPLE, seed: int = 0, budget: int = BUDGET
) -> float:
    """Share of the true k nearest, 0 to 1, that `found` holds, for a sample of rows of both sides drawn with `seed`."""
    rng = np.random.default_rng(seed)
    shares = []
    for queries, rows, ids in ((x, y, found.forward_ids), (y, x, found.backward_ids)):
        drawn = np.sort(rng.choice(len(queries), min(sample, len(queries)), replace=False))
        true = neighbours(np.asarray(queries[drawn]), rows, ids.shape[1], metric="cosine", budget=budget).forward_ids
        shares.append((true[:, :, None] == ids[drawn][:, None, :]).any(axis=2).mean())
    return float(np.mean(shares))


def describe(index: str, rows: int, dim: int) -> str:
    """The description that FAISS is given for one of `INDEXES`; any other as it is."""
    lists = max(1, min(int(4 * math.sqrt(rows)), rows // _TRAINING))
    if index == "IVF,Flat":
        return f"IVF{lists},Flat"
    if index == "IVF-PQ":
        pieces = max(part for part in range(1, max(2, dim // 4 + 1)) if dim % part == 0)
        return f"IVF{lists},PQ{pieces}x8"
    return "HNSW32,Flat" if index == "HNSW" else index


def _candidates(queries: NDArray[Any], rows: NDArray[Any], k: int, index: str, probes: int, seed: int) -> Best:
    import faiss

    text = describe(index, len(rows), rows.shape[1])
    try:
        built = faiss.index_factory(rows.shape[1], text, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise ValueError(f"FAISS knows no index {text!r}; use one of {', '.join(INDEXES)}") from error
    _fill(built, rows, seed)
    _widen(faiss, built, probes)
    best = Best.empty(len(queries), k)
    for start in range(0, len(queries), _BLOCK):
        block = load(queries, start, start + _BLOCK, "cosine")
        _, best.ids[start : start + _BLOCK] = built.search(block, k)
    return _without_gaps(best, text)


def _fill(built: Any, rows: NDArray[Any], seed: int) -> None:
    if not built.is_trained:
        wanted = min(len(rows), max(_TRAINING * int(getattr(built, "nlist", 1)), 1 << 14))
        drawn = np.sort(np.random.default_rng(seed).choice(len(rows), wanted, replace=False))
        built.train(load(np.asarray(rows[drawn]), 0, wanted, "cosine"))
    for start in range(0, len(rows), _BLOCK):
        built.add(load(rows, start, start + _BLOCK, "cosine"))


def _widen(faiss: Any, built: Any, probes: int) -> None:
    name = "efSearch" if hasattr(built, "hnsw") else "nprobe" if hasattr(built, "nprobe") else None
    if name is not None:
        faiss.ParameterSpace().set_index_parameter(built, name, float(min(probes, max(1, built.ntotal))))


def _without_gaps(best: Best, text: str) -> Best:
    if (best.ids[:, 0] < 0).any():
        raise ValueError(f"{text} found nothing for row {int((best.ids[:, 0] < 0).argmax())}; raise the probes")
    for place in range(1, best.ids.shape[1]):
        missing = best.ids[:, place] < 0
        best.ids[missing, place] = best.ids[missing, place - 1]
    return best
