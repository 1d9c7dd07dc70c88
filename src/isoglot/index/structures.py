"""FAISS files of an index: made in bounded memory, IVF kinds on disk by parts, and opened without reading their lists.

    ivf-pq-1000.faiss    the structure
    ivf-pq-1000.parts/   while one of an IVF kind is made: what was trained, and the codes of some rows each

An IVF kind is trained once on a sample. The codes of all vectors are computed block by block, by this process or, with
copies of what was trained, by others; they are written as parts, with which a call that was killed resumes, and merged
on disk. The file is that of FAISS's `write_index`: a head of centres, code books and lengths of lists, and the lists.
They are memory-mapped: a search reads those of the cells that it probes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import SearchError
from isoglot.data.files import atomic_write, digest
from isoglot.data.vectors import write_vectors
from isoglot.index.store import Structure
from isoglot.index.table import Rows, Table, Vectors
from isoglot.search.faiss_index import candidates, create, faiss_module, train

Bytes = NDArray[np.uint8]
# Computes the codes (N, bytes) of each block of N vectors, in their order, with a copy of the trained structure.
Coding = Callable[[Bytes, Iterable[Vectors]], Iterator[Bytes]]

BLOCK = 1 << 26  # bytes of the vectors whose codes are computed at a time
_PART = 1 << 28  # bytes of a part, which are in memory together
_AGAIN = "make the index again"


def encode_rows(trained: Bytes, vectors: Vectors) -> Bytes:
    """The number of the cell, little-endian, and the code of each vector, (N, bytes)."""
    codes: Bytes = faiss_module().deserialize_index(trained).sa_encode(vectors)
    return codes


def make(kind: str, table: Table, structure: Any = None) -> Any:
    """A structure over all rows of a table, in memory: a new one, or one that lacks the last rows.

    Raises `ValueError` for too few rows.
    """
    structure = _train(kind, table) if structure is None else structure
    for _, block in table.blocks(structure.ntotal):
        structure.add(np.ascontiguousarray(block))
    return structure


def write(path: Path, kind: str, table: Table, coding: Coding | None, structure: Any = None) -> Structure:
    """Write what `make` returns to a file, the lists of an IVF kind by parts. The structure is used up.

    Raises `OutputError` where the disk is full.
    """
    trained = path.with_suffix(".parts") / "trained.faiss"
    if structure is None and trained.exists():
        structure = faiss_module().read_index(str(trained))
    elif structure is None:
        structure = _train(kind, table)
    if _has_plain_lists(structure):
        head = _write_with_lists(path, structure, table, coding)
        checksum = f"{hashlib.sha256(head).hexdigest()} {len(head)}"
    else:
        is_mapped = hasattr(_find_lists(structure), "prefetch_nthread")  # by `open_structure`, which adds nothing to it
        _write(path, make(kind, table, None if is_mapped else structure))
        checksum = digest(path)
    return Structure(path.name, len(table), path.stat().st_size, checksum)


def _train(kind: str, table: Table) -> Any:
    structure = create(kind, len(table), table.shape[1])
    train(structure, table.__getitem__, len(table))
    return structure


def _has_plain_lists(structure: Any) -> bool:
    """Whether a structure is an IVF kind whose lists are codes and rows; it may transform vectors first."""
    faiss = faiss_module()
    kinds = (faiss.IndexIVFFlat, faiss.IndexIVFPQ, faiss.IndexIVFScalarQuantizer)
    inner = faiss.try_extract_index_ivf(structure)
    is_plain = inner is not None and type(faiss.downcast_index(inner)) in kinds
    return is_plain and type(faiss.downcast_index(structure)) in (*kinds, faiss.IndexPreTransform)


def _find_lists(structure: Any) -> Any:
    """The inverted lists of an IVF kind; None of another."""
    inner = faiss_module().try_extract_index_ivf(structure)
    return None if inner is None else faiss_module().downcast_InvertedLists(inner.invlists)


def _write(path: Path, structure: Any) -> None:
    faiss = faiss_module()
    with atomic_write(path, binary=True) as stream:
        faiss.write_index(structure, faiss.PyCallbackIOWriter(stream.write))


def _write_with_lists(path: Path, structure: Any, table: Table, coding: Coding | None) -> bytes:
    """Write a structure with its lists and those of the rows of a table that it lacks. Returns the head of the file."""
    from faiss.contrib.inspect_tools import get_invlist, get_invlist_sizes

    faiss, parts = faiss_module(), path.with_suffix(".parts")
    inner, first = faiss.extract_index_ivf(structure), structure.ntotal
    if not first:
        _write(parts / "trained.faiss", structure)
    lists, empty = inner.invlists, faiss.ArrayInvertedLists(inner.nlist, inner.code_size)
    inner.own_invlists = False
    inner.replace_invlists(empty)
    _write_parts(parts, faiss.serialize_index(structure), table, first, coding, inner.code_size)
    more = [np.load(part, mmap_mode="r") for part in sorted(parts.glob("*.npy"))]
    edges = [np.searchsorted(part["cell"], np.arange(inner.nlist + 1)) for part in more]
    sizes = get_invlist_sizes(lists) + sum(map(np.diff, edges))
    structure.ntotal = inner.ntotal = len(table)
    # FAISS's own format, which ends with the lists: first their lengths, of empty ones in a shorter form.
    head: bytes = faiss.serialize_index(structure).tobytes().removesuffix(b"sprs" + bytes(8))
    head += b"full" + np.array([inner.nlist, *sizes], "<u8").tobytes()
    inner.replace_invlists(lists, True)
    with atomic_write(path, binary=True) as stream:
        stream.write(head)
        for cell in range(inner.nlist):
            rows, codes = get_invlist(inner.invlists, cell)
            some = [part[edge[cell] : edge[cell + 1]] for part, edge in zip(more, edges, strict=True)]
            stream.write(np.concatenate([codes, *(part["code"] for part in some)]).tobytes())
            stream.write(np.concatenate([rows, *(part["row"] for part in some)]).tobytes())
    del more
    shutil.rmtree(parts, ignore_errors=True)
    return head


def _write_parts(parts: Path, trained: Bytes, table: Table, first: int, coding: Coding | None, width: int) -> None:
    """Write the codes of the rows from `first` on, by cells, as far as they are in no part.

    The name of a part is the row after its last one.
    """
    first = max((int(part.stem) for part in parts.glob("*.npy")), default=first)
    edges = [*range(first, len(table), max(1, BLOCK // (4 * table.shape[1]))), len(table)]
    blocks = (table[np.arange(start, stop)] for start, stop in pairwise(edges))
    coded = (encode_rows(trained, block) for block in blocks) if coding is None else coding(trained, blocks)
    part = list[Bytes]()
    for stop, codes in zip(edges[1:], coded, strict=True):
        part.append(codes)
        if stop == len(table) or sum(each.nbytes for each in part) >= _PART:
            codes, part = np.concatenate(part), []
            records = np.empty(len(codes), [("cell", "<u8"), ("row", "<i8"), ("code", "u1", (width,))])
            cells = np.zeros((len(codes), 8), np.uint8)
            cells[:, : codes.shape[1] - width] = codes[:, : codes.shape[1] - width]
            records["cell"] = cells.view("<u8")[:, 0]
            records["row"], records["code"] = np.arange(stop - len(codes), stop), codes[:, -width:]
            with atomic_write(parts / f"{stop:015}.npy", binary=True) as stream:
                write_vectors(stream, records[np.argsort(records["cell"], kind="stable")], (), form="npy")


def open_structure(path: Path, record: Structure, dim: int) -> Any:
    """Open a structure; the lists of an IVF kind are memory-mapped, and their bytes are counted but not read.

    A digest of the rest is compared before FAISS reads the file: it trusts what it reads, and a wrong link in a graph
    can crash the process. Raises `SearchError` for another or a damaged file, FileNotFoundError for none.
    """
    if path.stat().st_size != record.size:
        raise SearchError(f"{path}: has {path.stat().st_size} bytes instead of {record.size}; {_AGAIN}")
    if record.digest is not None:
        expected, _, head = record.digest.partition(" ")
        with path.open("rb") as stream:
            checksum = hashlib.sha256(stream.read(int(head))).hexdigest() if head.isdecimal() else digest(path)
        if checksum != expected:
            raise SearchError(f"{path}: is damaged, its SHA-256 is not the recorded one; {_AGAIN}")
    faiss = faiss_module()
    try:
        structure = faiss.read_index(str(path), 0 if os.name == "nt" else faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
    except (RuntimeError, MemoryError) as error:
        path.stat()  # another process may have replaced it meanwhile
        raise SearchError(f"{path}: can't be read by FAISS; {_AGAIN}") from error
    if (structure.ntotal, structure.d) != (record.rows, dim):
        covered = f"covers {structure.ntotal} rows of {structure.d} dimensions instead of {record.rows} of {dim}"
        raise SearchError(f"{path}: {covered}; {_AGAIN}")
    if hasattr(lists := _find_lists(structure), "prefetch_nthread"):
        lists.prefetch_nthread = 0  # threads that read ahead, without which a process that is forked later would crash
    return structure


def find_candidates(structure: Any, queries: Vectors, k: int, *, effort: int | None = None) -> Rows:
    """Rows (Q, at most 4k) among which the k nearest probably are; -1 where fewer are found.

    Compressed vectors rank candidates roughly, so more of them are scored than are returned. Raises `SearchError` for
    rows that the structure doesn't have, of damaged lists.
    """
    rows: Rows = candidates(structure, queries, 4 * k, effort=effort)
    if rows.size and not -1 <= rows.min() <= rows.max() < structure.ntotal:
        raise SearchError(f"the lists of a FAISS file are damaged; {_AGAIN}")
    return rows
