"""Reading test sets: the parts of a task's sets below the data folder, with errors that begin with the task.

Tasks know sets and splits; files and layouts are the business of `isoglot.data.sets`. What a layout is imported into
is kept in the cache folder, so a set is imported once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isoglot.data.sets.importers import IMPORTERS, find_parts
from isoglot.data.sets.normal import Part, Rows, read
from isoglot.environment import cache_folder
from isoglot.errors import CorpusError, EvaluationError


def cache() -> Path:
    """The folder of what was imported."""
    return cache_folder() / "sets"


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A part of the set called `name`."""

    name: str
    part: Part

    def read(self, where: str) -> Rows:
        """Its rows, at least one. Raises `EvaluationError`; `where` (task, subset) opens the message."""
        try:
            return read(self.name, self.part, cache=cache())
        except CorpusError as error:
            raise EvaluationError(f"{where}: {error}") from error


def in_memory(subset: str, rows: Rows) -> Source:
    """Rows that were not read from a file, in the place of those of a set."""
    return Source("", Part("test", subset, (), (), lambda: rows))


def sources(task: str, names: Sequence[str], data: Path, *, merge: bool = False) -> dict[tuple[str, str], Source]:
    """(split, subset) -> source, of the first of the sets that is there; with `merge` the others add what it lacks.

    Raises `EvaluationError`, opened by the task, for a copy that cannot be used.
    """
    found: dict[tuple[str, str], Source] = {}
    for name in names:
        if found and not merge:
            break
        try:
            for key, part in find_parts(name, data).items():
                found.setdefault(key, Source(name, part))
        except CorpusError as error:
            raise EvaluationError(f"{task}: {error}") from error
    return found


def needs(*names: str) -> str:
    """Which files the sets are found in and where they come from, for the message that they are missing."""
    return ", or ".join(IMPORTERS[name].needs for name in names)
