"""`isoglot filter`: remove sentences that are not translations from parallel text, as judged by a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from isoglot.cli.console import Progress, from_stdin, say, show_json, to_stdout
from isoglot.cli.options import NEIGHBOURS, Columns, Json, Loading, Output, Settings, check_stdout, open_encoder
from isoglot.cli.signatures import Of


def filter(
    pairs: Path,
    *,
    output: Output,
    model: str | None = None,
    settings: Annotated[Settings, Of("mining.filtering:judged", k=NEIGHBOURS)],
    dropped: Path | None = None,
    languages: str = "",
    columns: Columns = "",
    loading: Loading,
    as_json: Json = False,
) -> None:
    """Drop noisy translations from parallel text, by the margin of a model's vectors.

    pairs      pairs or larger groups: a .tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po or .xliff file, or a
               folder of aligned files; - for JSON lines on stdin
    output     output file: JSON lines, or TMX by its suffix; - for stdout
    model      model: a folder, a packaged name, or a hub id; default: the default model
    dropped    output file for the dropped groups
    languages  languages of the columns, separated by commas; default: from the file
    """
    from isoglot.core.errors import OutputError
    from isoglot.data.files import check_outputs
    from isoglot.data.formats import columns_of
    from isoglot.mining.filtering import filter_file

    check_stdout(output, as_json)
    for path in (output, dropped):
        if path is not None and str(path) != "-" and path.suffix.lower() not in ("", ".jsonl", ".tmx"):
            raise OutputError(f"{path}: filter writes JSON lines and TMX; choose a name that ends in .jsonl or .tmx")
    with from_stdin(pairs, suffix=".jsonl") as (source,), to_stdout(output, "jsonl") as target:
        check_outputs(target, dropped, inputs=[source, model])
        encoder = open_encoder(model, **loading)
        with Progress("filtering", unit="bytes") as progress:
            counts = filter_file(
                encoder,
                source,
                target,
                dropped=dropped,
                languages=languages,
                columns=columns_of(columns),
                progress=progress,
                **settings,
            )
    if as_json:
        show_json({"output": str(output), "dropped": dropped and str(dropped), "counts": counts})
    for name, found in counts.items():
        say(f"{name}: {', '.join(f'{count:,} {what}' for what, count in sorted(found.items()))}")
