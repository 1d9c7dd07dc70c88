"""`isoglot compare`: systems side by side on the same items, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from isoglot.cli.shown import show_grid
from isoglot.data.files import check_json, check_output
from isoglot.errors import EvaluationError
from isoglot.report.comparison import compare
from isoglot.report.comparison_tables import grid, method, tallies, write_comparison
from isoglot.report.scores import Results, files_of, read_results


def run(
    results: Sequence[str],
    *,
    tasks: Sequence[str],
    metrics: Sequence[str],
    resamples: int,
    seed: int,
    output: Path | None,
) -> None:
    """Compare folders of results or files, each `PATH` or `NAME=PATH`; equal names are seeds of one system.

    The first system is the base. Tables go to stdout, what was left out to stderr, and `compare.md` and `compare.json`
    into `output`, if it is given. Raises `EvaluationError`.
    """
    if output is not None:
        inputs = [file for argument in results for file in files_of(_named(argument)[1])]
        check_output(output, folder=True)
        for name in ("compare.md", "compare.json"):
            check_output(output / name, inputs=inputs)
        check_json(output / "compare.json", ("systems", "tables"))
    found = compare(open_systems(results), tasks=tasks, metrics=metrics, resamples=resamples, seed=seed)
    console = Console()
    for table in found.tables:
        show_grid(grid(table, found.systems))
        for line in tallies(table, found.systems):
            console.print(Text(line))
        console.print()
    console.print(Text(method(found)))
    for line in found.left_out:
        typer.echo(f"left out: {line}", err=True)
    if output is not None:
        write_comparison(output, found)
        typer.echo(f"wrote {output / 'compare.md'} and {output / 'compare.json'}", err=True)


def open_systems(arguments: Sequence[str]) -> dict[str, list[Results]]:
    """The results of each system, by name, in the order of the arguments.

    A path without a name is called by its folder; where two would then be called the same, by the path as it was
    written, since two evaluations in folders of one name need not be seeds of one system. Raises `EvaluationError`.
    """
    pairs = [_named(argument) for argument in arguments]
    folders = [_folder(path) for name, path in pairs if not name]
    labels = [name or (one if folders.count(one := _folder(path)) == 1 else str(path)) for name, path in pairs]
    systems: dict[str, list[Results]] = {}
    for (name, path), label in zip(pairs, labels, strict=True):
        if not name and labels.count(label) > 1:
            raise EvaluationError(f"{path}: a second system is called {label!r}; write NAME={path}")
        systems.setdefault(label, []).append(read_results(path))
    return systems


def _named(argument: str) -> tuple[str, Path]:
    name, mark, path = argument.partition("=")
    if not mark or "/" in name or Path(argument).exists():  # a path may hold "=" itself
        return "", Path(argument)
    if not name or not path:
        raise EvaluationError(f"{argument!r} is neither a path nor NAME=PATH")
    return name, Path(path)


def _folder(path: Path) -> str:
    full = path.resolve()
    return full.parent.name if full.name == "results.json" else full.name
