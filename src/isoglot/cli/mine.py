"""`isoglot mine`: find translations in two files, or paraphrases in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli import console
from isoglot.cli.options import (
    Cores,
    Device,
    Gpus,
    Json,
    Margin,
    Neighbours,
    Pooling,
    Prompt,
    Ray,
    finite,
    imported,
    model_and_files,
)


def mine(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] A [B]",
            help="Model (optional) and two text files, or one file to mine paraphrases; - for stdin.",
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Output file: .tsv, .jsonl, .tmx, .parquet, or x.de-en for Moses; - for stdout."
        ),
    ] = Path("-"),
    k: Neighbours = 4,
    margin: Margin = "ratio",
    direction: Annotated[str, typer.Option(help="Selection of pairs: max, intersection, forward or backward.")] = "max",
    threshold: Annotated[
        float | None, typer.Option(callback=finite, help="Minimum score; default: keep all pairs.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="File of known pairs (ids or line numbers) to tune the threshold on.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Estimate the threshold without known pairs.")] = False,
    form: Annotated[
        str | None,
        typer.Option("--format", help="Output format: tsv, jsonl, tmx, parquet or moses; default: from the suffix."),
    ] = None,
    languages: Annotated[
        str, typer.Option(help="Languages of the files, such as deu,eng; default: from the file names.")
    ] = "",
    ids: Annotated[bool, typer.Option("--ids", help="Read lines of id, tab, sentence.")] = False,
    write_ids: Annotated[bool, typer.Option("--write-ids", help="Write ids, or line numbers, with the pairs.")] = False,
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Keep duplicate lines.")] = False,
    drop_identical: Annotated[
        bool, typer.Option("--drop-identical", help="Drop pairs of identical sentences.")
    ] = False,
    length_ratio: Annotated[
        float | None, typer.Option(min=1, callback=finite, help="Maximum byte-length ratio, longer/shorter.")
    ] = None,
    check_language: Annotated[
        str | None,
        typer.Option(help="Drop lines in other languages, judged by script or by a Python function module:name."),
    ] = None,
    vectors: Annotated[
        list[Path] | None, typer.Option(help="NumPy file of vectors, instead of MODEL, one per text file; repeatable.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Type of the vectors on disk: float32 or float16.")] = "float32",
    prompt: Prompt = None,
    pooling: Pooling = None,
    budget: Annotated[str, typer.Option(help="Maximum working memory of the comparison, such as 2GB.")] = "256MB",
    index: Annotated[
        str | None,
        typer.Option(help="Approximate search with FAISS: ivf, ivf-pq, hnsw, or an index_factory string."),
    ] = None,
    probes: Annotated[int, typer.Option(min=1, help="Number of IVF cells to probe; requires --index.")] = 32,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Folder for intermediate files, kept: another threshold, margin or format then encodes nothing again; "
            "default: OUTPUT.work, removed at the end."
        ),
    ] = None,
    every: Annotated[float, typer.Option(min=0, callback=finite, help="Seconds between checkpoints.")] = 60.0,
    ray: Ray = "",
    cores: Cores = 1,
    gpus: Gpus = 0,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Mine translation pairs from two files, or paraphrases from one."""
    from isoglot.errors import RecipeError
    from isoglot.mining import mine

    if str(output) != "-":
        console.on_interrupt("run the same command again to resume")
    if as_json and str(output) == "-":
        raise typer.BadParameter("--json and --output - (the default) both write to stdout; pass a file as --output")
    model, files = (None, words) if vectors else model_and_files(words, most=2)
    if vectors and len(vectors) != len(files):
        raise RecipeError(f"mine: pass as many --vectors as files; got {len(files)} files and {len(vectors)} --vectors")
    if sum([threshold is not None, gold is not None, estimate]) > 1:
        raise RecipeError("mine: --threshold, --gold and --estimate exclude each other; choose one")
    judge: Any
    try:
        judge = imported(check_language) if check_language and check_language != "script" else check_language
    except ImportError as error:
        problem = f"--check-language {check_language}: {error}; pass script, or module:name of a function"
        raise RecipeError(problem) from error
    try:
        with (
            console.Progress("mining", unit="blocks") as bar,
            console.from_stdin(*map(Path, files)) as texts,
            console.to_stdout(output, form or "tsv") as target,
        ):
            pairs = mine(
                model, *texts, k=k, margin=margin, direction=direction,
                threshold="estimate" if estimate else threshold, gold=gold, languages=languages, ids=ids,
                vectors=vectors or None, deduplicate=not keep_duplicates, drop_identical=drop_identical,
                length_ratio=length_ratio, check_language=judge, prompt=prompt, pooling=pooling, device=device,
                dtype=dtype, budget=budget, index=index, probes=probes, output=target, format=form,
                write_ids=ids or write_ids, work=work, every=every, ray=ray, cores=cores, gpus=gpus, progress=bar,
                report=console.say,
            )  # fmt: skip
    except ValueError as error:
        raise RecipeError(f"mine: {error}") from error
    console.say(f"{len(pairs):,} pairs" + (f": {output}" if str(output) != "-" else ""))
    if as_json:
        console.show_json({"output": str(output), "pairs": len(pairs)})
