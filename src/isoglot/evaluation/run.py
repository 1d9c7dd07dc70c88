"""Running tasks: every text is encoded once over all of them, and missing data are always reported."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from isoglot.core.errors import EvaluationError, naming_extras, nearest
from isoglot.core.plugins import source_of
from isoglot.core.progress import Progress, Report
from isoglot.data.files import collecting, content_digest
from isoglot.data.store import VectorStore
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score, Task
from isoglot.evaluation.sets import among, get_command
from isoglot.evaluation.suites import SUITES
from isoglot.evaluation.vectors import Remembered, find_transformer
from isoglot.model import Model
from isoglot.model.base import cache_key

Planned = tuple[Task, tuple[str, ...]]  # a task and the languages it is restricted to; none: all


class Finished(NamedTuple):
    """A finished task: its scores, its duration in seconds, and the part of that spent encoding."""

    task: str
    scores: tuple[Score, ...]
    seconds: float
    encoding: float


def run_tasks(
    vectors: Remembered, tasks: Iterable[Planned], *, data: Path, on_missing: Report | None = None
) -> Iterator[Finished]:
    """Run each task on its languages, as `plan` gives them, one after the other.

    `vectors` is what `function` makes of a model, and `data` the folder that contains the tasks' files. A task or
    language without data is skipped after `on_missing` was called with a line about it; without `on_missing`, missing
    data are an error. Raises `EvaluationError` for missing data, unusable data and unusable vectors.
    """
    report = on_missing or _reject
    for task, languages, _ in _find_data(tasks, data, report):
        if getattr(task, "needs_model", False) and find_transformer(vectors) is None:
            report(f"{task.name}: needs a transformer to fine-tune, not only vectors")
            continue
        start, before = perf_counter(), vectors.seconds
        with naming_extras():
            scores = task.run(vectors, data, languages=languages)
        yield Finished(task.name, tuple(scores), perf_counter() - start, vectors.seconds - before)


def _find_data(
    tasks: Iterable[Planned], data: Path, report: Report
) -> Iterator[tuple[Task, Sequence[str], tuple[str, ...]]]:
    """The tasks that have data, with their languages and subsets; `report` gets a line for whatever is missing."""
    for task, languages in tasks:
        subsets = _subsets(task, data, languages)
        for message in _name_missing(task, data, languages, subsets):
            report(message)
        if subsets:
            yield task, languages, subsets


def _reject(message: str) -> None:
    raise EvaluationError(message)


def list_subsets(task: str | Task, *, data: str | Path, languages: Sequence[str] = ()) -> tuple[str, ...]:
    """The subsets that an evaluation would score; raises the `EvaluationError` it would raise for missing data."""
    ((_, _, subsets),) = _find_data(plan([task], languages=languages), Path(data), _reject)
    return subsets


def data_digest(task: Task, data: Path, *, languages: Sequence[str] = ()) -> str:
    """Digest of what `task` would score in `data`: the names of its subsets, and the names and content of the files
    that it looks through for them; of a plug-in also the file of its module.

    Raises `EvaluationError` as `subsets` does, and for a file that can't be read.
    """
    with collecting() as files:
        subsets = _subsets(task, data, languages)
    code = source_of(task)
    try:
        content = sorted((os.path.relpath(path, data), content_digest(path)) for path in files)
        state = [task.name, subsets, content, code and content_digest(code)]
    except OSError as error:
        raise EvaluationError(f"{task.name}: {error.filename}: can't be read: {error.strerror}") from error
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def function(
    model: Any,
    *,
    cache: str | Path | None = None,
    precision: str | None = None,
    progress: Progress | None = None,
) -> Remembered:
    """The function from texts to vectors that is passed to tasks; `cache` is a folder of cached vectors.

    `model` is one of ours, one of another library, such as sentence-transformers, or itself such a function.
    """
    if not isinstance(model, Model):
        if cache is not None:
            raise EvaluationError("a cache needs an encoder, since changes of a function can't be detected")
        if precision is not None:
            raise EvaluationError(f"precision={precision!r} needs an encoder; a function computes its vectors itself")
        methods = {role: getattr(model, f"encode_{role}", None) for role in ("query", "document")}
        roles = {role: Remembered(method) for role, method in methods.items() if method is not None}
        return Remembered(getattr(model, "encode", model), roles=roles)
    encoder = model

    def remember(prompt: str | None, roles: Mapping[str, Remembered] | None = None) -> Remembered:
        def encode(texts: Sequence[str]) -> np.ndarray:
            if progress is not None:
                progress(0, len(texts))
            return encoder.encode(texts, prompt=prompt, precision=precision, progress=progress)

        if cache is None:
            return Remembered(encode, model=encoder, roles=roles)
        name = cache_key(encoder, precision)
        name += "" if prompt is None else f"-{hashlib.sha256(prompt.encode()).hexdigest()[:16]}"
        return Remembered(encode, store=VectorStore(Path(cache) / name), model=encoder, roles=roles)

    prompts = {role: encoder.role_prompt(role) for role in ("query", "document")}
    return remember(None, {role: remember(prompt) for role, prompt in prompts.items() if prompt is not None})


def plan(
    tasks: Sequence[str | Task], *, languages: Sequence[str] = (), in_memory: Sequence[Planned] = ()
) -> list[Planned]:
    """Each task once, in order, with its languages: those passed, or else the union over all mentions of the task.

    A suite mentions its own languages, or all (none); a task named by itself, all. Tasks on data `in_memory` follow
    with theirs. Raises `EvaluationError` for an unknown name, for two different tasks of one name, and for no names.
    """
    if not tasks and not in_memory:
        raise EvaluationError("no tasks; pass names that `isoglot tasks` lists")
    selection = {task.name: task for task, _ in in_memory}
    mentions: dict[str, list[Sequence[str]]] = {}
    for entry in tasks:
        suite = SUITES.get(entry) if isinstance(entry, str) else None
        if not suite and isinstance(entry, str) and entry not in TASKS:
            raise EvaluationError(f"unknown task or suite {entry!r}; {nearest(entry, [*TASKS, *SUITES], most=99)}")
        for task in suite.tasks if suite else [entry]:
            one = TASKS[task] if isinstance(task, str) else task
            if selection.setdefault(one.name, one) != one:
                raise EvaluationError(f"two different tasks have the name {one.name!r}; evaluate them separately")
            mentions.setdefault(one.name, []).append(suite.languages.get(one.name, ()) if suite else ())
    unions = {name: sorted(set().union(*every)) if all(every) else () for name, every in mentions.items()}
    return [*((selection[name], tuple(languages or union)) for name, union in unions.items()), *in_memory]


def texts_of(
    tasks: Sequence[str | Task], *, data: str | Path, languages: Sequence[str] = (), on_missing: Report | None = None
) -> list[str]:
    """Every distinct text that the tasks would encode, in their order.

    `on_missing` is called with a line about missing data, as in `run_tasks`. A task that needs the model itself, not
    its vectors, is skipped.
    """
    root, texts = Path(data), dict[str, None]()

    def record(new_texts: Sequence[str]) -> np.ndarray:
        texts.update(dict.fromkeys(new_texts))
        # Any vectors do, since a task asks for all of its texts; but some reject vectors that are all equal.
        return np.random.default_rng(0).standard_normal((len(new_texts), 4))

    for task, codes, _ in _find_data(plan(tasks, languages=languages), root, on_missing or (lambda _: None)):
        if not getattr(task, "needs_model", False):
            task.run(record, root, languages=codes)
    return list(texts)


def _subsets(task: Task, data: Path, languages: Sequence[str]) -> tuple[str, ...]:
    try:
        return task.subsets(data, languages=languages)
    except EvaluationError as error:  # the copy of a set doesn't know the task
        names_task = str(error).startswith((f"{task.name}:", f"{task.name} "))
        raise error if names_task else EvaluationError(f"{task.name}: {error}") from error


def _name_missing(task: Task, data: Path, languages: Sequence[str], subsets: Sequence[str]) -> Iterator[str]:
    available = _subsets(task, data, ()) if languages and not subsets else subsets
    if not available:
        how = get_command(task, data=data, languages=languages)
        state = "" if data.is_dir() else ", which is a file" if data.is_file() else ", which does not exist"
        needs = f"{task.name}: no data in {data}{state}; it needs {task.needs}"
        yield needs + (f"; get it with: {how}" if how else "")
        return
    covered = {code for subset in subsets for code in subset.split("-")}
    paired = {code for subset in available if "-" in subset for code in subset.split("-")}
    with_english = any(among(code, ["eng"]) for code in paired)
    requested = [language for language in languages if not (with_english and among(language, ["eng"]))]
    missing = [language for language in requested if not any(among(code, [language]) for code in covered)]
    if languages and not requested and not subsets:
        yield f"{task.name}: English is scored only with another language; specify that one"
    if missing:
        present = [language for language in requested if language not in missing]
        how = "" if data.is_file() else get_command(task, data=data, languages=missing, beside=present)
        yield f"{task.name}: {data} has no data for {', '.join(missing)}" + (f"; get more with: {how}" if how else "")
