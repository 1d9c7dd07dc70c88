"""`isoglot export`: write an index as Parquet, TSV, JSON lines or TMX, or a model as ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, say, to_stdout
from isoglot.cli.options import Output, output_format

ONNX = "onnx"


def export(
    source: Annotated[str, typer.Argument(metavar="INDEX|MODEL")],
    *,
    output: Output,
    form: Annotated[str | None, typer.Option("--format")] = None,
    words: str | None = None,
) -> None:
    """Export an index: Parquet for any vector database, TMX for a translation memory; or a model for ONNX Runtime.

    source  folder of an index; with --format onnx, a model
    output  output file: .parquet (with vectors), .tsv, .csv, .jsonl, .tmx; - for stdout. Of a model: a folder
    form    output format: parquet, tsv, csv, jsonl or tmx; default: by the name, jsonl for stdout. Of a model:
            onnx
    words   word table in ONNX: int4, int8 or float32; default: int4
    """
    if form == ONNX:
        from isoglot.cli.convert import convert

        convert(source, output=output, weights=ONNX, words=words)
        return
    from isoglot.core.errors import OutputError
    from isoglot.data.formats import SUFFIXES
    from isoglot.index import Index
    from isoglot.model.layout import is_model

    if is_model(Path(source)):
        raise OutputError(f"{source}: is a model; to export it, pass --format onnx")
    stdout = {".jsonl": "jsonl"} if str(output) == "-" else {}
    form = output_format(output, stdout | SUFFIXES, given=form)
    with (
        Index.open(source) as found,
        to_stdout(output, form) as target,
        Progress("exporting", unit="sentences") as progress,
    ):
        rows = found.export(target, format=form, progress=progress)
    say(f"{rows:,} {'translation units' if form == 'tmx' else 'sentences'}: {output}")
