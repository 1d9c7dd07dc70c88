"""`isoglot encode`: lines in, vectors out, going on where an earlier run was stopped."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import typer

from isoglot.cli.counting import Counting, timed
from isoglot.data.files import check_output, exclusive
from isoglot.encoders import load
from isoglot.encoders.resumable import encode_file
from isoglot.errors import EncoderError
from isoglot.scale.encoding import LINES
from isoglot.scale.pieces import encode_pieces


def run(
    model: str,
    source: Path,
    output: Path,
    *,
    pooling: str | None = None,
    prompt: str | None = None,
    normalize: bool | None = None,
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    precision: str = "float32",
    dtype: str = "float32",
    workers: int = 1,
    devices: str = "",
    ray: str = "",
    cores: int = 1,
    lines: int = LINES,
) -> None:
    """Write one vector a line; an empty line has a vector too, so that rows and lines agree.

    With `ray`, `output` is a folder of pieces.
    """
    settings: dict[str, Any] = {
        "normalize_embeddings": normalize, "batch_tokens": batch_tokens, "truncate_dim": truncate_dim, "dtype": dtype,
    }  # fmt: skip
    if ray:
        check_output(output, inputs=[model, source], folder=True)
        if precision not in ("float32", "fp32") or workers != 1 or devices:
            raise EncoderError(
                "encode: --ray has workers of its own, in float32; leave out --precision, --workers, --devices"
            )
        settings |= {"pooling": pooling, "prompt": prompt}
        with exclusive(output), timed(f"encoding {source.name}") as timing:
            pieces = encode_pieces(
                model, [source], output, ray=ray, cores=cores, lines=lines, settings=settings, progress=timing
            )
        typer.echo(f"{len(pieces):,} lines, {pieces.dim} dimensions, {len(pieces.files)} files: {output}", err=True)
        return
    if cores != 1 or lines != LINES:
        raise EncoderError("encode: --cores and --lines are of the pieces of --ray; leave them out, or add --ray")
    check_output(output, inputs=[model, source])
    encoder = load(model, pooling=pooling, prompt=prompt)
    places: int | list[str] = [name.strip() for name in devices.split(",") if name.strip()] or workers
    began = time.monotonic()
    with Counting() as counting:
        try:
            vectors = encode_file(
                encoder, source, output=output, precision=precision, workers=places, progress=counting,
                report=counting.say, **settings,
            )  # fmt: skip
        except (ValueError, TypeError, RuntimeError) as error:  # of settings that only the encoder can judge
            raise EncoderError(f"{model}: {error}") from error
    seconds = time.monotonic() - began
    typer.echo(f"{len(vectors):,} lines, {vectors.shape[1]} dimensions, {seconds:.1f} s: {output}", err=True)
