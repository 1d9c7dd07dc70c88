"""`isoglot filter`: remove sentences that are not translations from parallel text, as judged by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say, show_json, to_stdout
from isoglot.cli.options import Device, Json, Margin, Neighbours, Pooling, Prompt, finite, open_encoder


def filter(
    pairs: Annotated[
        Path,
        typer.Argument(
            help="Pairs or larger groups: a .tsv, .jsonl or .tmx file, or a folder of aligned files; - for JSON lines "
            "on stdin."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file of JSON lines; - for stdout.")],
    model: Annotated[
        str | None, typer.Option(help="Model: a folder, a packaged name, or a hub id; default: the default model.")
    ] = None,
    margin: Margin = "ratio",
    threshold: Annotated[
        float | None,
        typer.Option(callback=finite, help="Minimum score; default: 1 for ratio, 0 for distance."),
    ] = None,
    k: Neighbours = 4,
    block: Annotated[
        int, typer.Option(min=2, help="Number of sentences per block that are compared with each other.")
    ] = 100_000,
    dropped: Annotated[Path | None, typer.Option(help="Output file for the dropped groups.")] = None,
    languages: Annotated[
        str, typer.Option(help="Languages of the columns, separated by commas; default: from the file.")
    ] = "",
    pooling: Pooling = None,
    prompt: Prompt = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Drop noisy translations from parallel text, by the margin of a model's vectors."""
    from isoglot.data.files import check_outputs
    from isoglot.errors import OutputError, RecipeError
    from isoglot.mining.filtering import filter_file

    if as_json and str(output) == "-":
        raise typer.BadParameter("--json and --output - both write to stdout; choose one")
    for path in (output, dropped):
        if path is not None and str(path) != "-" and path.suffix not in ("", ".jsonl"):
            raise OutputError(f"{path}: filter writes JSON lines; choose a name that ends in .jsonl")
    with from_stdin(pairs, suffix=".jsonl") as (source,), to_stdout(output, "jsonl") as target:
        check_outputs(target, dropped, inputs=[source, model])
        encoder = open_encoder(model, device=device, pooling=pooling, prompt=prompt)
        try:
            with Progress("filtering", unit="bytes") as progress:
                counts = filter_file(
                    encoder, source, target, dropped=dropped, languages=languages, margin=margin, threshold=threshold,
                    k=k, block=block, progress=progress,
                )  # fmt: skip
        except ValueError as error:
            raise RecipeError(f"filter: {error}") from error
    if as_json:
        show_json({"output": str(output), "dropped": dropped and str(dropped), "counts": counts})
    for name, found in counts.items():
        say(f"{name}: {', '.join(f'{count:,} {what}' for what, count in sorted(found.items()))}")
