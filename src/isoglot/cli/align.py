"""`isoglot align`: align the sentences of two versions of one document, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli import console, options
from isoglot.cli.options import Columns, Json, Output, Settings
from isoglot.cli.signatures import Of

SETTINGS = ("most", "skip", "width", "min_score", "split", "languages", "format", "write_ids", "device")


def align(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] A B")],
    *,
    output: Output = Path("-"),
    settings: Annotated[Settings, Of("mining.alignment:align", *SETTINGS, device=typer.Option(metavar="DEVICE"))],
    columns: Columns = "",
    as_json: Json = False,
) -> None:
    """Align the sentences of two versions of one document, in order.

    words   model (optional) and two files (text, .tsv, .csv, .xlsx, .jsonl, .docx, .html, .md, .srt); - for stdin
    output  output file: .tsv, .csv, .jsonl, .tmx, .parquet, or x.de-en for Moses; - for stdout
    """
    from isoglot import mining
    from isoglot.core.errors import IsoglotError
    from isoglot.data.formats import columns_of

    options.check_stdout(output, as_json)
    model, files = options.model_and_files(words, most=2)
    if len(files) < 2:
        taken = f", since {model} is not one" if words[0] == model else ""
        raise IsoglotError(f"align: {files[0]} is the only file{taken}; pass both versions of the document")
    with (
        console.Progress("encoding", unit="texts") as bar,
        console.from_stdin(*map(Path, files)) as texts,
        console.to_stdout(output, settings.get("format", "tsv")) as target,
    ):
        alignments = mining.align(
            *texts, model=model, columns=columns_of(columns), output=target, progress=bar, report=console.say,
            **settings,
        )  # fmt: skip
    console.say(f"{len(alignments):,} alignments" + (f": {output}" if str(output) != "-" else ""))
    if as_json:
        console.show_json(
            {"output": str(output), "alignments": len(alignments), "counts": dict(sorted(alignments.counts.items()))}
        )
