"""`isoglot evaluate`: score a model; write tables, JSON and an HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoglot.cli.console import Progress, on_interrupt, say, show_grid
from isoglot.cli.options import Data, Json, Output, Settings, default_model, imported, loading, open_encoder
from isoglot.cli.signatures import Of, split
from isoglot.core.errors import EvaluationError

if TYPE_CHECKING:
    from isoglot.evaluation.base import Encode
    from isoglot.model import Model


def evaluate(
    model: str | None = None,
    *,
    output: Output,
    data: Data,
    tasks: str = "quick",
    opening: Annotated[Settings, loading("pooling", "prompt", "max_length")],
    settings: Annotated[Settings, Of("evaluation.evaluate:evaluate", "languages", "cache", "precision", "seen")],
    function: str | None = None,
    vectors: Path | None = None,
    texts: Path | None = None,
    texts_only: Annotated[bool, typer.Option("--write-texts")] = False,
    as_json: Json = False,
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

    languages = settings.get("languages", [])
    if texts_only:
        encoding = {"MODEL": model, "--vectors": vectors, "--cache": settings.get("cache")}
        for name in [name for name, given in encoding.items() if given]:
            raise typer.BadParameter(f"--write-texts encodes nothing; remove {name}")
        count = export_texts(output, split(tasks), data=data, languages=languages, report=say)
        say(f"wrote {count:,} texts to {output}, one JSON string per line")
        return
    if model is None and function is None and vectors is None:
        model = default_model()
        say(f"model: {model}")
    check_folder(output, inputs=[vectors, texts])  # before the model is opened
    plan(split(tasks), languages=languages)  # unknown tasks too
    subject = open_subject(model, function, vectors, texts, precision=settings.get("precision"), **opening)
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
    for option, value in {"precision": precision, **settings}.items():
        if value is not None:
            raise EvaluationError(
                f"--{option.replace('_', '-')} is for a MODEL; it does not change vectors or functions, so remove it"
            )
    if vectors is not None and texts is not None:
        return Precomputed(vectors, texts)
    return imported("--function", str(function), "module:name of a function from texts to vectors")
