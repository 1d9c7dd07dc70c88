"""`isoglot fit`: fit a transform to the vectors of a text and save it with the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say
from isoglot.cli.options import Device, Output, Pooling, Prompt, model_and_files, open_encoder

TRANSFORMS = ("whitening", "flow")


def fit(
    transform: Annotated[str, typer.Argument(help="Transform to fit: whitening or flow.")],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] CORPUS",
            help="Model (optional) and a text file, one sentence per line, or .jsonl with one JSON string per "
            "line; - for stdin.",
        ),
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
    from isoglot.data.files import check_output, read_texts
    from isoglot.encoders import fit_flow, fit_whitening
    from isoglot.errors import EncoderError, nearest
    from isoglot.model import layout

    if transform not in TRANSFORMS:
        raise EncoderError(f"unknown transform {transform!r}; {nearest(transform, TRANSFORMS)}")
    if transform == "flow" and dim is not None:
        raise EncoderError(f"--dim {dim}: a flow keeps every dimension; remove it, or use whitening")
    model, (file,) = model_and_files(words, most=1)
    corpus = Path(file)
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with (
        layout.replacing(output) as new,  # fail before the work, not after it, if the folder is wrong
        from_stdin(corpus) as (text_file,),
        Progress("fitting") as progress,
    ):
        encoder = open_encoder(model, device=device, pooling=pooling, prompt=prompt)
        texts = (text for _, text in read_texts(text_file) if text.strip())
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
