"""`isoglot fit`: a transform fitted to a model's vectors of some text, and saved with the model as a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.options import Model, Output, Pooling, Prompt

TRANSFORMS = ("whitening", "flow")


def fit(
    transform: Annotated[str, typer.Argument(help="whitening or flow.")],
    model: Model,
    corpus: Annotated[Path, typer.Argument(help="Text, one sentence a line, or .jsonl with one JSON string a line.")],
    output: Output,
    dim: Annotated[int | None, typer.Option(min=1, help="Of whitening: dimensions to keep; default: all.")] = None,
    permutation: Annotated[str, typer.Option(help="Of a flow: random (the paper) or reversed (its code).")] = "random",
    epochs: Annotated[int, typer.Option(min=1, help="Of a flow.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Of a flow: its permutations, weights and order of text.")] = 0,
    pooling: Pooling = None,
    prompt: Prompt = None,
) -> None:
    """Fit whitening or a normalizing flow to a model's vectors of a text, and save both as one model."""
    run(
        transform, model, corpus, output, dim=dim, permutation=permutation, epochs=epochs, seed=seed,
        pooling=pooling, prompt=prompt,
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
) -> None:
    """Fit and save. Lines without text are left out, repeated ones count as often as they stand there."""
    from isoglot.cli.counting import Counting
    from isoglot.data.files import check_output
    from isoglot.encoders import fit_flow, fit_whitening, layout, load
    from isoglot.errors import EncoderError

    if transform not in TRANSFORMS:
        raise EncoderError(f"unknown transform {transform!r}; pass {' or '.join(TRANSFORMS)}")
    if transform == "flow" and dim is not None:
        raise EncoderError(f"--dim {dim}: a flow keeps every dimension; leave it out, or use whitening")
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with layout.replacing(output) as new, Counting() as counting:  # before the work, it refuses a wrong folder
        encoder, texts = load(model, pooling=pooling, prompt=prompt), sentences(corpus)
        try:
            found = (
                fit_whitening(encoder, texts, dim=dim, progress=counting)
                if transform == "whitening"
                else fit_flow(encoder, texts, permutation=permutation, epochs=epochs, seed=seed, progress=counting)
            )
        except ValueError as error:
            raise EncoderError(f"{model}, {corpus}: {error}") from error
        found.encoder.save(new)
    typer.echo(f"{found}: {output}", err=True)


def sentences(corpus: Path) -> Iterator[str]:
    """The lines with text of a file; of one called `.jsonl`, plain or compressed, their JSON strings.

    Raises `CorpusError` for what cannot be read, naming the line.
    """
    from isoglot.data.files import read_texts

    return (text for _, text in read_texts(corpus) if text.strip())
