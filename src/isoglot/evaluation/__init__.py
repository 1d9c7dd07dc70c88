"""Tasks: each turns texts and their vectors into scores. A new one is its file and its line in `TASKS`."""

from __future__ import annotations

from isoglot.evaluation.base import Encode, Score, Task
from isoglot.evaluation.retrieval import Retrieval
from isoglot.evaluation.tatoeba import Tatoeba

TASKS: dict[str, Task] = {
    "tatoeba": Tatoeba(),
    "retrieval": Retrieval(),
}

__all__ = ["TASKS", "Encode", "Score", "Task"]
