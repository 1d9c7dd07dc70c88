"""From a file of lines to a file of vectors, going on where a run was stopped, were it by kill -9 or a power cut.

Rows are written to `OUTPUT.partial`. After each window of some thousand lines they are forced to disk, and only then
does the journal, `OUTPUT.partial.json`, say so; rows that the journal does not know are dropped and computed again.
Windows end where the lines say, not where a run stopped, so the finished file has the very bytes of an uninterrupted
run. The partial file gets its header last (see vectorfile.py), and its name after that.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from isoglot.data.files import atomic_write, check_output, exclusive, read_lines, writing
from isoglot.encoders import vectorfile
from isoglot.encoders.base import Encoder, identity
from isoglot.encoders.engine import Plan, engine, plan
from isoglot.encoders.engine import places as places_of
from isoglot.errors import EncoderError, OutputError
from isoglot.progress import Progress

_FORMAT = 1
_WHAT = {"format": "version of isoglot", "encoder": "model", "size": "input", "settings": "set of settings"}


@dataclass(frozen=True, slots=True)
class Journal:
    """How far a run came: `lines` of the input are done, and `digest` is the SHA-256 of these, each with a line feed.

    `encoder` is its identity, `size` the input file's bytes, `settings` those that rows or windows depend on.
    """

    encoder: str
    size: int
    settings: dict[str, Any]
    lines: int = 0
    digest: str = field(default_factory=lambda: hashlib.sha256().hexdigest())
    format: int = _FORMAT


def encode_file(
    encoder: Encoder,
    source: str | Path,
    *,
    output: str | Path,
    prompt: str | None = None,
    normalize_embeddings: bool | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    dtype: DTypeLike = np.float32,
    precision: str = "float32",
    workers: int | Sequence[str | torch.device] = 1,
    progress: Progress | None = None,
    resumed: Callable[[int], None] | None = None,
) -> NDArray[np.floating]:
    """Write a .npy file with one row for each line of a text file; the rows, as a read-only memory map.

    An empty line has a row too. Settings are those of `encode`. If an earlier run to this output was stopped, go on
    after its last finished window, and tell `resumed` how many lines are done already.

    Raises CorpusError for an input that cannot be read, EncoderError if the run that was stopped had another model,
    other settings or another input, and OutputError if the output can't be written, is the input, or is being written
    by another process.
    """
    given, target = Path(source), Path(os.path.realpath(output))
    for path in (target, partial_path(target), journal_path(target)):
        check_output(path, inputs=[given])
    places = places_of(encoder, workers)
    asked = plan(
        encoder,
        normalize_embeddings=normalize_embeddings,
        batch_tokens=batch_tokens,
        truncate_dim=truncate_dim,
        dtype=dtype,
        precision=precision,
        devices=places,
    )
    next(read_lines(given))  # a file that cannot be read is told before anything is written
    if target.exists() and not target.is_file():
        raise OutputError(f"{target}: is not a regular file, as resuming needs; choose the name of a .npy file")
    told = {**asdict(asked), "prompt": prompt}
    begun = Journal(identity(encoder), given.stat().st_size, told)
    with (
        exclusive(target),
        engine(encoder, asked, prompt=prompt, places=places, progress=progress) as blocks,
        _partial(target) as stream,
    ):
        journal = _found(target, stream, begun)
        hashed = hashlib.sha256()
        rest = _skip(given, journal, hashed, target)
        if journal.lines and resumed is not None:
            resumed(journal.lines)
        for window, rows in blocks(rest):
            hashed.update(_bytes(window.texts))
            _append(stream, rows, target)
            journal = replace(journal, lines=journal.lines + len(window.texts), digest=hashed.hexdigest())
            _write(journal, target)
        _complete(stream, journal, asked, target)
        partial_path(target).replace(target)
        journal_path(target).unlink()
    mapped: NDArray[np.floating] = np.load(target, mmap_mode="r")
    return mapped


def partial_path(output: str | Path) -> Path:
    """Where the rows of a run are until it is finished."""
    path = Path(output)
    return path.with_name(path.name + ".partial")


def journal_path(output: str | Path) -> Path:
    """Where it is written how many of these rows are sound."""
    path = Path(output)
    return path.with_name(path.name + ".partial.json")


@contextmanager
def _partial(target: Path) -> Iterator[BinaryIO]:
    """The partial file, open for reading and writing; what can't be written to it raises OutputError."""
    path = partial_path(target)
    with writing(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    with os.fdopen(descriptor, "r+b") as stream:
        yield stream


def _found(target: Path, stream: BinaryIO, begun: Journal) -> Journal:
    """The journal to go on from, checked against what is asked for now, with the partial file cut to what it knows."""
    path, size = journal_path(target), os.fstat(stream.fileno()).st_size
    journal = _read(path) if path.exists() else begun
    if size and not path.exists():
        raise OutputError(
            f"{partial_path(target)}: exists without the journal of an encoding; move it away, or choose another output"
        )
    if not size:
        journal = begun  # that of a run that ended as its rows got their name
    for name, what in _WHAT.items():
        if getattr(journal, name) != getattr(begun, name):
            raise _refusal(target, f"was begun with another {what}")
    end = vectorfile.HEADER + journal.lines * _row(journal.settings)
    if journal.lines and size < end:
        raise _refusal(target, f"holds {size} bytes where its journal says {end}")
    _write(journal, target)  # before the first byte: rows without a journal are not ours
    with writing(partial_path(target)):
        stream.truncate(end)
        stream.seek(0, os.SEEK_END)
    return journal


def _read(path: Path) -> Journal:
    try:
        return Journal(**json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise EncoderError(f"{path}: is no journal of an encoding ({error}); delete it to begin anew") from None


def _refusal(target: Path, why: str) -> EncoderError:
    return EncoderError(
        f"{partial_path(target)}: {why}; repeat that run as it was, or delete this file to begin anew, or name "
        "another output"
    )


def _skip(source: Path, journal: Journal, hashed: Any, target: Path) -> Iterator[str]:
    """The lines that are still to do, after those that are done have been read again and found to be the same."""
    lines = (text for _, text in read_lines(source))
    left = journal.lines
    while left and (block := list(islice(lines, min(left, 16_384)))):
        hashed.update(_bytes(block))
        left -= len(block)
    if left or hashed.hexdigest() != journal.digest:
        raise _refusal(target, f"was begun with other lines than {source} has now")
    return lines


def _bytes(texts: list[str]) -> bytes:
    return "".join([f"{text}\n" for text in texts]).encode("utf-8", "surrogatepass")


def _row(settings: dict[str, Any]) -> int:
    return int(settings["width"]) * int(np.dtype(settings["dtype"]).itemsize)


def _append(stream: BinaryIO, rows: NDArray[np.floating], target: Path) -> None:
    with writing(partial_path(target)):
        stream.write(np.ascontiguousarray(rows).data)
        stream.flush()
        os.fsync(stream.fileno())


def _write(journal: Journal, target: Path) -> None:
    with atomic_write(journal_path(target)) as stream:
        json.dump(asdict(journal), stream)


def _complete(stream: BinaryIO, journal: Journal, asked: Plan, target: Path) -> None:
    with writing(partial_path(target)):
        stream.seek(0)
        stream.write(vectorfile.header(journal.lines, asked.width, asked.dtype))
        stream.flush()
        os.fsync(stream.fileno())
