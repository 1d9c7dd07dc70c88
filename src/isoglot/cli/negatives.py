"""`isoglot negatives`: add mined hard negatives to pairs, for translation ranking (mUSE)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say, to_stdout
from isoglot.cli.options import Device, Pooling, Prompt, model_and_files, open_encoder, split


def negatives(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] PAIRS",
            help="Model (optional) and pairs: a .tsv, .jsonl or .tmx file, a folder of two line-aligned files, or - "
            "for JSON lines from stdin.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file of JSON lines, one pair per line; - for stdout.")
    ],
    count: Annotated[int, typer.Option(min=1, help="Number of hard negatives per pair.")] = 3,
    languages: Annotated[
        str, typer.Option(help="The two languages, separated by a comma; default: from the file or folder.")
    ] = "",
    leakage: Annotated[
        list[str] | None, typer.Option(help="Test file or folder whose sentences are excluded; repeatable.")
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Mine hard negatives for pairs: the nearest targets that are not translations."""
    from isoglot.data.files import check_output
    from isoglot.data.readers.jsonl import write_jsonl
    from isoglot.mining.negatives import add_hard_negatives, read_pairs

    model, (file,) = model_and_files(words, most=1)
    tests = [_place(path) for path in leakage or []]
    with from_stdin(Path(file), suffix=".jsonl") as (pairs,), to_stdout(output, "jsonl") as target:
        check_output(target, inputs=[model, pairs, *tests])
        groups = read_pairs(pairs, languages=split(languages), leakage=tests)
        encoder = open_encoder(model, device=device, pooling=pooling, prompt=prompt)
        with Progress("encoding") as progress:
            found = add_hard_negatives(encoder, groups, count, progress=progress, report=say)
        write_jsonl(target, found)
    say(f"{len(found):,} pairs with up to {count} hard negatives each: {output}")


def _place(path: str) -> Path:
    from isoglot.settings import BUNDLED

    return BUNDLED / path.removeprefix("bundled:") if path.startswith("bundled:") else Path(path)
