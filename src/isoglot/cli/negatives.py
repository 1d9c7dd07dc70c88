"""`isoglot negatives`: add mined hard negatives to pairs, for translation ranking (mUSE)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say, to_stdout
from isoglot.cli.options import Loading, Output, Settings, model_and_files, open_encoder
from isoglot.cli.signatures import Of, split


def negatives(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] PAIRS")],
    *,
    output: Output,
    settings: Annotated[Settings, Of("mining.negatives:add_hard_negatives", "count")],
    languages: str = "",
    leakage: list[str] | None = None,
    loading: Loading,
) -> None:
    """Mine hard negatives for pairs: the nearest targets that are not translations.

    words      model (optional) and pairs: a .tsv, .jsonl or .tmx file, a folder of two line-aligned files, or - for
               JSON lines from stdin
    output     output file of JSON lines, one pair per line; - for stdout
    languages  the two languages, separated by a comma; default: from the file or folder
    leakage    test file or folder whose sentences are excluded; repeatable
    """
    from isoglot.data.files import check_output
    from isoglot.data.readers.jsonl import write_jsonl
    from isoglot.mining.negatives import add_hard_negatives, read_pairs

    model, (file,) = model_and_files(words, most=1)
    tests = [_place(path) for path in leakage or []]
    with from_stdin(Path(file), suffix=".jsonl") as (pairs,), to_stdout(output, "jsonl") as target:
        check_output(target, inputs=[model, pairs, *tests])
        groups = read_pairs(pairs, languages=split(languages), leakage=tests)
        encoder = open_encoder(model, **loading)
        with Progress("encoding") as progress:
            mined = add_hard_negatives(encoder, groups, **settings, progress=progress, report=say)
        write_jsonl(target, mined)
    say(f"{len(mined):,} pairs with up to {settings['count']} hard negatives each: {output}")


def _place(path: str) -> Path:
    if not path.startswith("bundled:"):
        return Path(path)
    from isoglot.data.files import BUNDLED  # which needs torch

    return BUNDLED / path.removeprefix("bundled:")
