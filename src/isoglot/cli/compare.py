"""`isoglot compare`: systems side by side on the same test items, with intervals and tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli.console import say, show_grid, show_json
from isoglot.cli.options import Json, Settings
from isoglot.cli.signatures import Of
from isoglot.core.arguments import NonNegativeInt

if TYPE_CHECKING:
    from isoglot.evaluation.base import Score
    from isoglot.report.tables import Grid


def compare(
    results: list[str],
    *,
    settings: Annotated[Settings, Of("evaluation.compare:compare", "tasks", "metrics", "resamples", "seed")],
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    page: Path | None = None,
    examples: NonNegativeInt = 0,
    data: Annotated[Path | None, typer.Option(show_default="$ISOGLOT_DATA or data")] = None,
    as_json: Json = False,
) -> None:
    """Compare results item by item: confidence intervals, paired tests, wins and losses per language.

    results   folders of results, PATH or NAME=PATH; the first is the baseline, equal names are random seeds, as are the
              folders of results in one such as an arm of a sweep; PATH+PATH joins results of different tasks
    output    folder for compare.md, compare.tex and compare.json
    page      output HTML page with all figures
    examples  number of pairs to show that the second system ranks better, and worse
    data      folder of the data sets, for --examples
    """
    from isoglot.data.files import check_output, check_outputs, read_record
    from isoglot.evaluation.compare import compare, parts_of, seeds_of
    from isoglot.evaluation.scores import files_of

    named = [_named(argument) for argument in results]
    parts = [part for _, path in named for seed in seeds_of(path) for part in parts_of(seed)]
    inputs = [file for part in parts for file in files_of(part)]
    if output is not None:
        check_output(output, folder=True)
        read_record(output / "compare.json", ("systems", "tables"))
    tables = [output / f"compare.{kind}" for kind in ("md", "tex", "json")] if output is not None else []
    check_outputs(*tables, page, inputs=inputs)
    comparison = compare(*(path for _, path in named), names=[name for name, _ in named], **settings)
    if as_json:
        show_json(comparison.to_dict())
    else:
        for grid in comparison.grids():
            show_grid(grid)
            typer.echo()
        typer.echo(comparison.method)
        for grid in _examples(named, settings.get("tasks", []), examples, data) if examples else ():
            show_grid(grid)
    for line in comparison.left_out:
        say(f"skipped: {line}")
    if output is not None:
        comparison.save(output)
        say(f"wrote {', '.join(map(str, tables))}")
    if page is not None:
        comparison.page(page)
        say(f"wrote {page}")


def _named(argument: str) -> tuple[str | None, str]:
    from isoglot.core.errors import EvaluationError

    name, mark, path = argument.partition("=")
    if not mark or "/" in name or Path(argument).exists():  # a path may contain "=" itself
        return None, argument
    if not name or not path:
        raise EvaluationError(f"{argument!r} is neither a path nor NAME=PATH")
    return name, path


def _examples(named: list[tuple[str | None, str]], tasks: list[str], count: int, data: Path | None) -> tuple[Grid, ...]:
    from isoglot.core import environment
    from isoglot.core.errors import EvaluationError
    from isoglot.evaluation.compare import parts_of, seeds_of
    from isoglot.evaluation.examples import examples
    from isoglot.evaluation.scores import read_results

    systems: dict[str, list[list[Score]]] = {}
    for name, path in named:
        for seed in seeds_of(path):
            scores = [score for part in parts_of(seed) for score in read_results(part)]
            systems.setdefault(name or path, []).append(scores)
    if len(systems) != 2 or len(tasks) != 1:
        raise EvaluationError("--examples needs two systems, and one similarity task in --tasks")
    (first, base), (second, other) = systems.items()
    return examples(base, other, tasks[0], data=data or environment.data_folder(), count=count, names=(first, second))
