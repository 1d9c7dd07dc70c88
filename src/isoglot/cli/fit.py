"""`isoglot fit`: a transform fitted to a model's vectors of some text, and saved with the model as a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, say
from isoglot.cli.options import Device, Model, Output, Pooling, Prompt, open_encoder

TRANSFORMS = ("whitening", "flow")


def fit(
    transform: Annotated[str, typer.Argument(help="Transform to fit: whitening or flow.")],
    model: Model,
    corpus: Annotated[
        Path, typer.Argument(help="Text, one sentence per line, or .jsonl with one JSON string per line.")
    ],
    output: Output,
    dim: Annotated[
        int | None, typer.Option(min=1, help="Number of dimensions to keep (whitening); default: all.")
    ] = None,
    permutation: Annotated[
        str, typer.Option(help="Channel permutations (flow): random, as in the paper, or reversed, as in its code.")
    ] = "random",
    epochs: Annotated[int, typer.Option(min=1, help="Number of epochs (flow).")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Random seed (flow).")] = 0,
    pooling: Pooling = None,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Fit whitening or a normalizing flow to a model and save both as one model."""
    run(
        transform, model, corpus, output, dim=dim, permutation=permutation, epochs=epochs, seed=seed,
        pooling=pooling, prompt=prompt, device=device,
    )  # fmt: skip


def run(
    transform: str,
    model: str,
    corpus: Path,
    output: Path,
    *,
    dim: int | None = None,
    permutation: str = "random",
    epochs: int = 1,
    seed: int = 0,
    pooling: str | None = None,
    prompt: str | None = None,
    device: str = "auto",
) -> None:
    """Fit and save. Lines without text are left out, repeated ones count as often as they stand there."""
    from isoglot.data.files import check_output
    from isoglot.encoders import fit_flow, fit_whitening, layout
    from isoglot.errors import EncoderError

    if transform not in TRANSFORMS:
        raise EncoderError(f"unknown transform {transform!r}; pass {' or '.join(TRANSFORMS)}")
    if transform == "flow" and dim is not None:
        raise EncoderError(f"--dim {dim}: a flow keeps every dimension; remove it, or use whitening")
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with layout.replacing(output) as new, Progress("fitting") as progress:  # before the work, it refuses a wrong folder
        encoder, texts = open_encoder(model, device=device, pooling=pooling, prompt=prompt), sentences(corpus)
        try:
            found = (
                fit_whitening(encoder, texts, dim=dim, progress=progress)
                if transform == "whitening"
                else fit_flow(encoder, texts, permutation=permutation, epochs=epochs, seed=seed, progress=progress)
            )
        except ValueError as error:
            raise EncoderError(f"{model}, {corpus}: {error}") from error
        found.encoder.save(new)
    say(f"{found}: {output}")


def sentences(corpus: Path) -> Iterator[str]:
    """The lines with text of a file; of one called `.jsonl`, plain or compressed, their JSON strings.

    Raises `CorpusError` for what cannot be read, naming the line.
    """
    from isoglot.data.files import read_texts

    return (text for _, text in read_texts(corpus) if text.strip())
