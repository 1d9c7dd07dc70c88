"""`isoglot tasks`: the tasks and suites, and which of them have their data in a folder."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli.console import wrapped
from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS, Task
from isoglot.evaluation.suites import SUITES


def show_list(data: Path | None) -> None:
    """Print suites, then tasks; with a folder of data, how many subsets of each task are in it."""
    typer.secho("Suites", bold=True)
    for name, suite in SUITES.items():
        _entry(name, f"{suite.about}; tasks: {', '.join(suite.tasks)}")
    typer.secho("Tasks", bold=True)
    for name, task in TASKS.items():
        _entry(f"{name}{'' if data is None else _found(task, data)}", f"needs {task.needs}")


def _found(task: Task, data: Path) -> str:
    try:
        return f" ({len(task.subsets(data)) or 'no'} subsets in {data})"
    except EvaluationError as error:
        return f" ({error})"


def _entry(name: str, about: str) -> None:
    typer.secho(name, fg="cyan")
    typer.echo(wrapped(about, indent="    "))
