"""`isoglot evaluate`: a model's scores as tables, files that programs read, and a page that people read."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import typer

from isoglot.cli.counting import Counting
from isoglot.cli.imported import imported
from isoglot.cli.shown import show_grid, wrapped
from isoglot.encoders import Encoder, load
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


def run(
    subject: Subject,
    output: Path,
    *,
    data: Path | None,
    tasks: Sequence[str],
    languages: Sequence[str],
    cache: Path | None,
    seen: Sequence[str] = (),
) -> None:
    """Evaluate and save; tables go to stdout, what is missing and the time taken to stderr."""
    check_folder(output, inputs=[subject.vectors, subject.texts])  # before the model is opened
    name, model = open_subject(subject)
    with Counting() as counting, _termination_is_an_error():
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
            report=counting.say,
            progress=counting,
        )
    for grid in scores.grids():
        show_grid(grid)
    typer.echo(wrapped(f"wrote {output / 'page.html'} and results.json"), err=True)


def write_texts(path: Path, *, data: Path | None, tasks: Sequence[str], languages: Sequence[str]) -> None:
    """Write every text that the tasks would encode."""
    count = export_texts(path, tasks, data=data, languages=languages, report=lambda line: typer.echo(line, err=True))
    typer.echo(f"wrote {count:,} texts to {path}, one JSON string per line", err=True)


def open_subject(subject: Subject) -> tuple[str | None, Encoder | Encode]:
    """The name and the model. Raises `EvaluationError` unless exactly one is specified."""
    given = [subject.model, subject.function, subject.vectors]
    if sum(entry is not None for entry in given) != 1:
        raise EvaluationError("specify one thing to evaluate: MODEL, --function module:name, or --vectors with --texts")
    if (subject.texts is None) != (subject.vectors is None):
        raise EvaluationError("--vectors and --texts belong together: line i of the texts is the text of row i")
    if subject.model is not None:
        chosen = {"pooling": subject.pooling, "prompt": subject.prompt, "max_length": subject.max_length}
        return subject.model, load(subject.model, **chosen)  # type: ignore[arg-type]
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


@contextmanager
def _termination_is_an_error() -> Iterator[None]:
    """SIGTERM, which would end the process on the spot, raises `SystemExit`, so that finished scores are saved."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
