"""`isoglot evaluate`: a model's scores as tables, files that programs read, and a page that people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

from isoglot import __version__
from isoglot.cli.counting import Counting
from isoglot.cli.imported import imported
from isoglot.data.files import atomic_write, digest
from isoglot.encoders import load
from isoglot.encoders.identity import identity
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode
from isoglot.evaluation.precomputed import precomputed, write_texts
from isoglot.evaluation.run import Finished, evaluate, texts_of
from isoglot.evaluation.suites import SUITES
from isoglot.report.mteb import write_mteb
from isoglot.report.page import write_page
from isoglot.report.scores import Results, Setting, write_results
from isoglot.report.tables import by_language, by_suite, lacking, to_markdown, to_rich


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
    data: Path,
    tasks: Sequence[str],
    languages: Sequence[str],
    cache: Path | None,
) -> None:
    """Evaluate and write; the tables go to stdout, what is missing and the time taken to stderr."""
    name, model, settings = open_subject(subject)
    times: list[Finished] = []
    with Counting() as counting:
        scores = evaluate(
            model,
            tasks,
            data=data,
            languages=languages,
            cache=cache,
            on_missing=counting.say,
            on_finished=lambda done: times.append(done) or counting.say(_took(done)),  # type: ignore[func-returns-value]
            progress=counting,
        )
    if not scores:
        raise EvaluationError(f"{data}: none of the tasks {', '.join(tasks)} found its data there; nothing was scored")
    results = Results(name, settings, tuple(scores))
    write(output, results, suites=[task for task in tasks if task in SUITES])
    show(results, suites=[task for task in tasks if task in SUITES])
    seconds = sum(done.seconds for done in times)
    share = sum(done.encoding for done in times) / seconds if seconds else 0.0
    typer.echo(f"{seconds:.0f} s, {share:.0%} in the encoder; wrote {output / 'page.html'} and results.json", err=True)


def open_subject(subject: Subject) -> tuple[str, Any, dict[str, Setting]]:
    """Name, model and settings as results keep them. Raises `EvaluationError` unless exactly one subject is named."""
    given = [subject.model, subject.function, subject.vectors]
    if sum(entry is not None for entry in given) != 1:
        raise EvaluationError("name one thing to evaluate: a MODEL, --function module:name, or --vectors with --texts")
    if subject.function is not None:
        return subject.function, _function(subject.function), {"version": __version__}
    if subject.vectors is not None:
        if subject.texts is None:
            raise EvaluationError("--vectors needs --texts, the file whose line i is the text of row i")
        known: dict[str, Setting] = {"vectors": digest(subject.vectors), "version": __version__}
        return str(subject.vectors), precomputed(subject.vectors, subject.texts), known
    encoder = load(str(subject.model), pooling=subject.pooling, prompt=subject.prompt, max_length=subject.max_length)
    known = {"encoder": identity(encoder), "version": __version__}
    settings = {name: getattr(encoder, name) for name in ("pooling", "prompt", "max_length") if hasattr(encoder, name)}
    return str(subject.model), encoder, settings | known


def list_texts(path: Path, *, data: Path, tasks: Sequence[str], languages: Sequence[str]) -> None:
    """Write every text that the tasks would encode."""
    texts = texts_of(tasks, data=data, languages=languages)
    if not texts:
        raise EvaluationError(f"{data}: none of the tasks {', '.join(tasks)} found its data there; there is no text")
    write_texts(path, texts)
    typer.echo(f"wrote {len(texts):,} texts to {path}, one JSON string a line", err=True)


def write(output: Path, results: Results, *, suites: Sequence[str] = (), before: Sequence[Results] = ()) -> None:
    """Write everything about a model's scores into a folder; the page shows it after those `before` it."""
    write_results(output, results)
    with atomic_write(output / "results.md") as stream:
        stream.write("\n".join(_sections(results, suites)))
    write_mteb(output / "mteb", results)
    write_page(output / "page.html", [*before, results])


def show(results: Results, *, suites: Sequence[str] = ()) -> None:
    """Print the tables of a model: those of the suites, or else one for each task."""
    console = Console()
    for suite in suites:
        console.print(to_rich(by_suite({results.model: results.scores}, suite=suite)))
        for line in lacking(results.scores, suite=suite):
            console.print(Text(f"– {line}"), soft_wrap=True)
    if not suites:
        for task in dict.fromkeys(score.task for score in results.scores):
            console.print(to_rich(by_language(results.scores, task=task)))


def _sections(results: Results, suites: Sequence[str]) -> list[str]:
    sections = []
    for suite in suites:
        notes = "".join(f"- {line}\n" for line in lacking(results.scores, suite=suite))
        table = to_markdown(by_suite({results.model: results.scores}, suite=suite))
        sections.append(f"## Suite {suite}\n\n{SUITES[suite].about}\n\n{table}\n{notes}")
    for task in dict.fromkeys(score.task for score in results.scores):
        sections.append(f"## {task}\n\n{to_markdown(by_language(results.scores, task=task))}")
    return sections


def _took(done: Finished) -> str:
    share = done.encoding / done.seconds if done.seconds else 0.0
    return f"{done.task}: {done.seconds:.1f} s, {share:.0%} of them in the encoder"


def _function(name: str) -> Encode:
    try:
        return imported(name)
    except ImportError as error:
        raise EvaluationError(f"--function {name}: {error}; write module:name, a function of texts") from error
