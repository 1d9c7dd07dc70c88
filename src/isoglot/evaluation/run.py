"""Running tasks: every text encoded once over all of them, and nothing left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from time import perf_counter

import numpy as np

from isoglot.encoders import Encoder, load
from isoglot.encoders import encode as encode_texts
from isoglot.encoders.base import identity
from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Encode, Score, Task
from isoglot.evaluation.codes import among
from isoglot.evaluation.sources import get_command
from isoglot.evaluation.suites import SUITES
from isoglot.evaluation.vectors import Remembered
from isoglot.store import VectorStore


@dataclass(frozen=True, slots=True)
class Finished:
    """What a listener is told after a task: its scores, the seconds it took and how many of them the encoder did."""

    task: str
    scores: tuple[Score, ...]
    seconds: float
    encoding: float


def evaluate(
    model: str | Path | Encoder | Encode,
    tasks: Sequence[str | Task],
    *,
    data: str | Path,
    languages: Sequence[str] = (),
    cache: str | Path | None = None,
    on_missing: Callable[[str], None] | None = None,
    on_finished: Callable[[Finished], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Score]:
    """Scores of all tasks, given by name or as tasks or as names of suites, in their order; one name needs no list.

    `model` is an encoder, what `isoglot.load` opens, or a function that turns N texts into an array (N, D). `data` is
    the folder that holds the tasks' files; `languages` are codes of any system, none of them meaning all, or those of
    the suite. With `cache`, a folder, the vectors of an encoder are kept there and never computed again. A task, or a
    language of one, that the data lack is left out after `on_missing` was called with a line that says so; without
    `on_missing`, lacking data are an error. `on_finished` hears of each task, `progress`, that of `encode`, of each
    chunk of texts, and of 0 before the first. Raises `EvaluationError` for lacking data, an unknown task, unusable data
    and unusable vectors.
    """
    root, vectors = Path(data), function(model, cache=cache, progress=progress)
    tasks = [tasks] if isinstance(tasks, str) else tasks
    languages = [languages] if isinstance(languages, str) else languages
    scores: list[Score] = []
    for task, wanted in plan(tasks, languages=languages):
        subsets = _subsets(task, root, wanted)
        unfit = _unfit(task, vectors) if subsets else []
        for message in [*_missing(task, root, wanted, subsets), *unfit]:
            if on_missing is None:
                raise EvaluationError(message)
            on_missing(message)
        if subsets and not unfit:
            start, before = perf_counter(), vectors.seconds
            found = task.run(vectors, root, languages=wanted)
            scores += found
            if on_finished is not None:
                on_finished(Finished(task.name, tuple(found), perf_counter() - start, vectors.seconds - before))
    return scores


def announced(task: str | Task, *, data: str | Path, languages: Sequence[str] = ()) -> tuple[str, ...]:
    """The subsets that `evaluate` would score; raises the `EvaluationError` that it would raise for lacking data."""
    ((entry, wanted),) = plan([task], languages=languages)
    subsets = _subsets(entry, Path(data), wanted)
    for message in _missing(entry, Path(data), wanted, subsets):
        raise EvaluationError(message)
    return subsets


def function(
    model: str | Path | Encoder | Encode,
    *,
    cache: str | Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Remembered:
    """The function from texts to vectors that the tasks are given. Raises `EncoderError` for what is no model."""
    if isinstance(model, str | Path):
        model = load(model)
    if not isinstance(model, Encoder):
        if cache is not None:
            raise EvaluationError("vectors can be kept for an encoder only: a function does not say when it changes")
        return Remembered(model)
    encoder = model
    store = VectorStore(Path(cache) / identity(encoder)) if cache is not None else None

    def encode(texts: Sequence[str]) -> np.ndarray:
        if progress is not None:
            progress(0, len(texts))
        return encode_texts(encoder, texts, progress=progress)

    return Remembered(encode, store=store, model=encoder)


def plan(tasks: Sequence[str | Task], *, languages: Sequence[str] = ()) -> list[tuple[Task, tuple[str, ...]]]:
    """Each task once, in order, with its languages: those given, or else the union of what each mention of it asks for.

    A suite asks for the languages it names, or for all (none); a task named by itself for all. Raises `EvaluationError`
    for an unknown name, and for none.
    """
    if not tasks:
        raise EvaluationError("no task was named; isoglot tasks lists them")
    found: dict[str, Task] = {}
    asked: dict[str, list[Sequence[str]]] = {}
    for entry in tasks:
        suite = SUITES.get(entry) if isinstance(entry, str) else None
        for task in [TASKS[name] for name in suite.tasks] if suite else [_task(entry)]:
            found.setdefault(task.name, task)
            asked.setdefault(task.name, []).append(suite.languages.get(task.name, ()) if suite else ())
    return [(task, tuple(languages) or _union(asked[name])) for name, task in found.items()]


def texts_of(
    tasks: Sequence[str | Task],
    *,
    data: str | Path,
    languages: Sequence[str] = (),
    on_missing: Callable[[str], None] | None = None,
) -> list[str]:
    """Every text that the tasks would encode, once, in the order in which they ask; tasks without data ask nothing.

    `on_missing` is told of lacking data as that of `evaluate`. A task that needs the model itself, not its vectors, is
    passed over.
    """
    root, texts = Path(data), dict[str, None]()

    def record(asked: Sequence[str]) -> np.ndarray:
        texts.update(dict.fromkeys(asked))
        return np.random.default_rng(0).standard_normal((len(asked), 4))

    for task, wanted in plan(tasks, languages=languages):
        subsets = _subsets(task, root, wanted)
        for message in _missing(task, root, wanted, subsets):
            if on_missing is not None:
                on_missing(message)
        if subsets and not getattr(task, "needs_model", False):
            task.run(record, root, languages=wanted)
    return list(texts)


def _union(languages: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The languages of all lists, sorted; none, which is all, if a list has none."""
    return tuple(sorted(set().union(*languages))) if all(languages) else ()


def _task(task: str | Task) -> Task:
    if not isinstance(task, str):
        return task
    if task not in TASKS:
        near = get_close_matches(task, [*TASKS, *SUITES], n=1, cutoff=0.5)
        advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join([*TASKS, *SUITES])}"
        raise EvaluationError(f"no task and no suite is called {task!r}; {advice}")
    return TASKS[task]


def _unfit(task: Task, vectors: Remembered) -> list[str]:
    if not getattr(task, "needs_model", False) or hasattr(vectors.model, "backbone"):
        return []
    return [f"{task.name}: needs a transformer to train, not vectors alone; it was left out"]


def _subsets(task: Task, data: Path, languages: Sequence[str]) -> tuple[str, ...]:
    try:
        return task.subsets(data, languages=languages)
    except EvaluationError as error:  # a copy of a set does not know which task looks for it
        named = str(error).startswith((f"{task.name}:", f"{task.name} "))
        raise error if named else EvaluationError(f"{task.name}: {error}") from error


def _missing(task: Task, data: Path, languages: Sequence[str], subsets: Sequence[str]) -> Iterator[str]:
    every = _subsets(task, data, ()) if languages and not subsets else subsets
    if not every:
        how = get_command(task.name, data=data, languages=languages)
        state = "" if data.is_dir() else " is a file and" if data.is_file() else " does not exist and"
        needs = f"{task.name}: {data}{state} lacks its data; it needs {task.needs}"
        yield needs + (f"; get it with: {how}" if how else "")
        return
    covered = {code for subset in subsets for code in subset.split("-")}
    asked = [language for language in languages if not (among(language, ["eng"]) and _pairs_with_english(every))]
    lacking = [language for language in asked if not any(among(code, [language]) for code in covered)]
    if languages and not asked and not subsets:
        yield f"{task.name}: English stands beside other languages only; name those"
    if lacking:
        there = [language for language in asked if language not in lacking]
        how = "" if data.is_file() else get_command(task.name, data=data, languages=lacking, beside=there)
        yield f"{task.name}: {data} has no data for {', '.join(lacking)}" + (f"; get more with: {how}" if how else "")


def _pairs_with_english(subsets: Sequence[str]) -> bool:
    return any(among(code, ["eng"]) for subset in subsets if "-" in subset for code in subset.split("-"))
