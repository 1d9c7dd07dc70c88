"""`isoglot mine`: its options. What it does is in `mining`, which is only imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.options import Cores, Ray, finite


def command(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] A [B]", help="Model, and two files; one file: pairs within it.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Pairs; .tmx and names like x.de-en tell the format.")],
    k: Annotated[int, typer.Option("-k", "--neighbours", min=1, help="Neighbours of a sentence.")] = 4,
    margin: Annotated[str, typer.Option(help="ratio, distance or absolute.")] = "ratio",
    direction: Annotated[str, typer.Option(help="max, intersection, forward or backward.")] = "max",
    threshold: Annotated[
        float | None, typer.Option(callback=finite, help="Lowest score written; default: all pairs.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Known pairs (ids or line numbers) to tune the threshold on.")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Estimate the threshold without known pairs.")] = False,
    form: Annotated[str | None, typer.Option("--format", help="tsv, tmx or moses.")] = None,
    languages: Annotated[str, typer.Option(help="Of the files, for instance deu,eng; default: from their names.")] = "",
    ids: Annotated[bool, typer.Option("--ids", help="Lines of the files are: id, tab, sentence.")] = False,
    write_ids: Annotated[bool, typer.Option("--write-ids", help="Write ids, or else line numbers, too.")] = False,
    keep_duplicates: Annotated[bool, typer.Option("--keep-duplicates", help="Let repeated lines compete.")] = False,
    drop_identical: Annotated[bool, typer.Option("--drop-identical", help="Pair no sentence with itself.")] = False,
    length_ratio: Annotated[
        float | None, typer.Option(min=1, callback=finite, help="Most times the bytes of the shorter one.")
    ] = None,
    check_language: Annotated[
        str | None, typer.Option(help="Leave out other languages: script, or module:name of a function, text to code.")
    ] = None,
    vectors: Annotated[
        list[Path] | None, typer.Option(help="Instead of MODEL: a NumPy table for each file, in order; repeatable.")
    ] = None,
    dtype: Annotated[str, typer.Option(help="Of the vectors on disk: float32 or float16.")] = "float32",
    prompt: Annotated[str | None, typer.Option(help="Put before every text, instead of the model's own.")] = None,
    pooling: Annotated[str | None, typer.Option(help="Instead of the model's own pooling.")] = None,
    budget: Annotated[str, typer.Option(help="Working memory of the comparison.")] = "256MB",
    precision: Annotated[str, typer.Option(help="float32, or bfloat16 and candidates scored again.")] = "float32",
    index: Annotated[
        str | None, typer.Option(help="Approximate, by FAISS: IVF,Flat, IVF-PQ, HNSW, or its own.")
    ] = None,
    probes: Annotated[int, typer.Option(min=1, help="Lists of the index looked into.")] = 32,
    work: Annotated[
        Path | None, typer.Option(help="Folder for what is resumed from; default: OUTPUT.work, removed.")
    ] = None,
    every: Annotated[float, typer.Option(min=0, callback=finite, help="Seconds between checkpoints.")] = 60.0,
    ray: Ray = "",
    cores: Cores = 1,
) -> None:
    """Find the pairs that translate each other in two files, or the paraphrases in one."""
    from isoglot.cli.mining import Mining, run

    asked = Mining(
        k=k, margin=margin, direction=direction, threshold=threshold, gold=gold, estimate=estimate, format=form,
        languages=[code.strip() for code in languages.split(",") if code.strip()], ids=ids, write_ids=write_ids,
        keep_duplicates=keep_duplicates, drop_identical=drop_identical, length_ratio=length_ratio,
        check_language=check_language, vectors=vectors or [], dtype=dtype, prompt=prompt, pooling=pooling,
        budget=budget, precision=precision, index=index, probes=probes, work=work, every=every, ray=ray, cores=cores,
    )  # fmt: skip
    run(words, output, asked)
