"""Vectors computed by another program: the texts that tasks need as a file, and a table of their vectors as a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core import environment
from isoglot.core.errors import CorpusError, EvaluationError
from isoglot.core.progress import Report
from isoglot.data.files import atomic_write, check_output
from isoglot.data.formats import read_texts
from isoglot.data.vectors import open_table, require_finite
from isoglot.evaluation.base import Task
from isoglot.evaluation.run import texts_of


def export_texts(
    path: str | Path,
    tasks: Sequence[str | Task],
    *,
    data: str | Path | None = None,
    languages: Sequence[str] = (),
    report: Report | None = None,
) -> int:
    """Write every text that the tasks would encode, one JSON string per line, for `Precomputed`; how many there are.

    A text may contain anything, such as a line feed. `report` is called with a line for each task whose data are
    missing. Raises `EvaluationError` if no task has its data, and `OutputError`.
    """
    root = Path(data) if data is not None else environment.data_folder()
    check_output(path, inputs=[root])
    texts = texts_of(tasks, data=root, languages=languages, on_missing=report)
    if not texts:
        raise EvaluationError(f"{root}: none of the tasks {', '.join(map(str, tasks))} has its data there")
    with atomic_write(path) as file:
        file.writelines(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)
    return len(texts)


class Precomputed:
    """A function that looks texts up: row i of the `.npy` table (N, D) `vectors` belongs to line i of `texts`.

    `texts` contains JSON strings if its name ends in `.jsonl`, is a table by its suffix, else plain lines. Raises
    `EvaluationError` for files that do not fit and for a row that is not finite and, when it is called, for a text that
    is not there.
    """

    def __init__(self, vectors: str | Path, texts: str | Path) -> None:
        self.vectors, self.texts = Path(vectors), Path(texts)
        try:
            self._table = open_table(self.vectors)
            require_finite(self._table, self.vectors)
            listed = [text for _, text in read_texts(self.texts)]
        except CorpusError as error:
            raise EvaluationError(str(error)) from error
        if len(self._table) != len(listed):
            shape = self._table.shape
            raise EvaluationError(f"{vectors}: has shape {shape} for {len(listed)} lines of {texts}; encode them again")
        self._places: dict[str, int] = {}
        for row, text in enumerate(listed):
            first = self._places.setdefault(text, row)
            if first != row and not np.array_equal(self._table[first], self._table[row]):
                lines = f"{texts}: lines {first + 1} and {row + 1}"
                raise EvaluationError(f"{lines} are equal, and their rows of {vectors} differ; encode without dropout")

    def __call__(self, texts: Sequence[str]) -> NDArray[Any]:
        """Vectors (N, D) of N texts, in their order."""
        missing = [text for text in texts if text not in self._places]
        if missing:
            lacks = f"lacks {len(missing)} of {len(texts)} texts, the first {missing[0][:60]!r}"
            raise EvaluationError(f"{self.texts} {lacks}; encode all that --write-texts writes")
        rows = [self._places[text] for text in texts]
        return np.asarray(self._table[rows]).reshape(len(texts), self._table.shape[1])
