"""`isoglot evaluate`: a model's scores as tables, files that programs read, and a page that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from isoglot.cli.console import Progress, on_interrupt, say, show_grid
from isoglot.cli.options import imported, open_encoder
from isoglot.encoders import Encoder
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode
from isoglot.evaluation.precomputed import Precomputed, export_texts
from isoglot.report.evaluate import evaluate
from isoglot.report.scores import check_folder


@dataclass(frozen=True, slots=True)
class Subject:
    """What is evaluated: a model by name with its settings, a Python function, or a table of vectors with its texts."""

    model: str | None = None
    pooling: str | None = None
    prompt: str | None = None
    max_length: int | None = None
    function: str | None = None
    vectors: Path | None = None
    texts: Path | None = None
    device: str = "auto"


def run(
    subject: Subject,
    output: Path,
    *,
    data: Path | None,
    tasks: Sequence[str],
    languages: Sequence[str],
    cache: Path | None,
    seen: Sequence[str] = (),
    as_json: bool = False,
) -> None:
    """Evaluate and save; tables, or results.json, go to stdout, what is missing and the time taken to stderr."""
    check_folder(output, inputs=[subject.vectors, subject.texts])  # before the model is opened
    name, model = open_subject(subject)
    if cache is not None:
        on_interrupt("run the same command again to resume; the vectors in --cache are kept")
    with Progress("encoding") as progress:
        scores = evaluate(
            model,
            tasks,
            data=data,
            languages=languages,
            cache=cache,
            output=output,
            seen=seen,
            name=name,
            skip_missing=True,
            report=say,
            progress=progress,
        )
    if as_json:
        typer.echo((output / "results.json").read_text(encoding="utf-8"), nl=False)
    else:
        for grid in scores.grids():
            show_grid(grid)
    say(f"wrote {output / 'page.html'} and results.json")


def write_texts(path: Path, *, data: Path | None, tasks: Sequence[str], languages: Sequence[str]) -> None:
    """Write every text that the tasks would encode."""
    count = export_texts(path, tasks, data=data, languages=languages, report=say)
    say(f"wrote {count:,} texts to {path}, one JSON string per line")


def open_subject(subject: Subject) -> tuple[str | None, Encoder | Encode]:
    """The name and the model. Raises `EvaluationError` unless exactly one is specified."""
    given = [subject.model, subject.function, subject.vectors]
    if sum(entry is not None for entry in given) != 1:
        raise EvaluationError("specify one thing to evaluate: MODEL, --function module:name, or --vectors with --texts")
    if (subject.texts is None) != (subject.vectors is None):
        raise EvaluationError("--vectors and --texts belong together: line i of the texts is the text of row i")
    if subject.model is not None:
        chosen: dict[str, Any] = {
            "pooling": subject.pooling,
            "prompt": subject.prompt,
            "max_length": subject.max_length,
        }
        return subject.model, open_encoder(subject.model, device=subject.device, **chosen)
    for option in ("pooling", "prompt", "max_length"):
        if getattr(subject, option) is not None:
            raise EvaluationError(
                f"--{option.replace('_', '-')} is for a MODEL; it does not change vectors or functions, so remove it"
            )
    if subject.vectors is not None and subject.texts is not None:
        return None, Precomputed(subject.vectors, subject.texts)
    return subject.function, _function(str(subject.function))


def _function(name: str) -> Encode:
    try:
        found = imported(name)
    except ImportError as error:
        raise EvaluationError(f"--function {name}: {error}; write module:name, a function of texts") from error
    if not callable(found):
        raise EvaluationError(f"--function {name}: not callable but {type(found).__name__}; it must be a function")
    return found
