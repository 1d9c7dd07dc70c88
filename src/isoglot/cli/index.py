"""`isoglot index`: build a search index from files of sentences, update it, and remove entries."""

from __future__ import annotations

from collections.abc import Iterator
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
    words: Annotated[list[str] | None, typer.Argument(metavar="[MODEL] FILE...")] = None,
    *,
    output: Output,
    remove: Annotated[list[str] | None, typer.Option("--remove", metavar="ID")] = None,
    remove_file: Path | None = None,
    content_ids: bool = False,
    language: str = "und",
    columns: Columns = "",
    settings: Annotated[Settings, Of("index.index:Index.build", "kind", "prompt", "query_prompt", "pooling")],
    workers: Workers,
    device: Device = "auto",
) -> None:
    """Build a search index of sentences, update one, or remove entries from it.

    words        model (optional) and text, .tsv, .csv, .xlsx, .jsonl, .parquet, .tmx, .po, .xliff, .docx, .html, .md
                 or .srt files, or - for lines of stdin; CODE=FILE sets the language, deu,eng=FILE the languages of
                 pairs
    output       folder of the index; an existing one is updated
    remove       id of an entry to remove; repeatable
    remove_file  file with ids to remove, one per line; - for stdin
    content_ids  identify entries by their content, even if the file has ids
    language     language of files that do not specify one
    """
    from isoglot.core.errors import SearchError
    from isoglot.data.files import check_output, read_lines
    from isoglot.index import Index
    from isoglot.scale import index_shards

    if remove or remove_file is not None:
        if words:
            raise typer.BadParameter("entries are either added or removed; run the command once for each")
        with from_stdin(*([] if remove_file is None else [remove_file])) as lists, Index.open(output) as there:
            read = (line for path in lists for _, line in read_lines(path) if line.strip())
            count = there.delete([*(remove or []), *read])
            say(f"{count:,} sentences removed; {len(there):,} in the index ({there.kind})")
        typer.echo(output)
        return
    if not words:
        raise typer.BadParameter("pass files to index, or --remove")
    on_interrupt("run the same command again to add the rest")
    model, sources = model_and_files(words)
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    cluster = cluster_of(workers)
    if cluster is not None and device != "auto":
        raise SearchError("index: --ray starts workers of its own, on accelerators with --gpus; remove --device")
    sentences = chain.from_iterable(
        sentences_of(source, language=language, columns=columns, content_ids=content_ids) for source in sources
    )
    with Progress("indexing", unit="sentences") as bar:
        if cluster is not None:
            made = index_shards(model, sentences, output, cluster=cluster, progress=bar, report=say, **settings)
        else:
            made = Index.build(model, sentences, folder=output, device=device, progress=bar, report=say, **settings)
            say(made.model.describe())
        made.close()
    typer.echo(output)


def sentences_of(
    source: str, *, language: str = "und", columns: str = "", content_ids: bool = False
) -> Iterator[Sentence]:
    """The sentences of FILE or CODE=FILE; of `-` the lines of stdin."""
    from isoglot.data.formats import columns_of
    from isoglot.index import read_sentences

    code, mark, path = source.rpartition("=")
    with from_stdin(*[Path("-")] * (path == "-")) as texts:
        place = f"{code}{mark}{texts[0]}" if texts else source
        yield from read_sentences(place, language=language, columns=columns_of(columns), content_ids=content_ids)
