"""`isoglot mine`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from isoglot.cli.options import Cores, Ray, finite


def command(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] A [B]", help="Model and two files; one file: pairs within it.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Pairs to write: .tsv, .jsonl, .tmx, .parquet, or x.de-en for Moses."),
    ],
    k: Annotated[int, typer.Option("-k", "--neighbours", min=1, help="Neighbours of each sentence.")] = 4,
    margin: Annotated[str, typer.Option(help="ratio, distance or absolute.")] = "ratio",
    direction: Annotated[str, typer.Option(help="max, intersection, forward or backward.")] = "max",
    threshold: Annotated[
        float | None, typer.Option(callback=finite, help="Lowest score to keep; default: keep all pairs.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Known pairs (ids or line numbers) to tune the threshold on.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Estimate the threshold from the scores.")] = False,
    form: Annotated[
        str | None, typer.Option("--format", help="tsv, jsonl, tmx, parquet or moses; default: by the suffix.")
    ] = None,
    languages: Annotated[
        str, typer.Option(help="Languages of the files, such as deu,eng; default: from their names.")
    ] = "",
    ids: Annotated[bool, typer.Option("--ids", help="Read lines as: id, tab, sentence.")] = False,
    write_ids: Annotated[bool, typer.Option("--write-ids", help="Write ids, or line numbers, too.")] = False,
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Keep duplicate lines.")] = False,
    drop_identical: Annotated[bool, typer.Option("--drop-identical", help="Don't pair identical sentences.")] = False,
    length_ratio: Annotated[
        float | None, typer.Option(min=1, callback=finite, help="Maximum byte-length ratio, longer/shorter.")
    ] = None,
    check_language: Annotated[
        str | None,
        typer.Option(help="Skip sentences in other languages: script, or module:name of a function, text to code."),
    ] = None,
    vectors: Annotated[
        list[Path] | None, typer.Option(help="Instead of MODEL: a NumPy file for each file, in order; repeatable.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, xpu or mps.")] = "auto",
    dtype: Annotated[str, typer.Option(help="Type of the vectors on disk: float32 or float16.")] = "float32",
    prompt: Annotated[str | None, typer.Option(help="Text before every sentence, instead of the model's own.")] = None,
    pooling: Annotated[str | None, typer.Option(help="Pooling, instead of the model's own.")] = None,
    budget: Annotated[str, typer.Option(help="Maximum working memory of the comparison.")] = "256MB",
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 and candidates scored again.")] = "float32",
    index: Annotated[
        str | None, typer.Option(help="Approximate search by FAISS: ivf, ivf-pq, hnsw, or a name of its index_factory.")
    ] = None,
    probes: Annotated[int, typer.Option(min=1, help="Cells of the FAISS index to search.")] = 32,
    work: Annotated[
        Path | None, typer.Option(help="Folder of intermediate files, kept; default: OUTPUT.work, removed at the end.")
    ] = None,
    every: Annotated[float, typer.Option(min=0, callback=finite, help="Seconds between checkpoints.")] = 60.0,
    ray: Ray = "",
    cores: Cores = 1,
) -> None:
    """Find the pairs that translate each other in two files, or the paraphrases in one."""
    from isoglot.cli.counting import timed
    from isoglot.cli.imported import imported
    from isoglot.errors import RecipeError
    from isoglot.mining import mine

    model, files = (None, words) if vectors else (words[0], words[1:])
    if len(files) not in (1, 2) or (vectors and len(vectors) != len(files)):
        raise RecipeError(
            "mine: pass a model and one or two files, or as many --vectors as files; got "
            f"{len(words)} arguments and {len(vectors or [])} --vectors"
        )
    if sum([threshold is not None, gold is not None, estimate]) > 1:
        raise RecipeError("mine: --threshold, --gold and --estimate exclude each other; choose one")
    judge: Any
    try:
        judge = imported(check_language) if check_language and check_language != "script" else check_language
    except ImportError as error:
        problem = f"--check-language {check_language}: {error}; pass script, or module:name of a function"
        raise RecipeError(problem) from error
    try:
        with timed("mine") as bar:
            pairs = mine(
                model, *map(Path, files), k=k, margin=margin, direction=direction,
                threshold="estimate" if estimate else threshold, gold=gold, languages=languages, ids=ids,
                vectors=vectors or None, deduplicate=not keep_duplicates, drop_identical=drop_identical,
                length_ratio=length_ratio, check_language=judge, prompt=prompt, pooling=pooling, device=device,
                dtype=dtype, precision=precision, budget=budget, index=index, probes=probes, output=output, format=form,
                write_ids=ids or write_ids, work=work, every=every, ray=ray, cores=cores, progress=bar, report=bar.say,
            )  # fmt: skip
    except ValueError as error:
        raise RecipeError(f"mine: {error}") from error
    typer.echo(f"{len(pairs):,} pairs: {output}", err=True)
