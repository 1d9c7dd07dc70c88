"""`isoglot fit`: a transform fitted to a model's vectors of some text, and saved with the model as a part of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli.options import Model, Output, Pooling, Prompt

if TYPE_CHECKING:
    from isoglot.cli.counting import Counting
    from isoglot.encoders import Encoder

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
    from isoglot.encoders import layout, load
    from isoglot.errors import EncoderError

    if transform not in TRANSFORMS:
        raise EncoderError(f"{transform!r} is no transform; there are {' and '.join(TRANSFORMS)}")
    if transform == "flow" and dim is not None:
        raise EncoderError(f"--dim {dim}: a flow keeps every dimension; leave it out, or take whitening")
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with layout.replacing(output) as new:  # before the work, it refuses a wrong folder
        encoder = load(model, pooling=pooling, prompt=prompt)
        with Counting() as counting:
            try:
                if transform == "whitening":
                    made, words = _whitening(encoder, corpus, counting, dim=dim)
                else:
                    made, words = _flow(encoder, corpus, counting, permutation=permutation, epochs=epochs, seed=seed)
            except ValueError as error:
                raise EncoderError(f"{model}, {corpus}: {error}") from error
        made.save(new)
    typer.echo(f"{words}: {output}", err=True)


def _whitening(encoder: Encoder, corpus: Path, counting: Counting, *, dim: int | None) -> tuple[Encoder, str]:
    from isoglot.encoders.fitting import fit_whitening

    found = fit_whitening(encoder, sentences(corpus), dim=dim, progress=counting)
    words = f"{found.sentences:,} sentences, {found.encoder.dim} dimensions with {found.kept:.1%} of the variance"
    return found.encoder, words


def _flow(
    encoder: Encoder, corpus: Path, counting: Counting, *, permutation: str, epochs: int, seed: int
) -> tuple[Encoder, str]:
    from isoglot.encoders.fitting import Training, fit_flow
    from isoglot.encoders.layers import Flow

    flow, training = Flow(encoder.dim, permutation=permutation, seed=seed), Training(epochs=epochs, seed=seed)
    found = fit_flow(encoder, sentences(corpus), flow=flow, training=training, progress=counting)
    words = f"{found.sentences:,} sentences, mean log-likelihood {found.before:.1f} -> {found.after:.1f} nats"
    return found.encoder, words


def sentences(corpus: Path) -> Iterator[str]:
    """The lines with text of a file; of one called `.jsonl`, plain or compressed, their JSON strings.

    Raises `CorpusError` for what cannot be read, naming the line.
    """
    from isoglot.data.files import read_texts

    return (text for _, text in read_texts(corpus) if text.strip())
