"""`isoglot evaluate`: a model's scores as tables, files that programs read, and a page that people read."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from isoglot import __version__
from isoglot.cli.counting import Counting
from isoglot.cli.imported import imported
from isoglot.cli.shown import show_grid, wrapped
from isoglot.data.files import atomic_write, check_json, check_output, digest, exclusive
from isoglot.encoders import load
from isoglot.encoders.base import identity
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode
from isoglot.evaluation.precomputed import precomputed, write_texts
from isoglot.evaluation.run import Finished, evaluate, texts_of
from isoglot.evaluation.suites import SUITES
from isoglot.report.mteb import write_mteb
from isoglot.report.page import write_page
from isoglot.report.results import Results, Setting, write_results
from isoglot.report.tables import by_language, by_suite, lacking, to_markdown

FILES = ("results.json", "items.npz", "details.jsonl", "results.md", "page.html")
_MTEB = Path("mteb/results")  # mteb itself looks for the second of these in the folder that it is given


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
    seen: Sequence[str] = (),
) -> None:
    """Evaluate and write; the tables go to stdout, what is missing and the time taken to stderr.

    What stops a task is raised after the scores of the tasks before it are written.
    """
    check_output(output, folder=True)
    for file in FILES:
        check_output(output / file, inputs=[subject.vectors, subject.texts])
    if cache is not None:
        check_output(cache, folder=True)
    with exclusive(output):
        check_json(output / "results.json", ("model", "scores"))
        _run(subject, output, data=data, tasks=tasks, languages=languages, cache=cache, seen=seen)


def _run(
    subject: Subject,
    output: Path,
    *,
    data: Path,
    tasks: Sequence[str],
    languages: Sequence[str],
    cache: Path | None,
    seen: Sequence[str],
) -> None:
    name, model, settings = open_subject(subject)
    finished, failure = _evaluate(model, tasks, data=data, languages=languages, cache=cache)
    if not finished:
        none = f"{data}: none of the tasks {', '.join(tasks)} was scored there; the lines above say why"
        raise failure or EvaluationError(none)
    results = Results(name, settings, tuple(score for done in finished for score in done.scores))
    suites = [task for task in tasks if task in SUITES]
    try:
        write(output, results, suites=suites, seen=seen)
    finally:
        show(results, suites=suites, named=tasks, data=data, languages=languages)
    seconds = sum(done.seconds for done in finished)
    share = sum(done.encoding for done in finished) / seconds if seconds else 0.0
    took = f"the tasks took {seconds:.0f} s, {share:.0%} in the encoder"
    typer.echo(f"{took}; wrote {output / 'page.html'} and results.json", err=True)
    if failure is not None:
        typer.echo(f"only {', '.join(done.task for done in finished)}: the next task was stopped", err=True)
        raise failure


def _evaluate(model: Any, tasks: Sequence[str], **options: Any) -> tuple[list[Finished], BaseException | None]:
    """The tasks that ended, and what stopped the next one: any error, Ctrl-C, or the end that a scheduler asks for."""
    finished: list[Finished] = []
    with Counting() as counting, _ending_is_an_error():

        def hear(done: Finished) -> None:
            finished.append(done)
            counting.say(_took(done))

        try:
            evaluate(model, tasks, on_missing=counting.say, on_finished=hear, progress=counting, **options)
        except BaseException as error:
            return finished, error
    return finished, None


@contextmanager
def _ending_is_an_error() -> Iterator[None]:
    """SIGTERM, which would end the process on the spot, raises `SystemExit` instead."""

    def leave(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_subject(subject: Subject) -> tuple[str, Any, dict[str, Setting]]:
    """Name, model and settings as results keep them. Raises `EvaluationError` unless exactly one subject is named."""
    given = [subject.model, subject.function, subject.vectors]
    if sum(entry is not None for entry in given) != 1:
        raise EvaluationError("name one thing to evaluate: a MODEL, --function module:name, or --vectors with --texts")
    if subject.texts is not None and subject.vectors is None:
        raise EvaluationError("--texts are those of --vectors, which was not given; leave it out")
    if subject.model is None:
        _must_be_unset(subject)
    if subject.function is not None:
        return subject.function, _function(subject.function), {"version": __version__}
    if subject.vectors is not None:
        if subject.texts is None:
            raise EvaluationError("--vectors needs --texts, the file whose line i is the text of row i")
        function = precomputed(subject.vectors, subject.texts)
        known: dict[str, Setting] = {"vectors": digest(subject.vectors), "version": __version__}
        return str(subject.vectors), function, known
    encoder = load(str(subject.model), pooling=subject.pooling, prompt=subject.prompt, max_length=subject.max_length)
    known = {"encoder": identity(encoder), "version": __version__}
    settings: dict[str, Setting] = {"pooling": encoder.pooling} if encoder.pooling else {}
    settings |= {"prompt": encoder.prompt, "max_length": encoder.max_length}
    return str(subject.model), encoder, settings | known


def _must_be_unset(subject: Subject) -> None:
    """Nothing that would have to be done to the texts, and was not: results would say nothing of it."""
    for option in ("pooling", "prompt", "max_length"):
        if getattr(subject, option) is not None:
            raise EvaluationError(
                f"--{option.replace('_', '-')} is for a MODEL; vectors and functions are taken as they are, so do it "
                "where they are made"
            )


def list_texts(path: Path, *, data: Path, tasks: Sequence[str], languages: Sequence[str]) -> None:
    """Write every text that the tasks would encode."""
    check_output(path, inputs=[data])
    texts = texts_of(tasks, data=data, languages=languages, on_missing=lambda line: typer.echo(line, err=True))
    if not texts:
        raise EvaluationError(f"{data}: none of the tasks {', '.join(tasks)} found its data there; there is no text")
    write_texts(path, texts)
    typer.echo(f"wrote {len(texts):,} texts to {path}, one JSON string a line", err=True)


def write(
    output: Path,
    results: Results,
    *,
    suites: Sequence[str] = (),
    before: Sequence[Results] = (),
    seen: Sequence[str] = (),
) -> None:
    """Write everything about a model's scores into a folder; the page shows it after those `before` it.

    `seen` are the languages it was trained on, if the page shall tell them apart.
    """
    write_mteb(output / _MTEB, replace(results, scores=()))  # a kill below must not leave those of an earlier model
    write_results(output, results)
    with atomic_write(output / "results.md") as stream:
        stream.write("\n".join(_sections(results, suites)))
    write_mteb(output / _MTEB, results)
    write_page(output / "page.html", [*before, results], seen=seen)


def show(
    results: Results,
    *,
    suites: Sequence[str] = (),
    named: Sequence[str] = (),
    data: Path | None = None,
    languages: Sequence[str] = (),
) -> None:
    """Print the tables of a model: those of the suites, and one for each task `named` or that they have no number of.

    Below a suite stands what it lacks, with the command that gets it into `data`, or that `languages` left it out.
    """
    shown: set[str] = set()
    for suite in suites:
        show_grid(by_suite({results.model: results.scores}, suite=suite))
        for line in lacking(results.scores, suite=suite, data=data, languages=languages):
            typer.echo(wrapped(f"– {line}"))
        cells = zip(SUITES[suite].columns, SUITES[suite].table(results.scores), strict=True)
        shown |= {task for column, cell in cells if not cell.lacking for task, _, _ in column.keys}
    for task in dict.fromkeys(score.task for score in results.scores):
        if task in named or task not in shown:
            show_grid(by_language(results.scores, task=task))


def _sections(results: Results, suites: Sequence[str]) -> list[str]:
    sections = []
    for suite in suites:
        notes = "".join(f"- {line}\n" for line in lacking(results.scores, suite=suite))
        table = to_markdown(by_suite({results.model: results.scores}, suite=suite))
        missing = f"\nMissing:\n\n{notes}" if notes else ""
        sections.append(f"## Suite {suite}\n\n{SUITES[suite].about}\n\n{table}{missing}")
    for task in dict.fromkeys(score.task for score in results.scores):
        grid = by_language(results.scores, task=task)
        sections.append(f"## {grid.title}\n\n{to_markdown(grid)}")
    return sections


def _took(done: Finished) -> str:
    share = done.encoding / done.seconds if done.seconds else 0.0
    return f"{done.task}: {done.seconds:.1f} s, {share:.0%} of them in the encoder"


def _function(name: str) -> Encode:
    try:
        found = imported(name)
    except ImportError as error:
        raise EvaluationError(f"--function {name}: {error}; write module:name, a function of texts") from error
    if not callable(found):
        raise EvaluationError(f"--function {name}: is no function but {type(found).__name__}; name one of texts")
    return found
