"""What is behind scores, on disk: the outcome of each item in `items.npz`, tables for people in `details.jsonl`.

`items.npz` is a zip file of NumPy arrays that `numpy.load` opens, one for each score that has items. What is special
here: its bytes depend on the arrays alone (every member has the same date), and hits of 0 and 1 take one byte each
before compression. Names are `task/subset/metric`, each part percent-encoded.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from isoglot.data.files import atomic_write
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Score

Name = tuple[str, str, str]

_DATE = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip file can tell


def item_tables(scores: Sequence[Score]) -> dict[str, NDArray[Any]]:
    """The items of scores as they are stored, by name. Raises `ValueError` for items that are not finite."""
    return {_key(score): _compact(score) for score in scores if score.items is not None}


def write_items(path: Path, tables: Mapping[str, NDArray[Any]]) -> None:
    """Write items; without any, a file of an earlier evaluation is removed."""
    if not tables:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path, binary=True) as file, zipfile.ZipFile(file, "w") as archive:
        for key, table in tables.items():
            content = io.BytesIO()
            np.save(content, table, allow_pickle=False)
            member = zipfile.ZipInfo(f"{key}.npy", date_time=_DATE)
            archive.writestr(member, content.getvalue(), zipfile.ZIP_DEFLATED, 6)


def read_items(path: Path) -> dict[Name, NDArray[np.float32]]:
    """The items of each score, by task, subset and metric; empty without the file.

    Raises `EvaluationError` for a file that is damaged.
    """
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {_name(key): np.asarray(archive[key], np.float32) for key in archive.files}
    except Exception as error:  # a damaged archive can fail in any way, by its memory too
        raise EvaluationError(f"{path}: cannot be read as items ({error}); remove it, or evaluate again") from error


def detail_lines(scores: Sequence[Score]) -> list[str]:
    """The tables of scores, each one line of JSON. Raises `ValueError` for a number that JSON cannot hold."""
    return [
        json.dumps({**_labels(score), **asdict(detail)}, ensure_ascii=False, allow_nan=False, default=float)
        for score in scores
        for detail in score.details
    ]


def write_details(path: Path, lines: Sequence[str]) -> None:
    """Write tables, one a line; without any, a file of an earlier evaluation is removed."""
    if not lines:
        path.unlink(missing_ok=True)
        return
    with atomic_write(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def read_details(path: Path) -> dict[Name, tuple[Detail, ...]]:
    """The tables of each score, by task, subset and metric; empty without the file.

    Raises `EvaluationError` with file and line.
    """
    found: dict[Name, tuple[Detail, ...]] = {}
    if not path.exists():
        return found
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # not splitlines: sentences hold U+2028 and the like
    except (OSError, UnicodeDecodeError) as error:
        raise EvaluationError(f"{path}: cannot be read as details ({error}); remove it, or evaluate again") from error
    for number, line in enumerate(lines, 1):
        if line:
            name, detail = _detail(line, f"{path}:{number}")
            found[name] = (*found.get(name, ()), detail)
    return found


def _detail(line: str, where: str) -> tuple[Name, Detail]:
    try:
        record = parse(line)
        name = (record["task"], record["subset"], record["metric"])
        columns, rows = tuple(record["columns"]), tuple(tuple(row) for row in record["rows"])
        if not all(isinstance(word, str) for word in (*name, record["kind"], *columns)):
            raise ValueError("a name is not a string")
        if any(len(row) != len(columns) for row in rows):
            raise ValueError(f"a row has not {len(columns)} cells")
        if not all(isinstance(cell, str) or is_finite(cell) for row in rows for cell in row):
            raise ValueError("a cell is not a string or a finite number")
        return name, Detail(record["kind"], columns, rows)
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{where}: is no table of a score ({error}); evaluate again") from error


def parse(text: str) -> Any:
    """What a JSON text holds. Raises `ValueError` also for one that is too deep, and for half of a surrogate pair."""
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("too deeply nested") from None
    return found


def is_finite(value: Any) -> bool:
    """Whether a value of JSON is a number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _labels(score: Score) -> dict[str, Any]:
    return {"task": score.task, "subset": score.subset, "metric": score.metric}


def _compact(score: Score) -> NDArray[Any]:
    table = np.asarray(score.items, np.float32)
    if not np.isfinite(table).all():
        raise ValueError(f"{score.task} {score.subset} {score.metric}: an item is NaN or infinite")
    hits = table.astype(np.uint8, casting="unsafe") if table.size and table.min() >= 0 and table.max() <= 1 else None
    return hits if hits is not None and np.array_equal(hits, table) else table


def _key(score: Score) -> str:
    return "/".join(quote(part, safe="") for part in (score.task, score.subset, score.metric))


def _name(key: str) -> Name:
    task, subset, metric = map(unquote, key.split("/"))
    return task, subset, metric
