"""`isoglot encode`: lines in, vectors out."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import typer

from isoglot.data.files import atomic_write, read_lines
from isoglot.encoders import encode, load


def run(
    model: str,
    source: Path,
    output: Path,
    *,
    pooling: str | None,
    prompt: str | None,
    normalize: bool | None,
    batch_tokens: int | None,
) -> None:
    """Write one vector a line; an empty line has a vector too, so that rows and lines agree."""
    encoder = load(model, pooling=pooling, prompt=prompt)
    texts = [text for _, text in read_lines(source)]
    began = time.monotonic()
    vectors = encode(encoder, texts, normalize=normalize, batch_tokens=batch_tokens)
    with atomic_write(output, binary=True) as stream:
        np.save(stream, vectors)
    rate = len(texts) / max(time.monotonic() - began, 1e-9)
    typer.echo(f"{len(texts):,} lines, {vectors.shape[1]} dimensions, {rate:,.0f} lines/s: {output}", err=True)
