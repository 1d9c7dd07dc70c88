"""`isoglot encode`: lines in, vectors out, going on where an earlier run was stopped."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from isoglot.cli.counting import Counting
from isoglot.encoders import load
from isoglot.encoders.resumable import encode_file
from isoglot.errors import EncoderError


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
    precision: str = "fp32",
    dtype: str = "float32",
    workers: int = 1,
    devices: str = "",
) -> None:
    """Write one vector a line; an empty line has a vector too, so that rows and lines agree."""
    encoder = load(model, pooling=pooling, prompt=prompt)
    places: int | list[str] = [name.strip() for name in devices.split(",") if name.strip()] or workers
    began, done = time.monotonic(), 0
    with Counting() as counting:

        def resumed(lines: int) -> None:
            nonlocal done
            done = lines
            counting.say(f"{lines:,} lines were done already; going on")

        try:
            vectors = encode_file(
                encoder,
                source,
                output=output,
                normalize=normalize,
                batch_tokens=batch_tokens,
                truncate_dim=truncate_dim,
                dtype=dtype,
                precision=precision,
                workers=places,
                progress=counting,
                resumed=resumed,
            )
        except (ValueError, TypeError, RuntimeError) as error:  # of settings that only the encoder can judge
            raise EncoderError(f"{model}: {error}") from error
    rate = (len(vectors) - done) / max(time.monotonic() - began, 1e-9)
    typer.echo(f"{len(vectors):,} lines, {vectors.shape[1]} dimensions, {rate:,.0f} lines/s: {output}", err=True)
