"""`isoglot trim`: a model with only those pieces of its vocabulary that a corpus uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import Device, Model, Output, Prompt, open_encoder


def trim(
    model: Model,
    corpus: Annotated[
        list[Path], typer.Argument(help="Text, TSV, JSON lines or TMX files, or folders of aligned files.")
    ],
    output: Output,
    minimum_count: Annotated[int, typer.Option(min=1, help="Minimum count of a piece in the corpus.")] = 1,
    keep_characters: Annotated[
        bool, typer.Option(help="Keep all single characters, so that unseen words can be spelled.")
    ] = True,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Reduce a vocabulary to the pieces of a corpus, whose vectors stay the same."""
    run(
        model, corpus, output, minimum_count=minimum_count, keep_characters=keep_characters, prompt=prompt,
        device=device,
    )  # fmt: skip


def run(
    model: str,
    corpus: Sequence[Path],
    output: Path,
    *,
    minimum_count: int = 1,
    keep_characters: bool = True,
    prompt: str | None = None,
    device: str = "auto",
) -> None:
    """Write the smaller model, after the corpus has been read again to check that its sentences are cut as before.

    Raises EncoderError for a model without a vocabulary of pieces, CorpusError for a corpus without sentences.
    """
    from isoglot.cli.plot import read_groups
    from isoglot.data.files import check_output, exclusive
    from isoglot.encoders import layout
    from isoglot.encoders import trim as trimming
    from isoglot.errors import EncoderError

    class Texts:
        """The sentences of the corpus, which can be read more than once."""

        def __iter__(self) -> Iterator[str]:
            return (text for group in read_groups(corpus) for text in (*group.texts, *group.hard_negatives))

    check_output(output, inputs=[model, *corpus], folder=True, whole=True)
    with exclusive(output):
        layout.prepare(output)
        encoder = open_encoder(model, device=device, prompt=prompt)
        try:
            found = trimming(encoder, Texts(), minimum_count=minimum_count, keep_characters=keep_characters)
        except EncoderError as error:
            raise EncoderError(f"{model}: {error}") from error
        found.encoder.save(output)
    say(f"{found}: {output}")
