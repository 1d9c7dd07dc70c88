"""A teacher's vectors for the batches of a stream, computed once per distinct text and cached.

A folder of its own, named by the identity of the teacher (weights, tokenizer, prompt, pooling) and by everything that
the stream's text depends on, is a `VectorStore` of unit vectors, and `rows.npy`, the row there of each sentence of the
stream's table. Both are memory-mapped. The rows are written last: until then, a run that was killed finds the vectors
that are kept and computes the others.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import cast

import numpy as np
import torch

from isoglot.core.environment import cache_folder
from isoglot.core.errors import CorpusError, EncoderError, RecipeError
from isoglot.core.progress import Bar, Progress, Report
from isoglot.data.corpus import Corpus
from isoglot.data.files import atomic_write
from isoglot.data.languages import canonical, matches
from isoglot.data.store import BLOCK, Rows, VectorStore
from isoglot.data.table import Array, GroupTable
from isoglot.data.vectors import open_array, write_vectors
from isoglot.encoders import load
from isoglot.encoders.settings import OpenedSettings
from isoglot.evaluation.base import Encode
from isoglot.model import Model
from isoglot.model.base import cache_key
from isoglot.model.configs import reading
from isoglot.training.settings import Recipe, TeacherSettings
from isoglot.training.together import encode_together


def teacher_column(
    teacher: Model, settings: TeacherSettings, corpus: Corpus, table: GroupTable, *, report: Report
) -> Callable[[Array], Array]:
    """The column that a stream's teacher adds to its batches.

    It is, for row numbers (n,) of the table, the teacher's vectors (n, D') float32, of length one, D' being
    the teacher's own width: its vectors of the sentences themselves or, with a `pivot`, a language, of the sentence of
    each group in that language, or else its first, so that only these are encoded. All ranks call this at once and
    compute their shares of the vectors; rank 0 reads the corpus and writes them. It keeps in memory, while they are
    computed, some 150 bytes for each distinct text.

    Raises EncoderError for a damaged cache, CorpusError for sources that changed since the table was made, RecipeError
    for a pivot that no sentence is in.
    """
    pivot, precision = settings.pivot and canonical(settings.pivot), settings.precision
    if pivot and not any(matches(code, (pivot,)) for code in table.languages):
        raise RecipeError(f"streams.{corpus.name}.teacher.pivot: no sentence is in {pivot}")
    parts = [cache_key(teacher), corpus.digest(), pivot, "" if precision == "float32" else precision]
    key = hashlib.sha256(" ".join(filter(None, parts)).encode()).hexdigest()[:32]
    folder = cache_folder() / "teachers" / key

    def compute(encode: Encode) -> None:
        if not (folder / "rows.npy").exists():
            what = f"teacher {teacher.name}".rstrip()
            report(f"stream {corpus.name}: encoding its sentences with the {what}, once for all runs")
            _compute(encode, corpus, pivot, folder, Bar(what, unit="distinct sentences", write=report, every=30.0))

    encode_together(teacher, compute, normalize_embeddings=True, precision=precision)
    return _column(folder, table)


def open_teacher(recipe: Recipe, settings: TeacherSettings, device: torch.device) -> Model:
    """The teacher of a recipe, on a device.

    Raises EncoderError for a model that cannot be opened and settings that do not fit it.
    """
    if settings.held is not None:
        return cast(Model, settings.held)
    path = recipe.resolve(settings.model)
    try:
        return load(path if path.is_dir() else settings.model, **settings.options(OpenedSettings), device=device)
    except (TypeError, ValueError) as error:
        raise EncoderError(f"{settings.model}: cannot be a teacher with these settings: {error}") from error


def _compute(encode: Encode, corpus: Corpus, pivot: str, folder: Path, progress: Progress) -> None:
    """Keep the vectors of all distinct texts, then write the row of each sentence."""
    store, rows = VectorStore(folder), array("q")
    texts = _in_order(corpus, pivot)
    while block := list(islice(texts, BLOCK)):
        rows.extend(store.encode(encode, block).tolist())
        progress(len(store), None)
    with atomic_write(folder / "rows.npy", binary=True) as stream:
        write_vectors(stream, np.frombuffer(rows, np.int64), (), form="npy")


def _in_order(corpus: Corpus, pivot: str) -> Iterator[str]:
    """The text that the teacher encodes for every sentence of the stream, in the order of the table's rows."""
    for _, groups in corpus.source_groups():
        for group in groups:
            texts = [*group.texts, *group.hard_negatives]
            if pivot:
                place = next((place for place, code in enumerate(group.langs) if matches(code, (pivot,))), 0)
                texts = [texts[place]] * len(texts)
            yield from texts


def _column(folder: Path, table: GroupTable) -> Callable[[Array], Array]:
    matrix = Rows(folder / "vectors.npy", replace=True).table
    with reading(folder, "delete this folder and run again"):
        places = open_array(folder / "rows.npy")
    if len(matrix) <= int(places.max(initial=-1)):
        raise EncoderError(f"{folder}: vectors are missing from its cache; delete this folder and run again")
    if len(places) != table.sentences:
        raise CorpusError(
            f"a teacher's vectors are of {len(places):,} sentences, but the stream has {table.sentences:,}: a file "
            "changed while it was read; delete this folder and run again",
            file=folder,
        )
    return lambda rows: np.asarray(matrix[places[rows]], dtype=np.float32)
