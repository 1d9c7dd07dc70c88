"""`isoglot mine`: find translations in two files, or paraphrases in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import console, options
from isoglot.cli.options import Columns, Device, Json, Output, Settings, Workers
from isoglot.cli.signatures import Of


def mine(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] A [B]")],
    *,
    output: Output = Path("-"),
    settings: Annotated[Settings, Of("mining.pipeline:mine", k=options.NEIGHBOURS)],
    estimate: bool = False,
    keep_all: Annotated[bool, typer.Option("--all")] = False,
    columns: Columns = "",
    filters: Annotated[Settings, Of("mining.pipeline:Filters")],
    check_language: str | None = None,
    vectors: list[Path] | None = None,
    computation: Annotated[Settings, Of("mining.pipeline:Computation")],
    workers: Workers,
    destination: Annotated[Settings, Of("mining.pipeline:Output", "format", "write_ids", "work", "every")],
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Mine translation pairs from two files, or paraphrases from one.

    words           model (optional) and two files (text, .tsv, .csv, .xlsx, .jsonl, .docx, .html, .md, .srt), or one
                    to mine paraphrases; - for stdin
    threshold       minimum score; default: estimated, or none where that is not reliable
    gold            file of known pairs (ids or line numbers) to tune the threshold on
    ids             read lines of id, tab, sentence
    output          output file: .tsv, .csv, .jsonl, .tmx, .parquet, or x.de-en for Moses; - for stdout
    estimate        use the estimated threshold even where it is not reliable
    keep_all        keep all pairs
    check_language  drop lines in other languages, judged by script or by a Python function module:name
    vectors         NumPy file of vectors, instead of MODEL, one per text file; repeatable
    """
    from isoglot import mining
    from isoglot.data.formats import columns_of

    if str(output) != "-":
        console.on_interrupt("run the same command again to resume")
    options.check_stdout(output, as_json)
    model, files = (None, words) if vectors else options.model_and_files(words, most=2)
    if estimate + keep_all + ("threshold" in settings) > 1:
        raise typer.BadParameter("--threshold, --estimate and --all exclude each other; choose one")
    settings |= {"threshold": "estimate"} if estimate else {"threshold": "all"} if keep_all else {}
    judge: Any = check_language
    if check_language not in (None, "script"):
        judge = options.imported(
            "--check-language", check_language, "script, or module:name of a function from text to code"
        )
    with (
        console.Progress("mining", unit="sentences") as bar,
        console.from_stdin(*map(Path, files)) as texts,
        console.to_stdout(output, destination.get("format", "tsv")) as target,
    ):
        pairs = mining.mine(
            model, *texts, columns=columns_of(columns), vectors=vectors or None, device=device, progress=bar,
            report=console.say, filters=mining.Filters(**filters, check_language=judge),
            output=mining.Output(target, **destination),
            computation=mining.Computation(**computation, cluster=options.cluster_of(workers)), **settings,
        )  # fmt: skip
    console.say(f"{len(pairs):,} pairs" + (f": {output}" if str(output) != "-" else ""))
    if as_json:
        console.show_json({"output": str(output), "pairs": len(pairs)})
