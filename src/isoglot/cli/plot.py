"""`isoglot plot`: draw sentences as a map, a sweep as curves, or similarities of languages as heat maps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import from_stdin, say, to_stdout
from isoglot.cli.options import Loading, Settings, model_and_files, open_encoder
from isoglot.cli.signatures import Of


def plot(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] FILE... | sweep FOLDER | similarity [NAME=]RESULTS...")
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", show_default="map.html; sweep.svg; similarity.svg")
    ] = None,
    reading: Annotated[Settings, Of("data.readers.files:read_files", "languages", "parallel")],
    settings: Annotated[
        Settings, Of("report.plot:plot", "method", "color", "limit", "seed", "title", method=typer.Option("--layout"))
    ],
    labels: Path | None = None,
    loading: Loading,
) -> None:
    """Draw a map of sentences, the curves of a sweep, or a heat map of languages.

    words   model (optional) and text, TSV, JSON lines or TMX files, folders of aligned files, or - for lines of stdin;
            or `sweep` and the folder of a finished sweep; or `similarity` and results of this task
    output  output file: .html, .svg, .png or .pdf; - for stdout (a map as HTML, others as SVG)
    labels  color by the lines of this file, one per group
    """
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
        groups = read_files(texts, skip_empty=labels is None, **reading)
        made = plot(
            open_encoder(model, **loading), groups, output=target,
            labels=None if labels is None else (line.strip() for _, line in read_lines(labels)),
            **{"title": f"Sentence map: {model}", **settings},
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
