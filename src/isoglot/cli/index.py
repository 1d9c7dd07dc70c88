"""`isoglot index` and `isoglot export`: files of sentences into a searchable folder, and that folder into Parquet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import typer

from isoglot.cli.console import Progress, say
from isoglot.cli.options import announce
from isoglot.data.files import check_output
from isoglot.data.languages import UNKNOWN
from isoglot.errors import SearchError
from isoglot.index import Index, read_sentences


def run(
    model: str,
    sources: Sequence[str],
    output: Path,
    *,
    language: str = UNKNOWN,
    kind: str | None = None,
    pooling: str | None = None,
    prompt: str | None = None,
    query_prompt: str | None = None,
    device: str = "auto",
) -> None:
    """Make an index of files, each `FILE` or `CODE=FILE`, or add them to an existing one; print the folder.

    An existing index keeps its prompts and its pooling. Raises `SearchError`, `CorpusError`, `EncoderError`.
    """
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    sentences = chain.from_iterable(read_sentences(source, language=language) for source in sources)
    words = {"pooling": pooling, "prompt": prompt, "query_prompt": query_prompt}
    try:
        announce(device)
        with Progress("indexing", unit="sentences") as bar:
            Index.build(
                model, sentences, folder=output, kind=kind, device=device, progress=bar, report=say, **words
            ).close()
    except ValueError as error:
        raise SearchError(f"index: {error}") from error
    typer.echo(output)


def export(folder: Path, output: Path) -> None:
    """Write an index to a Parquet file outside of its folder."""
    check_output(output)
    with Index.open(folder) as index:
        rows = index.export(output)
    say(f"{rows:,} sentences: {output}")
