"""Results on disk: a folder with `results.json`, which any program can read, and beside it what it was made of.

    results.json    {"model": "...", "settings": {"prompt": "query: ", ...}, "scores": [
                      {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000,
                       "unit": "fraction"},
                      {"task": "xsim/own", "subset": "mean", ..., "n": 2, "over": ["xx-deu", "xx-eng"],
                       "unit": "error", "lower_is_better": true, "main": true}, ...]}
    items.npz       the outcome of each item behind a score, under task/subset/metric (each percent-encoded)
    details.jsonl   one table for people a line

What is special here: nothing changes from run to run. The same results give the same bytes in all three files, so two
evaluations can be compared with `diff`. `results.json` has one score a line and is written last; it can be read alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, get_args

from isoglot.data.files import atomic_write
from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Metric, Score, Unit
from isoglot.evaluation.statistics import STATISTICS
from isoglot.report.behind import (
    detail_lines,
    is_finite,
    item_tables,
    parse,
    read_details,
    read_items,
    write_details,
    write_items,
)

Setting = str | int | float | bool | None

_FIELDS: dict[str, type] = {"task": str, "subset": str, "metric": str, "value": float, "n": int}
_FLAGS = ("lower_is_better", "main")
_WORDS: dict[type, str] = {str: "a string", float: "a finite number", int: "a whole number that is not negative"}
_DRIFT = 1e-3  # what storing items in float32 may change, with much to spare


@dataclass(frozen=True, slots=True)
class Results:
    """One evaluation: the model's name or folder, the settings it was run with, and its scores in order.

    `settings` are flat: names and strings, numbers, booleans or None, such as the prompt, the pooling, the maximum
    length and the fingerprint of the encoder.
    """

    model: str
    settings: Mapping[str, Setting]
    scores: tuple[Score, ...]


def write_results(folder: Path, results: Results) -> None:
    """Write a folder of results, each file atomically and `results.json` last.

    Raises `EvaluationError` when two scores have one task, subset and metric, and `ValueError` for a number that JSON
    cannot hold, such as NaN, before anything is written.
    """
    names = Counter((score.task, score.subset, score.metric) for score in results.scores)
    if twice := [name for name, count in names.items() if count > 1]:
        raise EvaluationError(f"{folder}: two scores are called {' '.join(twice[0])!r}; name each task once")
    lines = [json.dumps(_record(score), ensure_ascii=False, allow_nan=False) for score in results.scores]
    head = {"model": str(results.model)} | ({"settings": dict(results.settings)} if results.settings else {})
    start = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    body = ",\n".join(f"  {line}" for line in lines)
    details, items = detail_lines(results.scores), item_tables(results.scores)
    write_details(folder / "details.jsonl", details)
    write_items(folder / "items.npz", items)
    with atomic_write(folder / "results.json") as file:
        file.write(f'{start}, "scores": [\n{body}\n]}}\n')


def files_of(path: Path) -> list[Path]:
    """The files that `read_results` reads for this folder or file."""
    folder = path if path.is_dir() else path.parent
    file = path / "results.json" if path.is_dir() else path
    return [file, folder / "items.npz", folder / "details.jsonl"] if file.name == "results.json" else [file]


def read_results(path: Path) -> Results:
    """Read a folder of results, or a `results.json` alone or with its neighbours.

    Items and details are filled in where their files are there. Raises `EvaluationError` naming the file and what in
    it is wrong, also when items do not give the scores they stand beside.
    """
    file = path / "results.json" if path.is_dir() else path
    found = _load(file)
    settings = found.get("settings", {})
    if not isinstance(settings, dict) or not all(_is_setting(value) for value in settings.values()):
        raise EvaluationError(f"{file}: 'settings' must be one flat object of strings, numbers and booleans")
    scores = tuple(_score(record, f"{file}: scores[{place}]") for place, record in enumerate(found["scores"]))
    _require_a_tree(scores, file)
    if file.name == "results.json":
        scores = _with_neighbours(scores, file.parent)
    return Results(found["model"], settings, scores)


def _load(path: Path) -> dict[str, Any]:
    try:
        found = parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror}; name a folder of results") from error
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{path}:{error.lineno}: is no JSON ({error.msg}); evaluate again") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{path}: is not UTF-8, so it is no results file; evaluate again") from error
    except ValueError as error:
        raise EvaluationError(f"{path}: can't be used ({error}); evaluate again") from error
    if not isinstance(found, dict) or not isinstance(found.get("scores"), list) or not _is_text(found.get("model")):
        raise EvaluationError(f"{path}: holds no 'model' with 'scores'; name a file that `isoglot evaluate` wrote")
    return found


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _require_a_tree(scores: Sequence[Score], file: Path) -> None:
    """Each score stands once, and none is an average of itself, however many steps away."""
    over: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for score in scores:
        subsets = over.setdefault((score.task, score.metric), {})
        if score.subset in subsets:
            raise EvaluationError(f"{file}: {score.task} {score.subset} {score.metric} is there twice; evaluate again")
        subsets[score.subset] = tuple(name for name in score.over if name != score.subset)
    for (task, metric), subsets in over.items():
        try:
            TopologicalSorter(subsets).prepare()
        except CycleError as error:
            circle = ", ".join(error.args[1])
            raise EvaluationError(
                f"{file}: {task} {metric}: averages over each other: {circle}; evaluate again"
            ) from None


def _with_neighbours(scores: tuple[Score, ...], folder: Path) -> tuple[Score, ...]:
    items, details = read_items(folder / "items.npz"), read_details(folder / "details.jsonl")
    filled = []
    for score in scores:
        name = (score.task, score.subset, score.metric)
        full = replace(score, items=items.get(name), details=details.get(name, ()))
        if full.items is not None and not _fits_items(full):
            raise EvaluationError(
                f"{folder / 'items.npz'}: the items of {' '.join(name)} do not give its score in results.json; "
                "the two are of different evaluations: evaluate again"
            )
        filled.append(full)
    return tuple(filled)


def _fits_items(score: Score) -> bool:
    columns = {"mean": (), "spearman": (2,), "pearson": (2,)}.get(score.statistic, (3,))
    if score.items is None or score.items.shape != (score.n, *columns) or score.statistic not in STATISTICS:
        return False
    return score.n == 0 or abs(STATISTICS[score.statistic](score.items) - score.value) <= _DRIFT


def _record(score: Score) -> dict[str, Any]:
    record = {name: kind(getattr(score, name)) for name, kind in _FIELDS.items()}
    record |= {"over": list(score.over)} if score.over else {}
    record |= {"unit": score.unit} | {name: True for name in _FLAGS if getattr(score, name)}
    record |= {"units": score.units} if score.units else {}
    return record | ({"statistic": score.statistic} if score.items is not None and score.statistic != "mean" else {})


def _score(record: Any, where: str) -> Score:
    if not isinstance(record, dict):
        raise EvaluationError(f"{where} is {record!r}, not an object with {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if not _fits(record.get(name), kind):
            problem = f"has the value {record[name]!r}" if name in record else "is missing"
            raise EvaluationError(f"{where}: {name!r} {problem}; it must be {_WORDS[kind]}")
    over, statistic = record.get("over", []), record.get("statistic", "mean")
    if not isinstance(over, list) or not all(isinstance(name, str) for name in over):
        raise EvaluationError(f"{where}: 'over' has the value {over!r}; it must be a list of subsets")
    if statistic not in STATISTICS:
        raise EvaluationError(f"{where}: 'statistic' has the value {statistic!r}; known: {', '.join(STATISTICS)}")
    if not isinstance(units := record.get("units", ""), str):
        raise EvaluationError(f"{where}: 'units' has the value {units!r}; it must be a string")
    plain = {name: kind(record[name]) for name, kind in _FIELDS.items()}
    score = Score(**plain, over=tuple(over), statistic=statistic, units=units)
    return _metric(record, where).describe(score)


def _metric(record: Mapping[str, Any], where: str) -> Metric:
    """Unit, direction and place of a score: as written or, in results older than these fields, as its task declares."""
    if "unit" not in record:
        return declared(record["task"], record["metric"])
    if record["unit"] not in get_args(Unit):
        raise EvaluationError(f"{where}: 'unit' has the value {record['unit']!r}; known: {', '.join(get_args(Unit))}")
    flags = {name: record.get(name, False) for name in _FLAGS}
    if wrong := [name for name, value in flags.items() if not isinstance(value, bool)]:
        raise EvaluationError(f"{where}: {wrong[0]!r} has the value {flags[wrong[0]]!r}; it must be true or false")
    return Metric(record["metric"], record["unit"], **flags)


def declared(task: str, metric: str) -> Metric:
    """What a task declares of a metric.

    A name that no task has (`xsim/own/k10`) is taken for a variant of the first task that begins alike and has the
    metric. Of one that is not found, higher is better.
    """
    family = task.partition("/")[0]
    tasks = [TASKS[task]] if task in TASKS else [TASKS[name] for name in TASKS if name.partition("/")[0] == family]
    known = (one for entry in tasks for one in entry.metrics if one.name == metric)
    return next(known, Metric(metric))


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return is_finite(value)
    if kind is int:
        return is_finite(value) and isinstance(value, int) and 0 <= value < 2**63
    return isinstance(value, kind) and not isinstance(value, bool)


def _is_setting(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or is_finite(value)
