"""`isoglot compare`: systems side by side on the same test items, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot.cli.console import say, show_grid, show_json
from isoglot.data.files import check_json, check_output
from isoglot.errors import EvaluationError
from isoglot.report.compare import compare
from isoglot.report.scores import files_of


def run(
    results: Sequence[str],
    *,
    tasks: Sequence[str],
    metrics: Sequence[str],
    resamples: int,
    seed: int,
    output: Path | None,
    page: Path | None = None,
    as_json: bool = False,
) -> None:
    """Compare folders of results or files, each `PATH` or `NAME=PATH`; equal names are seeds of one system.

    Tables go to stdout, what was left out to stderr, `compare.md` and `compare.json` into `output`, the HTML page to
    `page`. Raises `EvaluationError`.
    """
    named = [_named(argument) for argument in results]
    inputs = [file for _, path in named for file in files_of(Path(path))]
    if output is not None:
        check_output(output, folder=True)
        for name in ("compare.md", "compare.json"):
            check_output(output / name, inputs=inputs)
        check_json(output / "compare.json", ("systems", "tables"))
    if page is not None:
        check_output(page, inputs=inputs)
    found = compare(
        *(path for _, path in named),
        names=[name for name, _ in named],
        tasks=tasks,
        metrics=metrics,
        resamples=resamples,
        seed=seed,
    )
    if as_json:
        show_json(found.to_dict())
    else:
        for grid in found.grids():
            show_grid(grid)
            typer.echo()
        typer.echo(found.method)
    for line in found.left_out:
        say(f"left out: {line}")
    if output is not None:
        found.save(output)
        say(f"wrote {output / 'compare.md'} and {output / 'compare.json'}")
    if page is not None:
        found.page(page)
        say(f"wrote {page}")


def _named(argument: str) -> tuple[str | None, str]:
    name, mark, path = argument.partition("=")
    if not mark or "/" in name or Path(argument).exists():  # a path may hold "=" itself
        return None, argument
    if not name or not path:
        raise EvaluationError(f"{argument!r} is neither a path nor NAME=PATH")
    return name, path
