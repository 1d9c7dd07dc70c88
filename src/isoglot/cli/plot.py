"""`isoglot plot`: draw sentences as a map, a sweep as curves, or similarities of languages as heat maps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import from_stdin, say, to_stdout
from isoglot.cli.options import Device, Pooling, Prompt, model_and_files, open_encoder, split


def plot(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[MODEL] FILE... | sweep FOLDER | similarity [NAME=]RESULTS...",
            help="Model (optional) and text, TSV, JSON lines or TMX files, folders of aligned files, or - for lines of "
            "stdin; or `sweep` and the folder of a finished sweep; or `similarity` and results of this task.",
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            show_default="map.html; sweep.svg; similarity.svg",
            help="Output file: .html, .svg, .png or .pdf; - for stdout (a map as HTML, others as SVG).",
        ),
    ] = None,
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
    """Draw a map of sentences, the curves of a sweep, or a heat map of languages."""
    if words[0] == "sweep":
        _plot_sweep([Path(word) for word in words[1:]], output or Path("sweep.svg"))
        return
    if words[0] == "similarity":
        _plot_similarity(words[1:], output or Path("similarity.svg"))
        return
    model, names = model_and_files(words)
    files = [Path(name) for name in names]
    from isoglot.data.files import check_output, read_lines
    from isoglot.data.readers.files import read_files
    from isoglot.report.plot import plot

    output = output or Path("map.html")
    with from_stdin(*files) as texts, to_stdout(output, "html") as target:
        check_output(target, inputs=[model, *texts, labels])
        # A skipped blank line would shift the labels of the following lines.
        groups = read_files(texts, languages=split(languages), parallel=parallel, skip_empty=labels is None)
        made = plot(
            open_encoder(model, device=device, pooling=pooling, prompt=prompt), groups, output=target, method=layout,
            color=color, labels=None if labels is None else (line.strip() for _, line in read_lines(labels)),
            limit=limit, seed=seed, title=title or f"Sentence map: {model}",
        )  # fmt: skip
    say(f"{made.note} Wrote {output}")


def _plot_sweep(folders: list[Path], output: Path) -> None:
    from isoglot.data.files import check_output
    from isoglot.training.sweep import plot_sweep

    if len(folders) != 1:
        raise typer.BadParameter(f"pass one folder of a sweep, got {len(folders)}")
    with to_stdout(output, "svg") as target:
        check_output(target, inputs=[folders[0] / "sweep.json"])
        plot_sweep(folders[0], target)
    say(f"wrote {output}")


def _plot_similarity(words: list[str], output: Path) -> None:
    from isoglot.data.files import check_output
    from isoglot.evaluation.scores import files_of
    from isoglot.evaluation.similarity import plot_similarity

    if not words:
        raise typer.BadParameter("pass results of the task similarity: [NAME=]RESULTS...")
    named = [word.partition("=")[::2] if "=" in word and not Path(word).exists() else (word, word) for word in words]
    folders = [Path(folder) for _, folder in named]
    with to_stdout(output, "svg") as target:
        check_output(target, inputs=[*folders, *(file for folder in folders for file in files_of(folder))])
        means = plot_similarity(folders, target, names=[name for name, _ in named])
    for name, found in means.items():
        say(f"{name}: {found}")
    say(f"wrote {output}")
