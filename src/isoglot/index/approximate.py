"""The approximate part of an index: a FAISS structure over its first rows. What it does not cover is searched exactly.

It only proposes candidates. Their scores are computed from the vectors themselves, so a compressed structure may miss
a sentence, but never misstates a score.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isoglot.data.files import atomic_write, digest
from isoglot.errors import SearchError
from isoglot.index.store import Structure
from isoglot.index.table import Rows, Table, Vectors, faiss_module

FLAT = "flat"
KINDS = (FLAT, "ivf", "ivf-pq", "hnsw")

_TRAINING = 39  # vectors a cluster needs for its centre; with fewer, FAISS itself warns
_SAMPLE = 1 << 17


def factory(kind: str, rows: int, dim: int) -> str:
    """FAISS's own name for a kind, at a number of rows; what is none of `KINDS` is taken to be such a name."""
    cells = max(1, min(int(4 * rows**0.5), rows // _TRAINING, _SAMPLE // _TRAINING))
    if kind == "ivf":
        return f"IVF{cells},Flat"
    if kind == "ivf-pq":
        return f"IVF{cells},PQ{max(part for part in range(1, dim // 4 + 2) if dim % part == 0)}"
    return "HNSW32,Flat" if kind == "hnsw" else kind


def check(kind: str, dim: int) -> None:
    """Raise `SearchError` if there is no such kind, before anything is encoded."""
    if kind != FLAT:
        _build(factory(kind, 1 << 16, dim), kind, dim)


def train(kind: str, table: Table, dim: int) -> Any:
    """An empty structure, its centres found on rows spread evenly. Raises `SearchError` if there are too few."""
    rows = len(table)
    index = _build(factory(kind, rows, dim), kind, dim)
    if not index.is_trained:
        sample = np.unique(np.linspace(0, rows - 1, min(rows, _SAMPLE)).astype(np.int64))
        try:
            index.train(table[sample])
        except RuntimeError as error:
            raise SearchError(f"the kind {kind!r} needs more than {rows} sentences; use --kind flat") from error
    return index


def write(path: Path, index: Any) -> Structure:
    """Write a structure, whole and synced, or nothing."""
    faiss = faiss_module()
    with atomic_write(path, binary=True) as stream:
        faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))
    return Structure(path.name, index.ntotal, path.stat().st_size, digest(path))


def read(path: Path, known: Structure, dim: int) -> Any:
    """The structure in a file. Raises `SearchError` for another or a damaged file, FileNotFoundError for none.

    The bytes are compared before FAISS sees them: it trusts what it reads, and a wrong link in a graph can end the
    process.
    """
    if path.stat().st_size != known.size:
        raise SearchError(f"{path}: has {path.stat().st_size} bytes instead of {known.size}; make the index again")
    if known.digest is not None and digest(path) != known.digest:
        raise SearchError(f"{path}: is damaged, its SHA-256 is not the recorded one; make the index again")
    try:
        index = faiss_module().read_index(str(path))
    except (RuntimeError, MemoryError) as error:
        path.stat()  # another process may have replaced it meanwhile
        raise SearchError(f"{path}: can't be read by FAISS; make the index again") from error
    if (index.ntotal, index.d) != (known.rows, dim):
        raise SearchError(
            f"{path}: covers {index.ntotal} rows of {index.d} dimensions instead of {known.rows} of {dim}; "
            "make the index again"
        )
    return index


def candidates(index: Any, queries: Vectors, k: int, *, effort: int | None) -> Rows:
    """Rows (Q, k) that are probably near; -1 where there are fewer.

    `effort`: cells looked into (IVF; a sixteenth of them, at least 8, unless given) or length of the list while
    walking (HNSW; 64, at least k).
    """
    faiss = faiss_module()
    inner = faiss.extract_index_ivf(index) if _is_ivf(index) else None
    if inner is not None:
        inner.nprobe = min(effort or max(8, inner.nlist // 16), inner.nlist)
    elif hasattr(index, "hnsw"):
        index.hnsw.efSearch = min(max(effort or 64, k), index.ntotal)
    found: Rows = index.search(queries, min(k, index.ntotal))[1]
    return found


def _is_ivf(index: Any) -> bool:
    return faiss_module().try_extract_index_ivf(index) is not None


def _build(name: str, kind: str, dim: int) -> Any:
    faiss = faiss_module()
    try:
        return faiss.index_factory(dim, name, faiss.METRIC_INNER_PRODUCT)
    except RuntimeError as error:
        raise SearchError(
            f"--kind {kind}: FAISS knows no {name!r} of {dim} dimensions; use one of {', '.join(KINDS)}"
        ) from error
