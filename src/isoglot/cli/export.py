"""`isoglot export`: an index as one Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import IndexFolder


def export(
    index: IndexFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Output Parquet file: id, text, language, vector.")],
) -> None:
    """Export an index as one Parquet file, for any vector database."""
    from isoglot.data.files import check_output
    from isoglot.index import Index

    check_output(output)
    with Index.open(index) as found:
        rows = found.export(output)
    say(f"{rows:,} sentences: {output}")
