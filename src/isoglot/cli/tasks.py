"""`isoglot tasks`: what can be evaluated, and for which of it the data are here."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from isoglot.evaluation import TASKS
from isoglot.evaluation.suites import SUITES


def show_list(data: Path | None) -> None:
    """Print suites, then tasks; with a folder of data, how many subsets of each task are in it."""
    console = Console()
    suites = Table("suite", "what it is", "tasks", title="Suites", title_justify="left")
    for name, suite in SUITES.items():
        suites.add_row(name, suite.about, ", ".join(suite.tasks))
    console.print(suites)
    here = () if data is None else (f"subsets in {data}",)
    table = Table("task", "needs", *here, title="Tasks", title_justify="left")
    for name, task in TASKS.items():
        found = () if data is None else (str(len(task.subsets(data)) or "–"),)
        table.add_row(name, task.needs, *found)
    console.print(table)
