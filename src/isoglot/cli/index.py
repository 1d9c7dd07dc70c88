"""`isoglot index`: build a search index from files of sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli.console import Progress, from_stdin, on_interrupt, say
from isoglot.cli.options import Columns, Device, Output, Settings, Workers, cluster_of, model_and_files
from isoglot.cli.signatures import Of

if TYPE_CHECKING:
    from isoglot.index import Sentence


def index(
    words: Annotated[list[str], typer.Argument(metavar="[MODEL] FILE...")],
    *,
    output: Output,
    language: str = "und",
    columns: Columns = "",
    settings: Annotated[Settings, Of("index.index:Index.build", "kind", "prompt", "query_prompt", "pooling")],
    workers: Workers,
    device: Device = "auto",
) -> None:
    """Build a search index of sentences, or add sentences to one.

    words     model (optional) and text, .tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po, .xliff, .docx, .html, .md or
              .srt files, or - for lines of stdin; CODE=FILE sets the language, deu,eng=FILE the languages of pairs
    output    folder of the index; sentences are added to an existing one
    language  language of files that do not specify one
    """
    from isoglot.data.files import check_output
    from isoglot.errors import SearchError
    from isoglot.index import Index
    from isoglot.scale import index_shards

    on_interrupt("run the same command again to add the rest")
    model, sources = model_and_files(words)
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    cluster = cluster_of(workers)
    if cluster is not None and device != "auto":
        raise SearchError("index: --ray starts workers of its own, on accelerators with --gpus; remove --device")
    sentences = chain.from_iterable(sentences_of(source, language=language, columns=columns) for source in sources)
    with Progress("indexing", unit="sentences") as bar:
        if cluster is not None:
            made = index_shards(model, sentences, output, cluster=cluster, progress=bar, report=say, **settings)
        else:
            made = Index.build(model, sentences, folder=output, device=device, progress=bar, report=say, **settings)
            say(made.model.describe())
        made.close()
    typer.echo(output)


def sentences_of(source: str, *, language: str = "und", columns: str = "") -> Iterator[Sentence]:
    """The sentences of FILE or CODE=FILE; of `-` the lines of stdin, whose ids do not depend on their place.

    So lines of another call can be added to the same index, and a line that is in it already is skipped.
    """
    from isoglot.data.formats import columns_of
    from isoglot.index import read_sentences

    code, _, path = source.rpartition("=")
    if path != "-":
        yield from read_sentences(source, language=language, columns=columns_of(columns))
        return
    with from_stdin(Path(path)) as (text,):
        for one in read_sentences(str(text), language=code or language):
            mark = sha256(f"{one.language}\t{one.text}".encode()).hexdigest()[:16]
            yield replace(one, id=f"stdin:{mark}")
