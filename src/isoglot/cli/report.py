"""`isoglot report`: write results as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import from_stdin, say, to_stdout
from isoglot.cli.options import split


def report(
    results: Annotated[
        list[Path],
        typer.Argument(help="Folders of results, or results.json files, - for stdin; the first is the baseline."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output HTML file; - for stdout.")] = Path("page.html"),
    seen: Annotated[str, typer.Option(help="Languages of the training data, separated by commas.")] = "",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write results as one self-contained HTML page."""
    from isoglot.data.files import check_output
    from isoglot.evaluation.scores import files_of, read_results
    from isoglot.report.page import write_page

    with from_stdin(*results) as paths, to_stdout(output, "html") as target:
        check_output(target, inputs=[file for path in paths for file in files_of(path)])
        write_page(target, [read_results(path) for path in paths], seen=split(seen), title=title)
    say(f"wrote {output}")
