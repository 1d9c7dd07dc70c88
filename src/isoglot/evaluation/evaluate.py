"""`isoglot.evaluate`: the scores of a model on tasks, on translations in memory, or on rated pairs in memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from isoglot.core import __version__, environment
from isoglot.core.arguments import check_arguments
from isoglot.core.errors import EvaluationError, quote
from isoglot.core.progress import Progress, Report
from isoglot.core.score import Setting
from isoglot.data.files import check_output, digest, exclusive
from isoglot.data.groups import groups_of, short_row
from isoglot.data.languages import among, canonical_list
from isoglot.data.sets.normal import Row, Rows
from isoglot.evaluation.base import Encode, Task
from isoglot.evaluation.precomputed import Precomputed
from isoglot.evaluation.run import Planned, function, plan, run_tasks
from isoglot.evaluation.scores import Scores, check_folder
from isoglot.evaluation.suites import SUITES, lacking
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.evaluation.tasks.sts import Sts
from isoglot.evaluation.vectors import Remembered
from isoglot.model import Model, load

_SIDES = ("source", "target", *(f"text{place}" for place in range(3, 201)))  # codes of groups with unknown languages


@check_arguments()
def evaluate(
    model: str | Path | Model | Encode,
    tasks: str | Task | Sequence[str | Task] | None = None,
    *,
    data: str | Path | None = None,
    pairs: Any = None,
    sts: Any = None,
    languages: str | Sequence[str] = (),
    cache: str | Path | None = None,
    precision: str | None = None,
    device: str = "auto",
    output: str | Path | None = None,
    seen: Collection[str] = (),
    name: str | None = None,
    skip_missing: bool = False,
    report: Report | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score a model.

    model         an encoder, a name or folder for `isoglot.load`, a function from N texts to an array (N, D), a
                  model of another library with `encode(texts)`, whose `encode_query` and `encode_document` are used
                  where a task has these roles, or `Precomputed` vectors
    tasks         names of tasks and suites (`isoglot tasks` lists them), or `Task` objects
    data          the folder with the tasks' files; default: $ISOGLOT_DATA, else data/
    pairs         translations that were held out, scored by retrieval in both directions: a list of pairs or tuples of
                  sentences, `Group`s, a DataFrame, or a dict of columns such as {"en": [...], "de": [...]}
    sts           rows (sentence, sentence, gold) or such columns: Spearman and Pearson correlation of cosines with gold
    languages     language codes; default: all languages, or those of the suite. For `pairs` and `sts` that are tuples:
                  their languages, in order
    cache         folder in which vectors are cached for later evaluations
    precision     precision of the computation: float32, bfloat16, tf32 (on CUDA), int8, or auto; default:
                  auto, as for encoding
    device        for a model that is loaded by name
    output        folder in which the scores are saved (see `Scores.save`). If a task fails or is interrupted, the
                  scores of the tasks before it are saved before the error is raised
    seen          languages of the training data, which the page shows apart
    name          name of the model in tables; default: its own
    skip_missing  leave out tasks and languages whose data are missing (`Scores.missing` lists them); otherwise they are
                  an error
    report        called with a line for each finished task and for skipped data
    progress      called with (texts encoded, all texts) for each batch of texts; default: a bar on a terminal

    Raises `EvaluationError` for missing or unusable data, unknown tasks and unusable vectors; `EncoderError` for an
    unknown model; `OutputError`; `TypeError` for an argument of the wrong kind.
    """
    entries = _check_kinds(model, tasks)
    codes = tuple(languages.split(",") if isinstance(languages, str) else languages)
    in_memory = _make_tasks(pairs, sts, codes)
    if not entries and not in_memory:
        raise EvaluationError("nothing to evaluate on; pass tasks (isoglot tasks lists them), pairs= or sts=")
    planned = plan(entries, languages=codes, in_memory=in_memory)
    if output is not None:
        check_folder(Path(output), inputs=(model.vectors, model.texts) if isinstance(model, Precomputed) else ())
    if cache is not None:
        check_output(cache, folder=True)
    opened = load(model, device=device) if isinstance(model, str | Path) else model
    label, settings = describe(opened)
    if isinstance(opened, Model):
        try:
            settings["precision"] = opened.settle(precision)
        except ValueError as error:
            raise EvaluationError(f"{label}: {error}") from error
    scores = Scores((), name or (str(model) if isinstance(model, str | Path) else label), settings)
    suites = dict.fromkeys(entry for entry in entries if isinstance(entry, str) and entry in SUITES)
    run_entries = [*entries, *(task for task, _ in in_memory)]
    scores.named = tuple(entry if isinstance(entry, str) else entry.name for entry in run_entries)
    root = Path(data) if data is not None else environment.data_folder()
    vectors = function(opened, cache=cache, precision=precision, progress=progress)
    with exclusive(output) if output is not None else nullcontext():
        try:
            _collect(scores, vectors, planned, root, skip_missing, report)
        finally:  # an error, Ctrl-C or SIGTERM loses no finished task
            scores.suites = {suite: lacking(scores, suite=suite, data=root, languages=codes) for suite in suites}
            if output is not None and scores:
                scores.save(output, seen=seen)
        if output is not None and not scores:
            reasons = "" if report else f": {'; '.join(scores.missing)}"
            raise EvaluationError(f"{root}: no data for {', '.join(scores.named)}{reasons}")
    return scores


def _check_kinds(model: Any, tasks: Any) -> list[str | Task]:
    """The tasks as a list. Raises TypeError for anything but a model, and names or objects of tasks."""
    if not isinstance(model, str | Path | Model) and not callable(model) and not hasattr(model, "encode"):
        expected = "a model, a name or folder, or a function from a list of N texts to an array (N, D)"
        raise TypeError(f"model is of type {type(model).__name__}; pass {expected}")
    several = isinstance(tasks, Iterable) and not isinstance(tasks, str) and not hasattr(tasks, "run")
    entries = [*tasks] if several else [] if tasks is None else [tasks]
    for task in entries:
        if not isinstance(task, str) and not hasattr(task, "run"):
            expected = "names of tasks or Task objects, translations as pairs=, and rated pairs as sts="
            raise TypeError(f"tasks contains {quote(task)}; pass {expected}")
    return entries


def _collect(
    scores: Scores, vectors: Remembered, tasks: Sequence[Planned], data: Path, skip_missing: bool, report: Report | None
) -> None:
    """Add the scores of the tasks to `scores`, one task after the other."""
    say = report or (lambda _: None)

    def skip(line: str) -> None:
        scores.missing = (*scores.missing, line)
        say(line)

    try:
        missing = skip if skip_missing else None
        for task, new, seconds, encoding in run_tasks(vectors, tasks, data=data, on_missing=missing):
            scores += new
            say(f"{task}: {seconds:.1f} s ({encoding / seconds if seconds else 0.0:.0%} encoding)")
    except BaseException:
        if scores:
            say(f"finished: {', '.join(dict.fromkeys(score.task for score in scores))}; the next task failed")
        raise


def describe(model: Any) -> tuple[str, dict[str, Setting]]:
    """The name of a model, and the settings that results keep of it."""
    basics: dict[str, Setting] = {"version": __version__}
    if isinstance(model, Precomputed):
        return str(model.vectors), {"vectors": digest(model.vectors)} | basics
    if not isinstance(model, Model):
        return str(getattr(model, "__qualname__", type(model).__name__)), basics
    settings: dict[str, Setting] = {"pooling": model.pooling} if model.pooling else {}
    settings |= {"prompt": model.prompt, "max_length": model.max_length, "encoder": model.identity()}
    return model.name or type(model).__name__, settings | basics


def _make_tasks(pairs: Any, sts: Any, languages: tuple[str, ...]) -> list[Planned]:
    """The tasks on data in memory."""
    tasks: list[Planned] = []
    if pairs is not None:
        # One language selects among the tasks, as everywhere; the sentences of the other are needed with it.
        groups = tuple(groups_of(pairs, languages if len(languages) > 1 else None, name="pairs"))
        if not groups:
            raise EvaluationError("pairs contains no translations; pass at least one pair of sentences")
        if number := short_row(groups):
            where = f" in {', '.join(languages)}" if len(languages) > 1 else ""
            raise EvaluationError(f"row {number} of pairs needs a sentence and its translation{where}; complete it")
        has_codes = any(len(set(group.langs)) > 1 for group in groups)
        if not has_codes:  # unknown languages: name the sides by their position
            groups = tuple(replace(group, langs=_SIDES[: len(group.texts)]) for group in groups)
        if monolingual := [at for at, group in enumerate(groups, 1) if len(set(group.langs)) < 2]:
            problem = f"row {monolingual[0]} of pairs has no language but {groups[monolingual[0] - 1].langs[0]}"
            raise EvaluationError(f"{problem}, and others have two; remove it, or score it apart")
        present = {code for group in groups for code in group.langs}
        if absent := [one for one in languages if has_codes and not any(among(code, [one]) for code in present)]:
            raise EvaluationError(f"pairs has no sentences in {', '.join(absent)}; it has {', '.join(sorted(present))}")
        if has_codes and len(languages) == 1 and (among("eng", languages) or "eng" not in present):
            problem = f"{languages[0]} is scored with English by default"
            raise EvaluationError(f"{problem}; pass both languages of the pairs, of {', '.join(sorted(present))}")
        tasks.append((Retrieval(groups), languages if has_codes else ()))
    if sts is not None:
        rated = Rows(Row(row[:2], (f"row {number}",), row[2]) for number, row in enumerate(_read_ratings(sts), 1))
        if not rated:
            raise EvaluationError("sts contains no rows; pass rows (sentence, sentence, gold)")
        codes = dict.fromkeys(canonical_list(languages))
        subset = "-".join(codes) if 0 < len(codes) <= 2 else "pairs"
        tasks.append((Sts("sts", rows={subset: rated}), ()))
    return tasks


def _read_ratings(rows: Any) -> Iterator[tuple[str, str, float]]:
    """Rows (sentence, sentence, gold) of a list of such rows, or of data with such columns."""
    columns = isinstance(rows, Mapping) or hasattr(rows, "columns") or hasattr(rows, "column_names")
    if isinstance(rows, str) or not (columns or isinstance(rows, Iterable)):
        raise TypeError(f"sts is of type {type(rows).__name__}; pass rows (sentence, sentence, gold)")
    rows = list(groups_of(rows, name="sts")) if columns else rows
    gold = next(
        (name for name in ("score", "gold", "label") if columns and any(name in row.extras for row in rows)), ""
    )
    for number, row in enumerate(rows, 1):
        if gold and gold not in row.extras:
            raise TypeError(f"row {number} of sts has no {gold}; leave the row out or give its score")
        if columns:
            row = *row.texts, *([row.extras[gold]] if gold else [])
        is_pair = isinstance(row, Sequence) and len(row) == 3 and isinstance(row[0], str) and isinstance(row[1], str)
        if not is_pair or isinstance(row[2], str | bool | tuple | None):
            expected = "the columns sentence1, sentence2 and score" if columns else "rows (sentence, sentence, gold)"
            raise TypeError(f"row {number} of sts is {quote(row)}; pass {expected}")
        if not math.isfinite(row[2]):
            raise TypeError(f"row {number} of sts has the score {row[2]}; leave the row out or give its score")
        yield row[0], row[1], float(row[2])
