"""`isoglot export`: write an index as Parquet, TSV, JSON lines or TMX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import IndexFolder


def export(
    index: IndexFolder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file: .parquet (with vectors), .tsv, .jsonl or .tmx.")
    ],
) -> None:
    """Export an index: Parquet for any vector database, TMX for a translation memory."""
    from isoglot.data.files import check_output
    from isoglot.index import Index

    check_output(output)
    with Index.open(index) as found:
        rows = found.export(output)
    say(f"{rows:,} {'translation units' if output.suffix.lower() == '.tmx' else 'sentences'}: {output}")
