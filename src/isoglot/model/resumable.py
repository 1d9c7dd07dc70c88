"""Encodes texts into a file of vectors, and resumes after an interruption, even by kill -9 or a power cut.

Rows are kept in `isoglot.data.store.Rows`, a block for each window of some thousand texts, with a digest of all
texts so far: texts that were done are read again and compared, not encoded. Windows depend on the texts, not on where a
run stopped, so the finished file has the same bytes as after an uninterrupted run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EncoderError, OutputError
from isoglot.core.progress import Progress, Report
from isoglot.data.files import check_output, differences, exclusive
from isoglot.data.formats import read_texts
from isoglot.data.store import Rows, journal_of
from isoglot.model.backend import Backend
from isoglot.model.engine import Window, engine, plan

_STEP = 16_384  # texts compared at a time


def encode_file(
    model: Backend,
    source: str | Path | Iterable[str],
    *,
    output: str | Path,
    prompt: str | None = None,
    workers: int | Sequence[Any] = 1,
    keep: bool = False,
    progress: Progress | None = None,
    report: Report | None = None,
    **settings: Any,
) -> NDArray[np.floating]:
    """Write a .npy file with one row for each text; the rows, as a read-only memory map.

    source    a text file, one text per line, an empty line too (`.jsonl`: a JSON string per line), or texts, read once
    output    the file; rows are in `OUTPUT.partial` until all are done, and the same call resumes after the last
              finished window
    keep      for a work folder: write `output` itself and keep its journal, so that the same call compares checksums
              and encodes nothing; what another file, other settings or another model left is replaced
    progress  called with (texts done, texts in all, if that is known); repeated texts of this run count once
    report    called with a line about the number of texts already encoded
    settings  of `Model.encode`: normalize_embeddings, batch_size, batch_tokens, truncate_dim, dtype, precision

    Raises CorpusError for an input that can't be read, EncoderError if the run
    that was stopped had another model, other settings or other texts, and OutputError if the output can't be written,
    is the input, or is being written by another process.
    """
    given = Path(source) if isinstance(source, str | Path) else None
    target = Path(os.path.realpath(output))
    path = target if keep else partial_path(target)
    for each in (target, path, journal_of(path)):
        check_output(each, inputs=[given])
    if target.exists() and not target.is_file():
        raise OutputError(f"{target}: is not a regular file, as resuming needs; choose the name of a .npy file")
    places = model.places(workers)
    asked = plan(model, **settings, devices=places)
    if given is not None:
        next(read_texts(given))  # raises for a file that can't be read before anything is written
    note = {"encoder": model.identity(), "settings": {**asdict(asked), "prompt": prompt}}
    before = 0

    def tick(done: int, _total: int | None) -> None:
        if progress is not None:
            progress(before + done, len(source) if isinstance(source, Sequence) and given is None else None)

    with exclusive(target), engine(model, asked, prompt=prompt, places=places, progress=tick) as blocks:
        rows, texts, hashed = _resume(path, source, note, replace=keep)
        before = len(rows)
        if before and report is not None:
            report(f"resuming after {before:,} lines")
        with rows:
            _write(rows, blocks(texts), hashed)
        rows.finish(None if keep else target)
    mapped: NDArray[np.floating] = np.load(target, mmap_mode="r")
    return mapped


def _write(rows: Rows, blocks: Iterator[tuple[Window, NDArray[np.floating]]], hashed: Any) -> None:
    """Append each window while the next one is computed, in their order.

    An error of either is raised here, after the window that was being written is complete.
    """

    def append(window: Window, block: NDArray[np.floating]) -> None:
        hashed.update(_serialize(window.texts))
        rows.append(block, texts=hashed.hexdigest())

    with ThreadPoolExecutor(1, thread_name_prefix="write") as writer:
        written: Future[None] | None = None
        for window, block in blocks:
            if written is not None:
                written.result()  # one at a time, to bound the memory and to stop at the first error
            written = writer.submit(append, window, block)
        if written is not None:
            written.result()


def partial_path(output: str | Path) -> Path:
    """Where the rows of a run are until it is finished."""
    return Path(f"{Path(output)}.partial")


def _resume(
    path: Path, source: str | Path | Iterable[str], note: dict[str, Any], *, replace: bool
) -> tuple[Rows, Iterator[str], Any]:
    """The rows that are done, begun if there are none, the texts that are still to do, and the digest so far."""
    rows = Rows(path, replace=replace)
    rows.verify()
    texts, hashed = _texts(source), hashlib.sha256()
    other = _difference(rows, note, texts, hashed) if len(rows) else ""
    if other and not replace:
        advice = "repeat that run unchanged, delete this file to start over, or choose another output"
        raise EncoderError(f"{path}: is of a run that differs in {other}; {advice}")
    if other or not len(rows):
        rows.begin(note, width=note["settings"]["width"], dtype=note["settings"]["dtype"])
        texts, hashed = _texts(source), hashlib.sha256()
    return rows, texts, hashed


def _difference(rows: Rows, note: dict[str, Any], texts: Iterator[str], hashed: Any) -> str:
    """What differs from the run that was stopped, or an empty string.

    The texts that are done are taken from `texts`, and added to the digest `hashed`.
    """
    if changed := differences(note, rows.note or {}):
        return ", ".join(changed)
    done = 0
    for record in rows.records:
        while part := list(islice(texts, min(_STEP, record["rows"] - done))):
            hashed.update(_serialize(part))
            done += len(part)
        if done < record["rows"] or hashed.hexdigest() != record["texts"]:
            return "its input"
    return ""


def _texts(source: str | Path | Iterable[str]) -> Iterator[str]:
    return (text for _, text in read_texts(source)) if isinstance(source, str | Path) else iter(source)


def _serialize(texts: list[str]) -> bytes:
    """The texts with their lengths, because a text that does not come from a line may contain line ends."""
    return "".join([f"{len(text)}\n{text}" for text in texts]).encode("utf-8", "surrogatepass")
