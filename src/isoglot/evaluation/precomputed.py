"""Vectors made elsewhere: which texts the tasks ask for, and a table of their vectors as a function.

Any program can be evaluated so, without a word of Python: write the texts, encode them there, come back with a table.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write, read_texts
from isoglot.data.vectors import open_table, require_finite
from isoglot.errors import CorpusError, EvaluationError
from isoglot.evaluation.base import Encode


def write_texts(path: Path, texts: Sequence[str]) -> None:
    """Write one JSON string a line, so that a text may hold anything, a line feed too."""
    with atomic_write(path) as file:
        file.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)


def precomputed(vectors: Path, texts: Path) -> Encode:
    """A function that looks texts up: row i of the `.npy` table (N, D) belongs to line i of `texts`.

    `texts` holds JSON strings when its name ends in `.jsonl`, plain lines otherwise. The function raises
    `EvaluationError` for a text that is not there, this one for files that do not fit and for a row that is not finite.
    """
    try:
        table = open_table(vectors)
        require_finite(table, vectors)
        listed = [text for _, text in read_texts(texts)]
    except CorpusError as error:
        raise EvaluationError(str(error)) from error
    if len(table) != len(listed):
        raise EvaluationError(
            f"{vectors}: has shape {table.shape} for the {len(listed)} lines of {texts}; encode them again"
        )
    places: dict[str, int] = {}
    for row, text in enumerate(listed):
        first = places.setdefault(text, row)
        if first != row and not np.array_equal(table[first], table[row]):
            raise EvaluationError(
                f"{texts}: lines {first + 1} and {row + 1} are the same text, and their rows of {vectors} differ; "
                "encode without dropout, and each text alike"
            )

    def look_up(wanted: Sequence[str]) -> NDArray[Any]:
        missing = [text for text in wanted if text not in places]
        if missing:
            raise EvaluationError(
                f"{texts} lacks {len(missing)} of {len(wanted)} texts, the first {missing[0][:60]!r}; write all that "
                "the tasks need with --write-texts and encode those"
            )
        return np.asarray(table[[places[text] for text in wanted]]).reshape(len(wanted), table.shape[1])

    return look_up
