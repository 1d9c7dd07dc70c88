"""A teacher's vectors beside the batches of a stream, computed once for each distinct text and kept in the cache.

A folder of its own, named by the identity of the teacher (weights, tokenizer, prompt, pooling) and by everything that
the stream's text depends on, holds `vectors.npy`, one float32 row of length one for each distinct text, and
`index.npy`, the row of each sentence of the stream's table. Both are memory-mapped. `texts` is there until the vectors
are; they are written by `encode_file`, so that a computation that was killed goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic

import numpy as np

from isoglot.data.corpus import Corpus
from isoglot.data.files import atomic_write
from isoglot.data.table import Array, GroupTable
from isoglot.encoders import load
from isoglot.encoders.base import Encoder, identity
from isoglot.encoders.device import resolve
from isoglot.encoders.resumable import encode_file
from isoglot.environment import cache_folder
from isoglot.errors import CorpusError, EncoderError
from isoglot.settings import Recipe, TeacherSettings

Words = Callable[[str], None]

_LINE_BREAKS = re.compile(r"[\r\n]+")
_SILENCE = 30.0  # seconds between words about a long computation


def teacher_columns(
    teacher: Encoder | None, settings: TeacherSettings | None, corpus: Corpus, table: GroupTable, *, watch: Words
) -> Mapping[str, Callable[[Array], Array]]:
    """The columns that a stream's teacher adds to its batches; none without a teacher.

    `teacher` gives, for row numbers (n,) of the table, the teacher's vectors (n, D') float32, of length one, D' being
    the teacher's own width. Held in memory while texts are collected: some 150 bytes for each distinct one. A line
    break inside a sentence is read as a blank.

    Raises EncoderError for a damaged cache, CorpusError for sources that changed since the table was made.
    """
    if teacher is None or settings is None:
        return {}
    key = hashlib.sha256(f"{identity(teacher)} {corpus.digest()}".encode()).hexdigest()[:32]
    folder = cache_folder() / "teachers" / key
    vectors, index = folder / "vectors.npy", folder / "index.npy"
    if not vectors.exists():
        texts = folder / "texts"
        if not (index.exists() and texts.exists()):
            _collect(corpus, texts, index)
        name = settings.model
        watch(f"stream {corpus.name}: encoding its sentences by the teacher {name}, once for all runs")
        encode_file(teacher, texts, output=vectors, normalize_embeddings=True, progress=_telling(name, watch))
        texts.unlink(missing_ok=True)
    return {"teacher": _column(vectors, index, table)}


def open_teacher(recipe: Recipe, settings: TeacherSettings | None) -> Encoder | None:
    """The teacher on the device that there is, if there is one.

    Raises EncoderError for a model that cannot be opened and settings that do not fit it.
    """
    if settings is None:
        return None
    path = recipe.resolve(settings.model)
    try:
        teacher = load(
            path if path.is_dir() else settings.model,
            pooling=settings.pooling,
            prompt=settings.prompt,
            max_length=settings.max_length,
        )
    except (TypeError, ValueError) as error:
        raise EncoderError(f"{settings.model}: cannot be a teacher with these settings: {error}") from error
    return teacher.to(resolve())


def _collect(corpus: Corpus, texts: Path, index: Path) -> None:
    """Write the distinct texts, one a line, and which of them each row of the table is. The index comes last."""
    known: dict[bytes, int] = {}
    rows = array("q")
    with atomic_write(texts, binary=True) as stream:
        for text in _in_order(corpus):
            line = _LINE_BREAKS.sub(" ", text).encode("utf-8")
            fresh = len(known)
            number = known.setdefault(hashlib.blake2b(line, digest_size=16).digest(), fresh)
            if number == fresh:
                stream.write(line + b"\n")
            rows.append(number)
    with atomic_write(index, binary=True) as stream:
        np.save(stream, np.frombuffer(rows, np.int64))


def _in_order(corpus: Corpus) -> Iterator[str]:
    """Every sentence of the stream in the order of the table's rows."""
    for _, groups in corpus.named():
        for group in groups:
            yield from group.texts
            yield from group.hard_negatives


def _column(vectors: Path, index: Path, table: GroupTable) -> Callable[[Array], Array]:
    try:
        matrix, places = np.load(vectors, mmap_mode="r"), np.load(index, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise EncoderError(f"{vectors.parent}: damaged ({error}); delete this folder and run again") from error
    if len(matrix) != int(places.max(initial=-1)) + 1:
        raise EncoderError(f"{vectors.parent}: {len(matrix)} vectors do not fit the index; delete this folder")
    if len(places) != table.sentences:
        raise CorpusError(
            f"a teacher's vectors are of {len(places):,} sentences, but the stream has {table.sentences:,}: a file "
            "changed while it was read; delete this folder and run again",
            file=vectors.parent,
        )
    return lambda rows: np.asarray(matrix[places[rows]], dtype=np.float32)


def _telling(name: str, watch: Words) -> Callable[[int, int | None], None]:
    """A listener to the encoding that says now and then how far it is."""
    last = monotonic()

    def tell(done: int, _: int | None) -> None:
        nonlocal last
        if monotonic() - last > _SILENCE:
            last = monotonic()
            watch(f"teacher {name}: {done:,} distinct sentences encoded")

    return tell
