"""Builds an index whose sentences are encoded in pieces; one process adds them, in their order.

The codes of an IVF kind are computed in pieces, too, with copies of what that process has trained.

The index is the checkpoint: a piece is added as a whole or not at all, and sentences that are in it are not encoded
again.

Without a cluster, jobs that know nothing of each other make shards, each of a range of the pieces, and one joins them:

    news.shards/3-of-64/     a flat index
    news.shards/3-of-64.json the digest of all sentences, and, once it is complete, how many there are in this shard
    news/                    the index, by `merge_shards`
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import SearchError
from isoglot.core.machine import limit_cores
from isoglot.core.progress import Progress, Report
from isoglot.data.files import differences, read_record, write_record
from isoglot.index import Index, Origin, Sentence, structures
from isoglot.index import table as tables
from isoglot.index.index import Encoding, next_piece
from isoglot.index.origin import encode_sentences
from isoglot.index.structures import Bytes
from isoglot.index.table import Vectors
from isoglot.index.units import COLUMNS, Unit, group, make_sentences
from isoglot.model import Model
from isoglot.scale.shards import select_range
from isoglot.scale.work import Cluster, run

_IN_FLIGHT = 1 << 32  # bytes of vectors that are sent to workers, or kept until earlier ones are done


@check_arguments()
def index_shards(
    model: str | Path,
    sentences: Iterable[str | Sentence],
    folder: str | Path,
    *,
    cluster: Cluster | None = None,
    shard: tuple[int, int] | None = None,
    **settings: Any,
) -> Index:
    """`Index.build` in a folder, with the sentences encoded in pieces of some thousand by a cluster.

    It computes the codes of an IVF kind, too. At most 4 GiB of vectors are on their way at once.

    model      as `isoglot.load` takes it; every machine must find it, in its cache or on a shared disk, and a worker
               that finds another model raises `SearchError`
    sentences  read by this process, which alone writes the index: `folder` may lie on its own disk
    shard      (3, 64): only the third of 64 equal ranges of the pieces, as a flat index in `FOLDER.shards`, for
               `merge_shards`; the sentences are then read twice
    settings   of `Index.build`, without `device`: this process opens the model on the CPU, a worker on an accelerator
               if `cluster.gpus` gives it one

    With the same `cluster.cpus`, a cluster of processors of one kind gives the same bits as one process; with
    `cluster.gpus`, vectors are in the precision of `auto` on each worker. The same call completes one that was killed.
    Raises what `Index.build` raises, and `SearchError` for a shard that was begun with other sentences.
    """
    name = str(Path(model).resolve()) if Path(model).is_dir() else str(model)
    place = cluster or Cluster()

    def encoding(origin: Origin, pieces: Iterable[list[str]]) -> Iterator[NDArray[np.float32]]:
        shared = (origin, name, place.cpus, place.gpus > 0)
        most = max(1, _IN_FLIGHT // (4 * origin.dim * tables.ROWS))
        yield from run(_encode, ((piece,) for piece in pieces), place, shared=shared, most=most)

    def coding(trained: Bytes, blocks: Iterable[Vectors]) -> Iterator[Bytes]:
        most = max(1, _IN_FLIGHT // structures.BLOCK)
        yield from run(structures.encode_rows, ((block,) for block in blocks), place, shared=[trained], most=most)

    hooks: dict[str, Any] = {"device": "cpu", "encoding": encoding, "coding": coding}
    if shard is None:
        return Index.build(model, sentences, folder=folder, **hooks, **settings)
    if settings.pop("kind", None) is not None:
        raise ValueError("a shard is flat; pass the kind to merge_shards")
    columns = {name: settings.pop(name, None) for name in COLUMNS}
    note, made_of, selection = _share(sentences, columns, Path(folder), shard)
    if differences(made_of, read_record(note) or made_of):
        raise SearchError(f"{note.with_suffix('')}: was begun with other sentences; remove {note.parent}")
    index = Index.build(model, selection, folder=note.with_suffix(""), **hooks, **settings)
    write_record(note, {**made_of, "size": len(index)})
    return index


@check_arguments()
def merge_shards(
    folder: str | Path,
    model: str | Path | None = None,
    *,
    kind: str | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Index:
    """The index of the shards that `index_shards` made for this folder, as `Index.build` of all sentences makes it.

    model  where the model is, if its folder has moved
    kind   kind of index, as `Index.build` takes it

    Vectors are copied, not computed again; this process makes the structure of an approximate kind. The same call
    completes one that was killed. The shards stay. Raises `SearchError` for shards that are missing, not complete, or
    of another model or other sentences, and what `Index.build` raises.
    """
    with ExitStack() as stack:
        shards = {path: stack.enter_context(Index.open(path)) for path in _complete(Path(folder))}
        (first, origin), *_ = ((path, shard.origin) for path, shard in shards.items())
        for path, shard in shards.items():
            if replace(shard.origin, name=origin.name) != origin:
                raise SearchError(f"{path}: was made with another model or prompt than {first}; remove one of them")
        encoder = origin.load(None if model is None else str(model), device="cpu")
        if not Index.exists(folder):
            Index.create(folder, origin, kind=kind or "flat", model=encoder).close()
        sentences, encoding = _read_shards([*shards.values()])
        return Index.build(
            encoder, sentences, folder=folder, kind=kind, encoding=encoding, progress=progress, report=report
        )


def _read_shards(shards: Sequence[Index]) -> tuple[Iterator[Sentence], Encoding]:
    """The sentences of shards, and what passes their vectors to the index that they are added to."""
    read = deque[tuple[str, Vectors]]()

    def sentences() -> Iterator[Sentence]:
        for shard in shards:
            for start in range(0, len(shard), tables.ROWS):
                rows = range(start, min(start + tables.ROWS, len(shard)))
                by_row = shard.store.by_row(rows)
                for row, vector in zip(rows, shard.vectors(rows), strict=True):
                    read.append((by_row[row].text, vector))
                    yield by_row[row]

    def encoding(origin: Origin, pieces: Iterable[list[str]]) -> Iterator[Vectors]:
        for texts in pieces:  # those that were read, without what is in the index already
            vectors = np.empty((len(texts), origin.dim), np.float32)
            for place, text in enumerate(texts):
                vectors[place] = next(vector for other, vector in iter(read.popleft, None) if other == text)
            while len(read) > 1:  # the last one shows where an entry ends, and belongs to the next piece
                read.popleft()
            yield vectors

    return sentences(), encoding


def _share(
    sentences: Iterable[str | Sentence], columns: dict[str, Any], folder: Path, shard: tuple[int, int]
) -> tuple[Path, dict[str, Any], Iterator[Sentence]]:
    """The file that records what a shard is made of, that record, and the sentences of the shard."""
    if iter(sentences) is sentences:
        raise TypeError("the sentences of a shard are read twice; pass a list, not an iterator")
    total, checksum = 0, hashlib.sha256()
    for piece in _pieces(sentences, columns):
        total += 1
        checksum.update(repr(piece).encode())
    pieces = islice(_pieces(sentences, columns), *select_range(total, shard).indices(total))
    note = Path(f"{folder}.shards") / f"{shard[0]}-of-{shard[1]}.json"
    made_of = {"sentences": checksum.hexdigest(), "pieces": total}

    def record() -> Iterator[Sentence]:  # begun when the model and the arguments have been checked
        write_record(note, made_of)
        yield from (one for piece in pieces for unit in piece for one in unit.sentences)

    return note, made_of, record()


def _pieces(sentences: Iterable[str | Sentence], columns: dict[str, Any]) -> Iterator[list[Unit]]:
    """The pieces in which `Index.build` adds sentences."""
    return iter(partial(next_piece, group(make_sentences(sentences, *columns.values()))), [])


def _complete(folder: Path) -> list[Path]:
    """The folders of all shards, in their order."""
    parent = Path(f"{folder}.shards")
    notes = {path.stem: read_record(path) or {} for path in parent.glob("*-of-*.json")}
    if not notes:
        raise SearchError(f"{parent}: contains no shards; make them with index_shards(shard=...), or --shard")
    count, *others = sorted({int(name.partition("-of-")[2]) for name in notes})
    if others:
        raise SearchError(f"{parent}: contains shards of {count} and of {others[0]}; remove those of one division")
    names = [f"{number}-of-{count}" for number in range(1, count + 1)]
    if missing := [name.replace("-of-", "/") for name in names if "size" not in notes.get(name, {})]:
        raise SearchError(f"{parent}: not complete; run the same command again with --shard {', '.join(missing)}")
    for name in names:
        if notes[name]["sentences"] != notes[names[0]]["sentences"]:
            raise SearchError(f"{parent / name}: is of other sentences than {names[0]}; remove one of them")
    return [parent / name for name in names]


def _encode(origin: Origin, model: str, threads: int, accelerated: bool, texts: list[str]) -> NDArray[np.float32]:
    if not texts:  # all of them are in the index
        return np.empty((0, origin.dim), np.float32)
    with limit_cores(threads):
        return encode_sentences(_open(origin, model, "auto" if accelerated else "cpu"), texts)


@lru_cache(maxsize=1)
def _open(origin: Origin, model: str, device: str) -> Model:
    """The model, opened once in a process, which works on many pieces."""
    return origin.load(model, device=device)
