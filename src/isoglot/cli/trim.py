"""`isoglot trim`: reduce a model's vocabulary to the tokens that a corpus uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say
from isoglot.cli.options import Output, Settings, loading, model_and_files, open_encoder
from isoglot.cli.signatures import Of


def trim(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] CORPUS...")],
    *,
    output: Output,
    settings: Annotated[Settings, Of("encoders.vocabulary:trim")],
    opening: Annotated[Settings, loading("prompt")],
) -> None:
    """Reduce the vocabulary of a model to the tokens of a corpus; vectors of the corpus do not change.

    words  model (optional) and text, TSV, JSON lines or TMX files, folders of aligned files, or - for lines of stdin
    """
    from isoglot.core.errors import EncoderError
    from isoglot.data.files import check_output, exclusive
    from isoglot.data.readers.files import read_files
    from isoglot.encoders import trim as trimming
    from isoglot.model import layout

    model, files = model_and_files(words)
    check_output(output, inputs=[model, *files], folder=True, whole=True)
    with exclusive(output), from_stdin(*map(Path, files)) as corpus:

        class Texts:
            """The sentences of the corpus; read a second time to check the result."""

            def __iter__(self) -> Iterator[str]:
                return (text for group in read_files(corpus) for text in (*group.texts, *group.hard_negatives))

        layout.prepare(output)
        encoder = open_encoder(model, **opening)
        try:
            with Progress("reading", unit="sentences") as progress:
                trimmed = trimming(encoder, Texts(), progress=progress, **settings)
        except EncoderError as error:
            raise EncoderError(f"{model}: {error}") from error
        trimmed.encoder.save(output)
    say(f"{trimmed}: {output}")
