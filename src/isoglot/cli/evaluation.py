"""`isoglot evaluate`, `compare`, `report`, `tasks` and `plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli import options
from isoglot.cli.console import Progress, from_stdin, on_interrupt, say, show_grid, show_json, to_stdout, wrap
from isoglot.cli.options import Data, DataIfThere, Json, Loading, Output, Settings
from isoglot.cli.signatures import Flags, Of, split
from isoglot.core.arguments import NonNegativeInt
from isoglot.core.errors import EvaluationError, OutputError
from isoglot.data.files import check_output, check_outputs, read_lines, read_record

if TYPE_CHECKING:
    from isoglot.evaluation import Task
    from isoglot.evaluation.base import Encode
    from isoglot.evaluation.compare import Comparison
    from isoglot.model import Model
    from isoglot.report.tables import Grid


def evaluate(
    model: str | None = None,
    *,
    output: Output,
    data: Data,
    tasks: str = "quick",
    opening: Annotated[Settings, options.loading("pooling", "prompt", "max_length")],
    settings: Annotated[Settings, Of("evaluation.evaluate:evaluate", "languages", "cache", "precision", "seen")],
    function: str | None = None,
    vectors: Path | None = None,
    texts: Path | None = None,
    texts_only: Annotated[bool, typer.Option("--write-texts")] = False,
    as_json: Json = False,
    flags: Flags,
) -> None:
    """Score a model per language; write tables, an HTML page and JSON.

    model       model: a folder, a packaged name, or a hub id in the local cache; default: the default model
    tasks       tasks and suites, separated by commas (`isoglot tasks` lists them)
    function    Python function to evaluate, as module:name; takes a list of texts, returns vectors
    vectors     NumPy file of vectors to evaluate; requires --texts
    texts       texts of --vectors: plain lines, JSON strings (.jsonl), or the column text of a table
    texts_only  write the texts of the tasks to OUTPUT and stop
    """
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.evaluation.precomputed import export_texts
    from isoglot.evaluation.run import plan
    from isoglot.evaluation.scores import check_folder
    from isoglot.model.finding import default_name

    languages = settings.get("languages", [])
    if texts_only:
        flags.reject("evaluate: --write-texts encodes nothing", "texts_only", "output", "data", "tasks", "languages")
        count = export_texts(output, split(tasks), data=data, languages=languages, report=say)
        say(f"wrote {count:,} texts to {output}, one JSON string per line")
        return
    if model is None and function is None and vectors is None:
        model = default_name()
        say(f"model: {model}")
    check_folder(output, inputs=[vectors, texts])  # before the model is opened
    plan(split(tasks), languages=languages)  # unknown tasks too
    subject = _open_subject(model, function, vectors, texts, {"precision": settings.get("precision")} | opening)
    if "cache" in settings:
        on_interrupt("run the same command again to resume; the vectors in --cache are kept")
    with Progress("encoding") as progress:
        scores = evaluate(
            subject, split(tasks), data=data, output=output, name=function, skip_missing=True, report=say,
            progress=progress, **settings,
        )  # fmt: skip
    if as_json:
        typer.echo((output / "results.json").read_text(encoding="utf-8"), nl=False)
    else:
        for grid in scores.grids():
            show_grid(grid)
    say(f"wrote {output / 'page.html'} and results.json")


def _open_subject(
    model: str | None, function: str | None, vectors: Path | None, texts: Path | None, opening: Settings
) -> Model | Encode:
    """The system to evaluate: a model, opened with these settings, a Python function, or vectors with their texts.

    Raises `EvaluationError` unless exactly one is specified.
    """
    from isoglot.evaluation.precomputed import Precomputed

    if sum(entry is not None for entry in (model, function, vectors)) != 1:
        raise EvaluationError("specify one thing to evaluate: MODEL, --function module:name, or --vectors with --texts")
    if (texts is None) != (vectors is None):
        raise EvaluationError("--vectors and --texts belong together: line i of the texts is the text of row i")
    if model is not None:
        return options.open_encoder(model, **opening)
    for option, value in opening.items():
        if option != "device" and value is not None:
            flag = f"--{option.replace('_', '-')}"
            raise EvaluationError(f"{flag} is for a MODEL; it does not change vectors or functions, so remove it")
    if vectors is not None and texts is not None:
        return Precomputed(vectors, texts)
    return options.import_function("--function", str(function), "module:name of a function from texts to vectors")


def compare(
    results: list[str],
    *,
    settings: Annotated[Settings, Of("evaluation.compare:compare", "tasks", "metrics", "resamples", "seed")],
    output: Annotated[Path | None, typer.Option("--output", "-o")] = None,
    page: Path | None = None,
    examples: NonNegativeInt = 0,
    data: Annotated[Path | None, typer.Option(show_default="$ISOGLOT_DATA or data")] = None,
    as_json: Json = False,
) -> None:
    """Compare results item by item: confidence intervals, paired tests, wins and losses per language.

    results   folders of results, PATH or NAME=PATH; the first is the baseline. Folders of one name are random seeds
              of one system, as are those in an arm of a sweep; PATH+PATH joins results of different tasks
    output    folder for compare.md, compare.tex and compare.json
    page      output HTML page with all figures
    examples  number of pairs to show that the second system ranks better, and worse
    data      folder of the data sets, for --examples
    """
    from isoglot.evaluation.compare import compare, list_seeds, split_parts
    from isoglot.evaluation.scores import list_files

    if str(page) == "-":
        raise OutputError("-: the tables are printed to stdout; pass a file as --page")
    named = [_split_name(argument) for argument in results]
    parts = [part for _, path in named for seed in list_seeds(path) for part in split_parts(seed)]
    inputs = [file for part in parts for file in list_files(part)]
    if output is not None:
        check_output(output, folder=True)
        read_record(output / "compare.json", ("systems", "tables"))
    tables = [output / f"compare.{kind}" for kind in ("md", "tex", "json")] if output is not None else []
    check_outputs(*tables, page, inputs=inputs)
    if as_json and examples:
        raise EvaluationError("--examples prints tables, not JSON; remove --json or --examples")
    comparison = compare(*(path for _, path in named), names=[name for name, _ in named], **settings)
    shown = _find_examples(comparison, settings.get("tasks", []), examples, data) if examples else ()
    if as_json:
        show_json(comparison.to_dict())
    else:
        for grid in comparison.grids():
            show_grid(grid)
            typer.echo()
        typer.echo(wrap(comparison.method))
        for grid in shown:
            show_grid(grid)
    for line in comparison.left_out:
        say(f"skipped: {line}")
    if output is not None:
        comparison.save(output)
        say(f"wrote {', '.join(map(str, tables))}")
    if page is not None:
        comparison.page(page)
        say(f"wrote {page}")


def _split_name(argument: str) -> tuple[str | None, str]:
    name, mark, path = argument.partition("=")
    if not mark or "/" in name or Path(argument).exists():  # a path may contain "=" itself
        return None, argument
    if not name or not path:
        raise EvaluationError(f"{argument!r} is neither a path nor NAME=PATH")
    return name, path


def _find_examples(comparison: Comparison, tasks: list[str], count: int, data: Path | None) -> tuple[Grid, ...]:
    from isoglot.core import environment
    from isoglot.evaluation.examples import examples

    if len(comparison.systems) != 2 or len(tasks) != 1:
        raise EvaluationError("--examples needs two systems, and one similarity task in --tasks")
    (base, other), (first, second) = comparison.runs, comparison.systems
    folder = data or environment.data_folder()
    return examples(base, other, tasks[0], data=folder, count=count, names=(first, second))


def report(
    results: list[Path],
    *,
    output: Output = Path("page.html"),
    settings: Annotated[Settings, Of("report.page:page", "seen", "title")],
) -> None:
    """Write results as one self-contained HTML page.

    results  folders of results, or results.json files, - for stdin; the first is the baseline
    output   output HTML file; - for stdout
    """
    from isoglot.evaluation.scores import list_files, read_results
    from isoglot.report.page import write_page

    with from_stdin(*results) as paths, to_stdout(output, "html") as target:
        check_output(target, inputs=[file for path in paths for file in list_files(path)])
        write_page(target, [read_results(path) for path in paths], **settings)
    say(f"wrote {output}")


def tasks(data: DataIfThere) -> None:
    """List suites and tasks, with the number of subsets found in the data folder."""
    from isoglot.evaluation import TASKS
    from isoglot.evaluation.suites import SUITES

    typer.secho("Suites", bold=True)
    for name, suite in SUITES.items():
        _entry(name, f"{suite.about}; tasks: {', '.join(suite.tasks)}")
    typer.secho("Tasks", bold=True)
    for name, task in TASKS.items():
        _entry(f"{name}{'' if data is None else _count_subsets(task, data)}", f"needs {task.needs}")


def _count_subsets(task: Task, data: Path) -> str:
    try:
        return f" ({len(task.subsets(data)) or 'no'} subsets in {data})"
    except EvaluationError as error:
        return f" ({error})"


def _entry(name: str, about: str) -> None:
    typer.secho(name, fg="cyan")
    typer.echo(wrap(about, indent="    "))


MAP = ("method", "color", "limit", "seed", "title")


def plot(
    words: Annotated[
        list[str], typer.Argument(metavar="[MODEL] FILE... | sweep FOLDER | similarity [NAME=]RESULTS...")
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", show_default="map.html; sweep.svg; similarity.svg")
    ] = None,
    reading: Annotated[Settings, Of("data.readers.files:read_files", "languages", "parallel")],
    settings: Annotated[Settings, Of("evaluation.plot:plot", *MAP, method=typer.Option("--layout"))],
    labels: Path | None = None,
    loading: Loading,
    flags: Flags,
) -> None:
    """Draw a map of sentences, the curves of a sweep, or a heat map of languages.

    words   model (optional) and text, tables, JSON lines or TMX files, folders of aligned files, or - for lines of
            stdin; or `sweep` and the folder of a finished sweep; or `similarity` and results of this task
    output  output file: .html, .svg, .png or .pdf; - for stdout (a map as HTML, others as SVG)
    labels  color by the lines of this file, one per group
    """
    if words[0] in ("sweep", "similarity"):
        flags.reject(f"plot: {words[0]} takes only --output; the other options are for a map", "words", "output")
        output = output or Path(f"{words[0]}.svg")
        with to_stdout(output, "svg") as target:
            (_plot_sweep if words[0] == "sweep" else _plot_similarity)(words[1:], target)
        say(f"wrote {output}")
        return
    model, names = options.model_and_files(words)
    files = [Path(name) for name in names]
    from isoglot.data.readers.files import read_files
    from isoglot.evaluation.plot import plot

    output = output or Path("map.html")
    with from_stdin(*files) as texts, to_stdout(output, "html") as target:
        check_output(target, inputs=[model, *texts, labels])
        # A skipped blank line would shift the labels of the following lines.
        groups = read_files(texts, skip_empty=labels is None, **reading)
        sentence_map = plot(
            options.open_encoder(model, **loading), groups, output=target,
            labels=None if labels is None else (line.strip() for _, line in read_lines(labels)),
            **{"title": f"Sentence map: {model}", **settings},
        )  # fmt: skip
    say(f"{sentence_map.note} Wrote {output}")


def _plot_sweep(folders: list[str], output: Path) -> None:
    from isoglot.report.sweep_plot import plot_sweep

    if len(folders) != 1:
        raise typer.BadParameter(f"pass one folder of a sweep, got {len(folders)}")
    check_output(output, inputs=[Path(folders[0]) / "sweep.json"])
    plot_sweep(Path(folders[0]), output)


def _plot_similarity(words: list[str], output: Path) -> None:
    from isoglot.evaluation.scores import list_files
    from isoglot.evaluation.similarity import plot_similarity

    if not words:
        raise typer.BadParameter("pass results of the task similarity: [NAME=]RESULTS...")
    named = [_split_name(word) for word in words]
    folders = [Path(folder) for _, folder in named]
    check_output(output, inputs=[*folders, *(file for folder in folders for file in list_files(folder))])
    for name, means in plot_similarity(folders, output, names=[name or folder for name, folder in named]).items():
        say(f"{name}: {means}")
