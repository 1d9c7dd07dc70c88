"""Initial entity vectors instead of Wikipedia2Vec's: an encoder's vectors of the entities' names."""

from __future__ import annotations

from pathlib import Path

from isoglot.data.entity_vectors import Aligned
from isoglot.data.readers.entities import TABLE, read_table
from isoglot.model import Model, encode


def encode_names(encoder: Model, folder: str | Path) -> Aligned:
    """Unit vectors (E, D) of the labels in the entities.tsv of a folder that `isoglot wikipedia` wrote, in its order.

    Deviation: the paper begins with Wikipedia2Vec's vectors; an encoder that is strong in similarity knows more of the
    names than the entities' links do. Raises `CorpusError` for a folder without a table.
    """
    rows = list(read_table(Path(folder) / TABLE))
    vectors = encode(encoder, [label for _, _, label in rows], normalize_embeddings=True)
    return Aligned(vectors, tuple(name for name, _, _ in rows))
