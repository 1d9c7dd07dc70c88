"""`isoglot evaluate`: score a model; write tables, JSON and an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.console import Progress, on_interrupt, say, show_grid
from isoglot.cli.options import (
    Data,
    Device,
    Json,
    Languages,
    Output,
    Pooling,
    Precision,
    Prompt,
    default_model,
    imported,
    open_encoder,
    split,
)
from isoglot.errors import EvaluationError

if TYPE_CHECKING:
    from isoglot.evaluation.base import Encode
    from isoglot.model import Model


def evaluate(
    output: Output,
    data: Data,
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model: a folder, a packaged name, or a hub id in the local cache; default: the default model."
        ),
    ] = None,
    tasks: Annotated[
        str, typer.Option(help="Tasks and suites, separated by commas (`isoglot tasks` lists them).")
    ] = "quick",
    languages: Languages = "",
    pooling: Pooling = None,
    prompt: Prompt = None,
    max_length: Annotated[int | None, typer.Option(min=2, help="Maximum tokens per text.")] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder in which vectors are cached for later evaluations.")
    ] = None,
    precision: Precision = None,
    seen: Annotated[
        str, typer.Option(help="Languages of the training data, separated by commas; marked in the page.")
    ] = "",
    function: Annotated[
        str | None,
        typer.Option(help="Python function to evaluate, as module:name; takes a list of texts, returns vectors."),
    ] = None,
    vectors: Annotated[Path | None, typer.Option(help="NumPy file of vectors to evaluate; requires --texts.")] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Texts of --vectors: plain lines, or JSON strings (.jsonl).")
    ] = None,
    texts_only: Annotated[
        bool, typer.Option("--write-texts", help="Write the texts of the tasks to OUTPUT and stop.")
    ] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score a model per language; write tables, an HTML page and JSON."""
    from isoglot.evaluation.evaluate import evaluate
    from isoglot.evaluation.precomputed import export_texts
    from isoglot.evaluation.run import plan
    from isoglot.evaluation.scores import check_folder

    if texts_only:
        if made := [name for name, given in (("MODEL", model), ("--vectors", vectors), ("--cache", cache)) if given]:
            raise typer.BadParameter(f"--write-texts encodes nothing; remove {made[0]}")
        count = export_texts(output, split(tasks), data=data, languages=split(languages), report=say)
        say(f"wrote {count:,} texts to {output}, one JSON string per line")
        return
    if model is None and function is None and vectors is None:
        model = default_model()
        say(f"model: {model}")
    check_folder(output, inputs=[vectors, texts])  # before the model is opened
    plan(split(tasks), languages=split(languages))  # unknown tasks too
    settings = {"pooling": pooling, "prompt": prompt, "max_length": max_length}
    if precision is not None and model is None:
        raise EvaluationError("--precision is for a MODEL; it does not change vectors or functions, so remove it")
    subject = open_subject(model, function, vectors, texts, device=device, precision=precision, **settings)
    if cache is not None:
        on_interrupt("run the same command again to resume; the vectors in --cache are kept")
    with Progress("encoding") as progress:
        scores = evaluate(
            subject, split(tasks), data=data, languages=split(languages), cache=cache, precision=precision,
            output=output, seen=split(seen), name=function, skip_missing=True, report=say, progress=progress,
        )  # fmt: skip
    if as_json:
        typer.echo((output / "results.json").read_text(encoding="utf-8"), nl=False)
    else:
        for grid in scores.grids():
            show_grid(grid)
    say(f"wrote {output / 'page.html'} and results.json")


def open_subject(
    model: str | None,
    function: str | None = None,
    vectors: Path | None = None,
    texts: Path | None = None,
    *,
    device: str = "auto",
    precision: str | None = None,
    **settings: Any,
) -> Model | Encode:
    """The system to evaluate: a model with its settings, a Python function, or vectors with their texts.

    Raises `EvaluationError` unless exactly one is specified.
    """
    from isoglot.evaluation.precomputed import Precomputed

    if sum(entry is not None for entry in (model, function, vectors)) != 1:
        raise EvaluationError("specify one thing to evaluate: MODEL, --function module:name, or --vectors with --texts")
    if (texts is None) != (vectors is None):
        raise EvaluationError("--vectors and --texts belong together: line i of the texts is the text of row i")
    if model is not None:
        return open_encoder(model, device=device, precision=precision, **settings)
    for option, value in settings.items():
        if value is not None:
            raise EvaluationError(
                f"--{option.replace('_', '-')} is for a MODEL; it does not change vectors or functions, so remove it"
            )
    return Precomputed(vectors, texts) if vectors is not None and texts is not None else _function(str(function))


def _function(name: str) -> Encode:
    try:
        found = imported(name)
    except ImportError as error:
        raise EvaluationError(f"--function {name}: {error}; write module:name, a function of texts") from error
    if not callable(found):
        raise EvaluationError(f"--function {name}: not callable but {type(found).__name__}; it must be a function")
    return found
