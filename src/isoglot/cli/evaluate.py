"""`isoglot evaluate`: a model's scores as a table, `results.json` and `results.md`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from isoglot.data.files import atomic_write
from isoglot.encoders import encode, load
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Score
from isoglot.evaluation.run import evaluate
from isoglot.report.scores import write_results
from isoglot.report.tables import by_language, to_markdown, to_rich


def run(
    model: str,
    data: Path,
    output: Path,
    *,
    tasks: Sequence[str],
    languages: Sequence[str],
    pooling: str | None,
    prompt: str | None,
) -> None:
    """Evaluate and write; the table goes to stdout."""
    if not tasks:
        raise EvaluationError("no task was named; write for example --tasks tatoeba")
    encoder = load(model, pooling=pooling, prompt=prompt)
    scores = evaluate(
        lambda texts: encode(encoder, texts),
        tasks,
        data=data,
        languages=languages,
        on_missing=lambda message: typer.echo(message, err=True),
    )
    if not scores:
        raise EvaluationError(f"{data}: none of the tasks {', '.join(tasks)} found its data there; nothing was scored")
    write(model, scores, output)
    for task in dict.fromkeys(score.task for score in scores):
        Console().print(to_rich(by_language(scores, task=task)))
    typer.echo(f"wrote {output / 'results.json'} and {output / 'results.md'}", err=True)


def write(model: str, scores: Sequence[Score], output: Path) -> None:
    """Write the scores of a model into a folder, as JSON and as Markdown."""
    write_results(output / "results.json", model, scores=scores)
    names = dict.fromkeys(score.task for score in scores)
    with atomic_write(output / "results.md") as stream:
        stream.write("\n".join(f"## {name}\n\n{to_markdown(by_language(scores, task=name))}" for name in names))
