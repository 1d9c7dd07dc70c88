"""`isoglot tasks`: list tasks and suites, and which of them have data in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isoglot.cli.console import wrapped
from isoglot.cli.options import DataIfThere

if TYPE_CHECKING:
    from isoglot.evaluation import Task


def tasks(data: DataIfThere) -> None:
    """List suites and tasks, with the number of subsets found in the data folder."""
    from isoglot.evaluation import TASKS
    from isoglot.evaluation.suites import SUITES

    typer.secho("Suites", bold=True)
    for name, suite in SUITES.items():
        _entry(name, f"{suite.about}; tasks: {', '.join(suite.tasks)}")
    typer.secho("Tasks", bold=True)
    for name, task in TASKS.items():
        _entry(f"{name}{'' if data is None else _found(task, data)}", f"needs {task.needs}")


def _found(task: Task, data: Path) -> str:
    from isoglot.core.errors import EvaluationError

    try:
        return f" ({len(task.subsets(data)) or 'no'} subsets in {data})"
    except EvaluationError as error:
        return f" ({error})"


def _entry(name: str, about: str) -> None:
    typer.secho(name, fg="cyan")
    typer.echo(wrapped(about, indent="    "))
