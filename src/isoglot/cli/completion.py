"""Completion of the names of recipes, models and tasks in the shell.

Importing what lists them takes seconds, so the names are kept in the cache folder until a file of isoglot changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import isoglot
from isoglot.core.environment import cache_folder
from isoglot.core.errors import OutputError

_KINDS = {"recipe": "recipe", "tasks": "task", "model": "model", "subject": "model", "words": "model"}  # by parameter


def of_parameter(name: str) -> Callable[[str], list[str]] | None:
    """The function that completes the values of the parameter of that name of any verb; None if nothing does."""
    kind = _KINDS.get(name)
    return None if kind is None else lambda incomplete: completed(kind, incomplete)


def completed(kind: str, incomplete: str) -> list[str]:
    """The names of a kind that begin with what is typed; of a list, with what is typed after its last comma."""
    before, comma, last = incomplete.rpartition(",") if kind == "task" else ("", "", incomplete)
    return [f"{before}{comma}{name}" for name in _names()[kind] if name.startswith(last)]


def _names() -> dict[str, list[str]]:
    home = Path(isoglot.__file__).parent
    newest = max(path.stat().st_mtime for path in home.rglob("*") if path.suffix in (".py", ".toml"))
    kept = cache_folder() / "names.json"
    with suppress(OSError, ValueError):
        if kept.stat().st_mtime > newest:
            found: dict[str, list[str]] = json.loads(kept.read_text(encoding="utf-8"))
            return found
    from isoglot.data.files import atomic_write
    from isoglot.evaluation import TASKS
    from isoglot.evaluation.suites import SUITES
    from isoglot.model import packaged
    from isoglot.training import recipe

    names = {"recipe": list(recipe.names()), "task": [*TASKS, *SUITES], "model": packaged.names()}
    with suppress(OSError, OutputError), atomic_write(kept) as stream:
        json.dump(names, stream)
    return names
