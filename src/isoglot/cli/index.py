"""`isoglot index`: build a search index from files of sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.console import Progress, from_stdin, on_interrupt, say
from isoglot.cli.options import Cores, Device, Gpus, Pooling, Prompt, Ray, model_and_files

if TYPE_CHECKING:
    from isoglot.index import Sentence


def index(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] FILE...",
            help="Model (optional) and text, .tsv, .jsonl, .parquet or .tmx files, or - for lines of stdin; CODE=FILE "
            "sets the language, deu,eng=FILE the languages of pairs.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the index; sentences are added to an existing one.")
    ],
    language: Annotated[str, typer.Option(help="Language of files that do not specify one.")] = "und",
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of index: flat (exact), ivf, ivf-pq, hnsw, or a FAISS index_factory string; default: flat."
        ),
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    query_prompt: Annotated[
        str | None, typer.Option(help="Prefix of every query; default: the prompt of the sentences.")
    ] = None,
    ray: Ray = "",
    cores: Cores = 1,
    gpus: Gpus = 0,
    device: Device = "auto",
) -> None:
    """Build a search index of sentences, or add sentences to one."""
    from isoglot.data.files import check_output
    from isoglot.errors import SearchError
    from isoglot.index import Index
    from isoglot.scale import Cluster, index_shards

    on_interrupt("run the same command again to add the rest")
    model, sources = model_and_files(words)
    files = [part for source in sources for part in (source, source.partition("=")[2]) if part]
    check_output(output, inputs=[model, *files], folder=True)
    if not ray and (cores != 1 or gpus):
        raise SearchError("index: --cores and --gpus need --ray; remove them, or add --ray")
    if ray and device != "auto":
        raise SearchError("index: --ray starts workers of its own, on accelerators with --gpus; remove --device")
    sentences = chain.from_iterable(sentences_of(source, language=language) for source in sources)
    settings: dict[str, Any] = {"kind": kind, "pooling": pooling, "prompt": prompt, "query_prompt": query_prompt}
    try:
        with Progress("indexing", unit="sentences") as bar:
            if ray:
                cluster = Cluster(ray, cpus=cores, gpus=gpus)
                made = index_shards(model, sentences, output, cluster=cluster, progress=bar, report=say, **settings)
            else:
                made = Index.build(model, sentences, folder=output, device=device, progress=bar, report=say, **settings)
                say(made.model.describe())
            made.close()
    except ValueError as error:
        raise SearchError(f"index: {error}") from error
    typer.echo(output)


def sentences_of(source: str, *, language: str = "und") -> Iterator[Sentence]:
    """The sentences of FILE or CODE=FILE; of `-` the lines of stdin, whose ids do not depend on their place.

    So lines of another call can be added to the same index, and a line that is in it already is skipped.
    """
    from isoglot.index import read_sentences

    code, _, path = source.rpartition("=")
    if path != "-":
        yield from read_sentences(source, language=language)
        return
    with from_stdin(Path(path)) as (text,):
        for one in read_sentences(str(text), language=code or language):
            mark = sha256(f"{one.language}\t{one.text}".encode()).hexdigest()[:16]
            yield replace(one, id=f"stdin:{mark}")
