"""`isoglot report`: write results as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import split


def report(
    results: Annotated[
        list[Path], typer.Argument(help="Folders of results, or results.json files; the first is the baseline.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output HTML file.")] = Path("page.html"),
    seen: Annotated[str, typer.Option(help="Languages of the training data, separated by commas.")] = "",
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write results as one self-contained HTML page."""
    from isoglot.data.files import check_output
    from isoglot.report.page import write_page
    from isoglot.report.scores import files_of, read_results

    check_output(output, inputs=[file for path in results for file in files_of(path)])
    write_page(output, [read_results(path) for path in results], seen=split(seen), title=title)
    say(f"wrote {output}")
