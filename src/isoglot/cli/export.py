"""`isoglot export`: write an index as Parquet, TSV, JSON lines or TMX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, say, to_stdout
from isoglot.cli.options import IndexFolder, output_format


def export(
    index: IndexFolder,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Output file: .parquet (with vectors), .tsv, .jsonl or .tmx; - for stdout."
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format", help="Output format: parquet, tsv, jsonl or tmx; default: by the name, jsonl for stdout."
        ),
    ] = None,
) -> None:
    """Export an index: Parquet for any vector database, TMX for a translation memory."""
    from isoglot.index import Index
    from isoglot.index.exporting import FORMATS

    stdout = {".jsonl": "jsonl"} if str(output) == "-" else {}
    form = output_format(output, stdout | FORMATS, given=form)
    with (
        Index.open(index) as found,
        to_stdout(output, form) as target,
        Progress("exporting", unit="sentences") as progress,
    ):
        rows = found.export(target, format=form, progress=progress)
    say(f"{rows:,} {'translation units' if form == 'tmx' else 'sentences'}: {output}")
