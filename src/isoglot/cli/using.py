"""The verbs that use an encoder: encode, index, search, export, serve, plot. Their options; the work is elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.options import Cores, Languages, Model, Pooling, Prompt, Ray, split


def encode(
    model: Model,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="Text, one sentence a line, plain or compressed.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="NumPy file to write, one row a line.")],
    pooling: Pooling = None,
    prompt: Prompt = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Unit vectors or raw ones; default: as the model says.")
    ] = None,
    batch_tokens: Annotated[int | None, typer.Option(min=1, help="Token budget of a batch.")] = None,
    truncate_dim: Annotated[int | None, typer.Option(min=1, help="Keep only the first so many dimensions.")] = None,
    precision: Annotated[
        str, typer.Option(help="float32, bfloat16, int8, or auto: bfloat16 where the device has it.")
    ] = "float32",
    dtype: Annotated[str, typer.Option(help="Of the file: float32 or float16.")] = "float32",
    workers: Annotated[int, typer.Option(min=1, help="Processes, with one thread each.")] = 1,
    devices: Annotated[str, typer.Option(help="Instead of processes: devices, for instance cuda:0,cuda:1.")] = "",
    ray: Ray = "",
    cores: Cores = 1,
    lines: Annotated[int, typer.Option(min=1, help="With --ray: lines of a piece; OUTPUT is a folder.")] = 100_000,
) -> None:
    """Turn the lines of a file into vectors, going on where an earlier run was stopped."""
    from isoglot.cli.encode import run

    run(
        model, source, output, pooling=pooling, prompt=prompt, normalize=normalize, batch_tokens=batch_tokens,
        truncate_dim=truncate_dim, precision=precision, dtype=dtype, workers=workers, devices=devices,
        ray=ray, cores=cores, lines=lines,
    )  # fmt: skip


def index(
    model: Model,
    sources: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Text, .tsv or .jsonl; CODE=FILE sets the language.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the index; sentences are added to an existing one.")
    ],
    language: Annotated[str, typer.Option(help="Language of files without one.")] = "und",
    kind: Annotated[
        str | None, typer.Option(help="flat (exact; default), ivf, ivf-pq, hnsw, or a name of FAISS's index_factory.")
    ] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
    query_prompt: Annotated[
        str | None, typer.Option(help="Text before every query; default: as before sentences.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, xpu or mps.")] = "auto",
) -> None:
    """Make a folder of sentences that can be searched, or add to it."""
    from isoglot.cli.index import run

    run(
        model, sources, output, language=language, kind=kind, pooling=pooling, prompt=prompt,
        query_prompt=query_prompt, device=device,
    )  # fmt: skip


def search(
    index: Annotated[Path, typer.Argument(help="Folder made by `isoglot index`.")],
    queries: Annotated[
        list[str] | None, typer.Argument(metavar="[QUERY]...", help="Default: the lines of stdin.")
    ] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Sentences to show for each query.")] = 10,
    languages: Languages = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per query.")] = False,
    model: Annotated[str | None, typer.Option(help="The index's model, if it has moved.")] = None,
    effort: Annotated[int | None, typer.Option(min=1, help="Search effort (IVF cells probed, HNSW list size).")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, xpu or mps.")] = "auto",
) -> None:
    """Find the sentences nearest to a query, in every language."""
    from isoglot.cli.search import run

    run(
        index, queries or [], k=k, languages=split(languages), as_json=as_json, model=model, effort=effort,
        device=device,
    )  # fmt: skip


def export(
    index: Annotated[Path, typer.Argument(help="Folder made by `isoglot index`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Parquet file: id, text, language, vector.")],
) -> None:
    """Write an index as one Parquet file, for any vector database."""
    from isoglot.cli.index import export as run

    run(index, output)


def serve(
    index: Annotated[Path, typer.Argument(help="Folder made by `isoglot index`.")],
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8765,
    model: Annotated[str | None, typer.Option(help="The index's model, if it has moved.")] = None,
    effort: Annotated[int | None, typer.Option(min=1, help="Cells or length of the list of approximate kinds.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Host name that requests may use; repeat for several, '*' for any.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Origin whose pages may make requests, as https://example.org; '*': any.")
    ] = None,
) -> None:
    """A page to search an index with, and vectors for programs that speak to OpenAI's interface."""
    from isoglot.cli.serve import run

    run(
        index, host=host, port=port, model=model, effort=effort,
        allow_hosts=allow_host or [], allow_origins=allow_origin or [],
    )  # fmt: skip


def plot(
    model: Model,
    files: Annotated[list[Path], typer.Argument(help="Text, TSV, JSON lines, TMX, or a folder of aligned files.")],
    output: Annotated[Path, typer.Option("--output", "-o", help=".html, .svg, .png or .pdf.")] = Path("map.html"),
    layout: Annotated[str, typer.Option(help="pca, tsne or umap.")] = "tsne",
    parallel: Annotated[bool, typer.Option("--parallel", help="Line i of all text files has one meaning.")] = False,
    languages: Annotated[str, typer.Option(help="One for all text files or one for each; TSV columns.")] = "",
    color: Annotated[str, typer.Option(help="language, or an extra of the groups.")] = "language",
    labels: Annotated[Path | None, typer.Option(help="Colour by the lines of this file, one for each group.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum sentences; of more, a random sample.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed for sampling.")] = 0,
    title: Annotated[str | None, typer.Option(help="Title of the map.")] = None,
    pooling: Pooling = None,
    prompt: Prompt = None,
) -> None:
    """Draw sentences as a map: coloured by language or label, translations joined."""
    from isoglot.cli.plot import run

    run(
        model,
        files,
        output,
        layout=layout,
        color=color,
        labels=labels,
        limit=limit,
        seed=seed,
        title=title,
        languages=split(languages),
        parallel=parallel,
        pooling=pooling,
        prompt=prompt,
    )
