"""Results on disk: a folder with `results.json`, which any program can read, and two files beside it.

    results.json    {"model": "...", "settings": {"prompt": "query: ", ...}, "scores": [
                      {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000},
                      {"task": "tatoeba", "subset": "mean", ..., "n": 2, "over": ["deu-eng", "kor-eng"]}, ...]}
    items.npz       the outcome of each test item, as NumPy arrays named task/subset/metric (each percent-encoded)
    details.jsonl   one table per line: mistakes, hits, heat maps, sentence maps

The same results give the same bytes in all three files, so two evaluations can be compared with `diff`.
`results.json` has one score per line and is written last; it can be read without the other two.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from isoglot.data.files import atomic_write
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Score
from isoglot.evaluation.statistics import STATISTICS

Setting = str | int | float | bool | None
Name = tuple[str, str, str]  # task, subset, metric

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can hold; a constant, so that bytes do not change
_DRIFT = 1e-3  # tolerance for items stored in float32


@dataclass(frozen=True, slots=True)
class Results:
    """One evaluation: the model's name or folder, the settings it was run with, and its scores in order.

    `settings` are flat: names with strings, numbers, booleans or None, such as the prompt, the pooling, the maximum
    length and the fingerprint of the encoder.
    """

    model: str
    settings: Mapping[str, Setting]
    scores: tuple[Score, ...]


def _known(statistic: str) -> str:
    if statistic not in STATISTICS:
        raise ValueError(f"must be one of {', '.join(STATISTICS)}")
    return statistic


class _Record(BaseModel):
    """A score in `results.json`."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    task: str
    subset: str
    metric: str
    value: float
    n: int
    over: list[str] = []
    units: str = ""
    statistic: Annotated[str, AfterValidator(_known)] = "mean"


class _File(BaseModel):
    """The whole of `results.json`."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    model: str
    scores: list[_Record]
    settings: dict[str, Setting] = {}


class _Table(BaseModel):
    """A line of `details.jsonl`."""

    task: str
    subset: str
    metric: str
    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float, ...], ...]


def write_results(folder: Path, results: Results) -> None:
    """Write a folder of results, each file atomically and `results.json` last.

    Files of an earlier evaluation that have no successor are removed. Raises `EvaluationError` when two scores have
    the same task, subset and metric, and `ValueError` for a number that JSON cannot hold, such as NaN, before anything
    is written.
    """
    names = Counter(_name(score) for score in results.scores)
    if twice := [name for name, count in names.items() if count > 1]:
        raise EvaluationError(f"{folder}: duplicate score {' '.join(twice[0])!r}; list each task once")
    head = {"model": str(results.model)} | ({"settings": dict(results.settings)} if results.settings else {})
    start = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    body = ",\n".join(f"  {_json(_record(score))}" for score in results.scores)
    details = [
        _json({**dict(zip(("task", "subset", "metric"), _name(score), strict=True)), **asdict(detail)})
        for score in results.scores
        for detail in score.details
    ]
    items = {_name(score): _compact(score) for score in results.scores if score.items is not None}
    _write_details(folder / "details.jsonl", details)
    _write_items(folder / "items.npz", items)
    with atomic_write(folder / "results.json") as file:
        file.write(f'{start}, "scores": [\n{body}\n]}}\n')


def read_results(path: str | Path) -> Results:
    """Read a folder of results, or a `results.json`.

    Items and details are filled in where their files exist. Raises `EvaluationError` with the file and the place in
    it, also for items that do not give the scores beside them.
    """
    path = Path(path)
    file = path / "results.json" if path.is_dir() else path
    try:
        found = _File.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise EvaluationError(f"{file}: cannot be read: {error.strerror}; pass a folder of results") from error
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{file}:{error.lineno}: not JSON ({error.msg}); evaluate again") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{file}: not UTF-8, so not a results file; evaluate again") from error
    except ValidationError as error:
        where, problem = _first_problem(error)
        raise EvaluationError(f"{file}: {where} {problem}; pass a file written by `isoglot evaluate`") from error
    scores = tuple(Score(**dict(record) | {"over": tuple(record.over)}) for record in found.scores)
    if file.name == "results.json":
        scores = _with_neighbours(scores, file.parent)
    return Results(found.model, found.settings, scores)


def _first_problem(error: ValidationError) -> tuple[str, str]:
    """Where the first invalid value is, as `scores[3].value`, and what is wrong with it."""
    first = error.errors(include_url=False)[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    if first["type"] == "missing":
        return where, "is missing"
    return where, f"is {first['input']!r:.60}: {first['msg']}"


def _with_neighbours(scores: tuple[Score, ...], folder: Path) -> tuple[Score, ...]:
    items, details = _read_items(folder / "items.npz"), _read_details(folder / "details.jsonl")
    filled = []
    for score in scores:
        found = items.get(_name(score))
        fits = found is None or len(found) == score.n
        if found is not None and fits and score.n:
            fits = abs(STATISTICS[score.statistic](found) - score.value) <= _DRIFT
        if not fits:
            raise EvaluationError(
                f"{folder / 'items.npz'}: the items of {' '.join(_name(score))} do not match its score in "
                "results.json; the files are from different evaluations: evaluate again"
            )
        filled.append(replace(score, items=found, details=details.get(_name(score), ())))
    return tuple(filled)


def _name(score: Score) -> Name:
    return score.task, score.subset, score.metric


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=float)


def _record(score: Score) -> dict[str, Any]:
    """The fields of a score, without those that have their default."""
    record: dict[str, Any] = {"task": score.task, "subset": score.subset, "metric": score.metric}
    record |= {"value": float(score.value), "n": int(score.n)}
    record |= {"over": list(score.over)} if score.over else {}
    record |= {"units": score.units} if score.units else {}
    return record | ({"statistic": score.statistic} if score.items is not None and score.statistic != "mean" else {})


def _compact(score: Score) -> NDArray[Any]:
    """Items in float32, or in one byte each where all are 0 or 1."""
    table = np.asarray(score.items, np.float32)
    if not np.isfinite(table).all():
        raise ValueError(f"{' '.join(_name(score))}: an item is NaN or infinite")
    return table.astype(np.uint8) if np.isin(table, (0, 1)).all() else table


def _write_items(path: Path, tables: Mapping[Name, NDArray[Any]]) -> None:
    if not tables:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path, binary=True) as file, zipfile.ZipFile(file, "w") as archive:
        for name, table in tables.items():
            content = io.BytesIO()
            np.save(content, table, allow_pickle=False)
            key = "/".join(quote(part, safe="") for part in name)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=_DATE)
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, 6)


def _read_items(path: Path) -> dict[Name, NDArray[np.float32]]:
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = {key: [unquote(part) for part in key.split("/")] for key in archive.files}
            return {(a, b, c): np.asarray(archive[key], np.float32) for key, (a, b, c) in names.items()}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise EvaluationError(f"{path}: cannot be read as items ({error}); remove it, or evaluate again") from error


def _write_details(path: Path, lines: Sequence[str]) -> None:
    if not lines:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _read_details(path: Path) -> dict[Name, tuple[Detail, ...]]:
    if not path.exists():
        return {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: sentences hold U+2028 and the like
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read as details ({error}); remove it, or evaluate again") from error
    found: dict[Name, tuple[Detail, ...]] = {}
    for number, line in enumerate(lines, 1):
        if line:
            try:
                table = _Table.model_validate_json(line)
            except ValidationError as error:
                problem = " ".join(_first_problem(error)).strip()
                raise EvaluationError(f"{path}:{number}: not a table of a score ({problem}); evaluate again") from error
            name = (table.task, table.subset, table.metric)
            found[name] = (*found.get(name, ()), Detail(table.kind, table.columns, table.rows))
    return found
