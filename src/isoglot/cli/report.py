"""`isoglot report`: results as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot.data.files import check_output
from isoglot.report.page import write_page
from isoglot.report.scores import files_of, read_results


def run(results: Sequence[Path], output: Path, *, seen: Sequence[str], title: str | None) -> None:
    """Write the page; of several results, the first is the base. Without a title, the page has its usual one."""
    check_output(output, inputs=[file for path in results for file in files_of(path)])
    found = [read_results(path) for path in results]
    typer.echo(f"drawing {sum(len(result.scores) for result in found):,} scores of {len(found)} model(s) …", err=True)
    if title is None:
        write_page(output, found, seen=seen)
    else:
        write_page(output, found, seen=seen, title=title)
    typer.echo(f"wrote {output}", err=True)
