"""Builds an index whose sentences are encoded in pieces; one process adds them, in their order.

The codes of an IVF kind are computed in pieces, too, with copies of what that process has trained.

The index is the checkpoint: a piece is added as a whole or not at all, and sentences that are in it are not encoded
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_arguments
from isoglot.index import Index, Origin, Sentence, structures
from isoglot.index import table as tables
from isoglot.index.origin import encode_sentences
from isoglot.index.structures import Bytes
from isoglot.index.table import Vectors
from isoglot.model import Model
from isoglot.model.engine import limit_cores
from isoglot.scale.work import Cluster, in_order

_IN_FLIGHT = 1 << 32  # bytes of vectors that are sent to workers, or kept until earlier ones are done


@check_arguments()
def index_shards(
    model: str | Path,
    sentences: Iterable[str | Sentence],
    folder: str | Path,
    *,
    cluster: Cluster | None = None,
    **settings: Any,
) -> Index:
    """`Index.build` in a folder, with the sentences encoded in pieces of some thousand by a cluster.

    It computes the codes of an IVF kind, too. At most 4 GiB of vectors are on their way at once.

    model      as `isoglot.load` takes it; every machine must find it, in its cache or on a shared disk, and a worker
               that finds another model raises `SearchError`
    sentences  read by this process, which alone writes the index: `folder` may lie on its own disk
    settings   of `Index.build`, without `device`: this process opens the model on the CPU, a worker on an accelerator
               if `cluster.gpus` gives it one

    With the same `cluster.cpus`, a cluster of processors of one kind gives the same bits as one process; with
    `cluster.gpus`, vectors are in the precision of `auto` on each worker. The same call completes one that was killed.
    Raises what `Index.build` raises.
    """
    name, where = str(Path(model).resolve()) if Path(model).is_dir() else str(model), cluster or Cluster()

    def encoding(origin: Origin, pieces: Iterable[list[str]]) -> Iterator[NDArray[np.float32]]:
        shared = (origin, name, where.cpus, where.gpus > 0)
        most = max(1, _IN_FLIGHT // (4 * origin.dim * tables.ROWS))
        yield from in_order(_encode, ((piece,) for piece in pieces), where, shared=shared, most=most)

    def coding(trained: Bytes, blocks: Iterable[Vectors]) -> Iterator[Bytes]:
        most = max(1, _IN_FLIGHT // structures.BLOCK)
        yield from in_order(structures.encode_rows, ((block,) for block in blocks), where, shared=[trained], most=most)

    return Index.build(model, sentences, folder=folder, device="cpu", encoding=encoding, coding=coding, **settings)


def _encode(origin: Origin, model: str, threads: int, accelerated: bool, texts: list[str]) -> NDArray[np.float32]:
    if not texts:  # all of them are in the index
        return np.empty((0, origin.dim), np.float32)
    with limit_cores(threads):
        return encode_sentences(_open(origin, model, "auto" if accelerated else "cpu"), texts)


@lru_cache(maxsize=1)
def _open(origin: Origin, model: str, device: str) -> Model:
    """The model, opened once in a process, which works on many pieces."""
    return origin.load(model, device=device)
