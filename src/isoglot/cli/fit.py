"""`isoglot fit`: fit a transform to the vectors of a text and save it with the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say
from isoglot.cli.options import Loading, Output, Settings, model_and_files, open_encoder
from isoglot.cli.signatures import Of

TRANSFORMS = ("whitening", "flow")


def fit(
    transform: str,
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] CORPUS")],
    *,
    output: Output,
    whitening: Annotated[Settings, Of("encoders.fitting:fit_whitening", "dim")],
    flow: Annotated[Settings, Of("encoders.fitting:fit_flow", "permutation", "epochs", "seed")],
    loading: Loading,
) -> None:
    """Fit whitening or a normalizing flow to a model and save both as one model.

    transform  transform to fit: whitening or flow
    words      model (optional) and a text file, one sentence per line, or .jsonl with one JSON string per line; - for
               stdin
    """
    from isoglot.core.errors import EncoderError, nearest
    from isoglot.data.files import check_output
    from isoglot.data.formats import read_texts
    from isoglot.encoders import fit_flow, fit_whitening
    from isoglot.model import layout

    if transform not in TRANSFORMS:
        raise EncoderError(f"unknown transform {transform!r}; {nearest(transform, TRANSFORMS)}")
    if transform == "flow" and whitening:
        raise EncoderError(f"--dim {whitening['dim']}: a flow keeps every dimension; remove it, or use whitening")
    model, (file,) = model_and_files(words, most=1)
    corpus = Path(file)
    check_output(output, inputs=[model, corpus], folder=True, whole=True)
    with (
        layout.replacing(output) as new,  # fail before the work, not after it, if the folder is wrong
        from_stdin(corpus) as (text_file,),
        Progress("fitting") as progress,
    ):
        encoder = open_encoder(model, **loading)
        texts = (text for _, text in read_texts(text_file) if text.strip())
        try:
            found = (
                fit_whitening(encoder, texts, **whitening, progress=progress)
                if transform == "whitening"
                else fit_flow(encoder, texts, **flow, progress=progress)
            )
        except ValueError as error:
            raise EncoderError(f"{model}, {corpus}: {error}") from error
        found.encoder.save(new)
    say(f"{found}: {output}")
