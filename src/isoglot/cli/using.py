"""The verbs index, search, export, serve and plot: their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.options import Device, Languages, Model, Pooling, Prompt, split


def index(
    model: Model,
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Text, .tsv or .jsonl files; CODE=FILE sets the language.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the index; sentences are added to an existing one.")
    ],
    language: Annotated[str, typer.Option(help="Language of files that do not name one.")] = "und",
    kind: Annotated[
        str | None,
        typer.Option(help="Kind: flat (exact; default), ivf, ivf-pq, hnsw, or a FAISS index_factory string."),
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    query_prompt: Annotated[str | None, typer.Option(help="Prefix of every query; default: that of sentences.")] = None,
    device: Device = "auto",
) -> None:
    """Build a search index of sentences, or add sentences to one."""
    from isoglot.cli.index import run

    words = {"pooling": pooling, "prompt": prompt, "query_prompt": query_prompt}
    run(model, sources, output, language=language, kind=kind, device=device, **words)


def search(
    index: Annotated[Path, typer.Argument(help="Folder of an index (`isoglot index`).")],
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="Queries; default: the lines of stdin.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Number of sentences per query.")] = 10,
    languages: Languages = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per query.")] = False,
    model: Annotated[str | None, typer.Option(help="Model of the index, if it was moved.")] = None,
    effort: Annotated[int | None, typer.Option(min=1, help="Search effort (IVF cells probed, HNSW list size).")] = None,
    device: Device = "auto",
) -> None:
    """Find the sentences nearest to a query, in any language."""
    from isoglot.cli.search import run

    run(
        index,
        queries or [],
        k=k,
        languages=split(languages),
        as_json=as_json,
        model=model,
        effort=effort,
        device=device,
    )


def export(
    index: Annotated[Path, typer.Argument(help="Folder of an index (`isoglot index`).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output Parquet file: id, text, language, vector.")],
) -> None:
    """Export an index as one Parquet file, for any vector database."""
    from isoglot.cli.index import export as run

    run(index, output)


def serve(
    index: Annotated[Path, typer.Argument(help="Folder of an index (`isoglot index`).")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default serves this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8765,
    model: Annotated[str | None, typer.Option(help="Model of the index, if it was moved.")] = None,
    effort: Annotated[int | None, typer.Option(min=1, help="Search effort (IVF cells probed, HNSW list size).")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Host name that requests may use, or '*'; repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin whose pages may send requests, such as https://example.org, or '*'; repeatable."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Serve an index as a web page and an OpenAI-compatible API."""
    from isoglot.cli.serve import run

    run(
        index, host=host, port=port, model=model, effort=effort,
        allow_hosts=allow_host or [], allow_origins=allow_origin or [], device=device,
    )  # fmt: skip


def plot(
    model: Model,
    files: Annotated[
        list[Path], typer.Argument(help="Text, TSV, JSON lines or TMX files, or folders of aligned files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Output file: .html, .svg, .png or .pdf.")] = Path(
        "map.html"
    ),
    layout: Annotated[str, typer.Option(help="Projection: pca, tsne or umap.")] = "tsne",
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Treat line i of all text files as translations.")
    ] = False,
    languages: Annotated[
        str, typer.Option(help="Languages of text files (one for all, or one each) or of TSV columns.")
    ] = "",
    color: Annotated[str, typer.Option(help="Color by language, or by an extra field of the groups.")] = "language",
    labels: Annotated[Path | None, typer.Option(help="Color by the lines of this file, one per group.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of sentences; larger inputs are sampled.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for sampling.")] = 0,
    title: Annotated[str | None, typer.Option(help="Title of the map.")] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    device: Device = "auto",
) -> None:
    """Draw a map of sentences, colored by language or label, with translations joined."""
    from isoglot.cli.plot import run

    run(
        model, files, output, layout=layout, color=color, labels=labels, limit=limit, seed=seed, title=title,
        languages=split(languages), parallel=parallel, pooling=pooling, prompt=prompt, device=device,
    )  # fmt: skip
