"""Running tasks: every text encoded once over all of them, and nothing left out in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path

from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Encode, Score, Task
from isoglot.evaluation.codes import among
from isoglot.evaluation.vectors import remember


def evaluate(
    encode: Encode,
    tasks: Sequence[str | Task],
    *,
    data: str | Path,
    languages: Sequence[str] = (),
    on_missing: Callable[[str], None] | None = None,
) -> list[Score]:
    """Scores of all tasks, given by name or as tasks, in their order.

    `encode` turns N texts into an array (N, D). `data` is the folder that holds the tasks' files; `languages` are codes
    of any system, none of them meaning all. A task, or a language of one, that the data lack is left out after
    `on_missing` was called with a line that says so; without `on_missing`, lacking data are an error. Raises
    `EvaluationError` for that, an unknown task, unusable data and unusable vectors.
    """
    root, remembered = Path(data), remember(encode)
    scores: list[Score] = []
    for task in [_task(task) for task in tasks]:
        for message in _missing(task, root, languages):
            if on_missing is None:
                raise EvaluationError(message)
            on_missing(message)
        if task.subsets(root, languages=languages):
            scores += task.run(remembered, root, languages=languages)
    return scores


def _task(task: str | Task) -> Task:
    if not isinstance(task, str):
        return task
    if task not in TASKS:
        near = get_close_matches(task, TASKS, n=1, cutoff=0.5)
        advice = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(TASKS)}"
        raise EvaluationError(f"no task is called {task!r}; {advice}")
    return TASKS[task]


def _missing(task: Task, data: Path, languages: Sequence[str]) -> Iterator[str]:
    subsets = task.subsets(data, languages=languages)
    if not subsets and not (languages and task.subsets(data)):
        yield f"{task.name}: {data} lacks its data; it needs {task.needs}"
        return
    covered = {code for subset in subsets for code in subset.split("-")}
    lacking = [language for language in languages if not any(among(code, [language]) for code in covered)]
    if lacking:
        yield f"{task.name}: {data} has no data for {', '.join(lacking)}"
