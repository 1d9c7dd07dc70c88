"""Scores on disk: `results.json`, one flat list that any program can read.

    {"model": "...", "scores": [
      {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000},
      ...
    ]}

One score a line, in the order of the evaluation, nothing that changes from run to run: the same scores give the same
bytes, and two files can be compared with `diff`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Score

_FIELDS: dict[str, type] = {"task": str, "subset": str, "metric": str, "value": float, "n": int}
_WORDS: dict[type, str] = {str: "a string", float: "a finite number", int: "a whole number"}


@dataclass(frozen=True, slots=True)
class Results:
    """What a results file holds: the model's name or folder, and its scores."""

    model: str
    scores: tuple[Score, ...]


def write_results(path: Path, model: str, *, scores: Sequence[Score]) -> None:
    """Write a results file, atomically. Raises `ValueError` for a value that JSON cannot hold, such as NaN."""
    lines = [json.dumps(_record(score), ensure_ascii=False, allow_nan=False) for score in scores]
    body = ",\n".join(f"  {line}" for line in lines)
    with atomic_write(path) as file:
        file.write(f'{{"model": {json.dumps(str(model), ensure_ascii=False)}, "scores": [\n{body}\n]}}\n')


def read_results(path: Path) -> Results:
    """Read a results file. Raises `EvaluationError` naming the file and what in it is wrong."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read: {error.strerror}; name a results.json") from error
    except json.JSONDecodeError as error:
        raise EvaluationError(f"{path}:{error.lineno}: is no JSON ({error.msg}); evaluate again") from error
    except UnicodeDecodeError as error:
        raise EvaluationError(f"{path}: is not UTF-8, so it is no results file; evaluate again") from error
    if not isinstance(found, dict) or not isinstance(found.get("scores"), list) or "model" not in found:
        raise EvaluationError(f"{path}: holds no 'model' with 'scores'; name a file that `isoglot evaluate` wrote")
    scores = tuple(_score(record, f"{path}: scores[{place}]") for place, record in enumerate(found["scores"]))
    return Results(str(found["model"]), scores)


def _record(score: Score) -> dict[str, Any]:
    return {name: kind(getattr(score, name)) for name, kind in _FIELDS.items()}


def _score(record: Any, where: str) -> Score:
    if not isinstance(record, dict):
        raise EvaluationError(f"{where} is {record!r}, not an object with {', '.join(_FIELDS)}")
    for name, kind in _FIELDS.items():
        if not _fits(record.get(name), kind):
            problem = f"has the value {record[name]!r}" if name in record else "is missing"
            raise EvaluationError(f"{where}: {name!r} {problem}; it must be {_WORDS[kind]}")
    return Score(**{name: kind(record[name]) for name, kind in _FIELDS.items()})


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) and not isinstance(value, bool)
