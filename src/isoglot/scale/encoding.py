"""Encodes many files: each is split into pieces of `lines` lines, and each piece becomes one file of vectors.

A piece is written by `encode_file`: the file gets its name when it is complete, and an interrupted piece resumes after
its last window. `shards.json` in the folder records the model, the settings, the precision and the text of the
vectors; a folder with other vectors is rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import EncoderError, nearest
from isoglot.core.machine import limit_cores
from isoglot.data.files import differences, digest, read_record, without_compression, write_record
from isoglot.data.formats import read_texts
from isoglot.model import Model, load
from isoglot.model.engine import plan
from isoglot.model.finding import find
from isoglot.model.layout import digest_of
from isoglot.model.resumable import encode_file
from isoglot.scale.shards import NOTE, Shards, open_shards, select_range
from isoglot.scale.work import Cluster, run

_OPENING = ("pooling", "prompt")
_ENCODING = ("normalize_embeddings", "batch_tokens", "truncate_dim", "dtype", "precision")
LINES = 100_000  # in a piece: minutes for a transformer on one core, 150 MB of 384 dimensions


@check_arguments()
def encode_shards(
    model: str,
    inputs: Sequence[Path],
    output: Path,
    *,
    cluster: Cluster | None = None,
    lines: PositiveInt = LINES,
    shard: tuple[int, int] | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Shards:
    """Vectors of every line of text files, in their order, as `.npy` files in a folder. An empty line has one too.

    model     as `isoglot.load` takes it; every machine must find it, in its cache or on a shared disk
    inputs    text, one sentence per line, plain or compressed, on a disk that every machine sees, as must be `output`
    lines     lines of one piece
    shard     (3, 64): the third of 64 equal ranges of the pieces, which jobs write into one folder; None: all pieces
    settings  `pooling` and `prompt`, as `load` takes them, and `normalize_embeddings`, `batch_tokens`, `truncate_dim`,
              `dtype` ("float32", "float16") and `precision`, as `encode` takes them; None is the default
    progress  called with (pieces done, pieces in all)

    Pieces that are there already are kept. With the same pieces and `cluster.cpus`, a cluster of processors of one kind
    gives the same bits as one process; accelerators give the same up to rounding. With `shard`, the result has the
    pieces of that range; once all jobs are done, `open_shards(output)` has all of them. Raises `EncoderError` for two
    inputs of one name, a folder that contains other vectors, and what `load` and `encode` reject, which leaves no
    folder behind; `CorpusError` for text that cannot be read; `ValueError` for an unknown setting.
    """
    cluster = cluster or Cluster()
    settings = {name: value for name, value in (settings or {}).items() if value is not None}
    if unknown := settings.keys() - {*_OPENING, *_ENCODING}:
        raise ValueError(f"unknown setting {min(unknown)!r}; {nearest(min(unknown), (*_OPENING, *_ENCODING))}")
    opening = {name: settings.pop(name) for name in _OPENING if name in settings}
    all_pieces = list(_pieces(inputs, output, lines))
    pieces = all_pieces[select_range(len(all_pieces), shard or (1, 1))]
    try:
        precision = _choose_precision(model, opening, settings, cluster)
        weights = digest_of(find(model))
        made_of = {
            "model": model, "weights": weights, "settings": opening | settings, "precision": precision,
            "inputs": [(path.name, digest(path)) for path in inputs], "lines": lines,
        }  # fmt: skip
        _claim(output, made_of, pieces=len(all_pieces))
        missing = [piece for piece in pieces if not piece[2].exists()]
        name = str(Path(model).resolve()) if Path(model).is_dir() else model
        shared = (name, weights, opening, {**settings, "precision": precision}, cluster)
        # Results are files, so any number may wait for a slow piece.
        made = run(_encode_piece, missing, cluster, shared=shared, waiting=math.inf)
        for done, _ in enumerate(made, len(pieces) - len(missing) + 1):
            if progress is not None:
                progress(done, len(pieces))
    except (ValueError, TypeError, RuntimeError) as error:
        raise EncoderError(f"{model}: {error}") from error
    return open_shards([piece[2] for piece in pieces]) if pieces else Shards((), (), 0)


def _pieces(inputs: Sequence[Path], output: Path, lines: int) -> Iterator[tuple[Path, int, Path, int]]:
    """Input file, first line, output file and number of lines of every piece."""
    names: dict[str, Path] = {}
    for path in inputs:
        name = without_compression(path.name)
        if name in names:
            raise EncoderError(f"{path} and {names[name]} would both be written as {name}-*.npy; rename one")
        names[name] = path
        total = sum(1 for _ in read_texts(path))
        for number, first in enumerate(range(0, total, lines)):
            vectors = output.resolve() / f"{name}-{number:06d}.npy"
            yield path.resolve(), first, vectors, min(lines, total - first)


def _choose_precision(model: str, opening: Mapping[str, Any], encoding: dict[str, Any], cluster: Cluster) -> str:
    """The precision of all pieces, chosen here, because workers on different hardware would choose different ones.

    Takes it out of `encoding`, and raises what the workers would, before anything is written.
    """
    precision = encoding.pop("precision", None)
    opened = load(model, device="auto" if cluster.gpus else "cpu", **opening)
    settled = plan(opened, precision=precision, **encoding).precision
    if precision in (None, "auto") and cluster.gpus and cluster.address is not None and str(opened.device) == "cpu":
        settled = "bfloat16"  # the accelerators are on other machines, and those since Ampere multiply it in hardware
    opened.at(settled)
    return settled


def _claim(folder: Path, made_of: dict[str, Any], *, pieces: int) -> None:
    """Record the origin of the vectors in the folder, and how many pieces they are, or raise if it contains others."""
    note = folder / NOTE
    # Looked for before the record is read: another job, which may be making both now, writes the record first.
    has_vectors = any(folder.glob("*.npy"))
    recorded = read_record(note)
    if recorded is not None:
        if changed := differences(made_of, recorded):
            problem = f"contains vectors of another run ({', '.join(changed)})"
            raise EncoderError(f"{folder}: {problem}; choose an empty folder")
    elif has_vectors:
        raise EncoderError(f"{folder}: contains vectors of unknown origin; choose an empty folder")
    else:
        write_record(note, {**made_of, "pieces": pieces})


def _encode_piece(
    model: str, weights: str, opening: dict[str, Any], encoding: dict[str, Any], place: Cluster,
    path: Path, first: int, output: Path, lines: int,
) -> None:  # fmt: skip
    texts = (text for _, text in islice(read_texts(path), first, first + lines))
    with limit_cores(place.cpus):
        encoder = _encoder(model, weights, "auto" if place.gpus else "cpu", **opening)
        encode_file(encoder, texts, output=output, **encoding)


@lru_cache(maxsize=1)
def _encoder(model: str, weights: str, device: str, **settings: Any) -> Model:  # noqa: ARG001 - a model that was trained on is another
    """The model, opened once in a process, which works on many pieces."""
    return load(model, device=device, **settings)
