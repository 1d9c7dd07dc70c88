"""`isoglot trim`: reduce a model's vocabulary to the tokens that a corpus uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, say
from isoglot.cli.options import Device, Output, Prompt, model_and_files, open_encoder


def trim(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] CORPUS...",
            help="Model (optional) and text, TSV, JSON lines or TMX files, folders of aligned files, or - for lines of "
            "stdin.",
        ),
    ],
    output: Output,
    minimum_count: Annotated[int, typer.Option(min=1, help="Minimum count of a token in the corpus.")] = 1,
    first: Annotated[
        int, typer.Option(min=0, help="Keep the first N pieces of the vocabulary, the most frequent ones, too.")
    ] = 0,
    keep_characters: Annotated[
        bool, typer.Option(help="Keep all single characters, so that unseen words can be spelled.")
    ] = True,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Reduce the vocabulary of a model to the tokens of a corpus; vectors of the corpus do not change."""
    from isoglot.data.files import check_output, exclusive
    from isoglot.data.readers.files import read_files
    from isoglot.encoders import trim as trimming
    from isoglot.errors import EncoderError
    from isoglot.model import layout

    model, files = model_and_files(words)
    check_output(output, inputs=[model, *files], folder=True, whole=True)
    with exclusive(output), from_stdin(*map(Path, files)) as corpus:

        class Texts:
            """The sentences of the corpus; read a second time to check the result."""

            def __iter__(self) -> Iterator[str]:
                return (text for group in read_files(corpus) for text in (*group.texts, *group.hard_negatives))

        layout.prepare(output)
        encoder = open_encoder(model, device=device, prompt=prompt)
        try:
            with Progress("reading", unit="sentences") as progress:
                found = trimming(
                    encoder,
                    Texts(),
                    minimum_count=minimum_count,
                    first=first,
                    keep_characters=keep_characters,
                    progress=progress,
                )
        except EncoderError as error:
            raise EncoderError(f"{model}: {error}") from error
        found.encoder.save(output)
    say(f"{found}: {output}")
