"""Between a task and an encoder: each text encoded once, and nothing unusable let through."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode
from isoglot.evaluation.store import Store

SHARD = 16_384  # texts encoded between two writes: a minute of a small transformer's work on two cores


def remember(encode: Encode, store: Store | None = None) -> Encode:
    """The same function, but no text is encoded twice: for one run over many tasks and languages.

    With a `store` not from one run to the next either: vectors are taken from it, and new ones are added. Raises
    `EvaluationError` when the encoder's answer is no table with one row for each text it was given, or when its width
    changes.
    """
    known: dict[str, NDArray[np.float32]] = {}

    def learn(new: list[str]) -> None:
        rows = _table(encode(new), len(new))
        width = len(next(iter(known.values()))) if known else rows.shape[1]
        if rows.shape[1] != width:
            raise EvaluationError(f"the encoder gave vectors of {width} values, then of {rows.shape[1]}")
        known.update(zip(new, rows, strict=True))
        if store is not None and np.isfinite(rows).all():
            store.add(new, rows)

    def remembered(texts: Sequence[str]) -> NDArray[Any]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if store is not None and new:
            known.update(store.find(new))
            new = [text for text in new if text not in known]
        for start in range(0, len(new), SHARD if store is not None else max(1, len(new))):
            learn(new[start : start + SHARD] if store is not None else new)
        return np.stack([known[text] for text in texts]) if texts else _table(encode([]), 0)

    return remembered


def embed(encode: Encode, texts: Sequence[str], *, where: str, unit: str = "line") -> NDArray[np.float32]:
    """Vectors (N, D) of N texts, checked. `where` (task, subset, language) opens the message of what is wrong.

    Raises `EvaluationError` for a wrong number of rows, or a value that is not finite, naming its `unit` from 1.
    """
    try:
        rows = _table(encode(texts), len(texts))
    except EvaluationError as error:
        raise EvaluationError(f"{where}: {error}") from error
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        text = texts[bad[0]] if len(texts[bad[0]]) <= 60 else texts[bad[0]][:57] + "..."
        raise EvaluationError(
            f"{where}, {unit} {bad[0] + 1}: the encoder gave a vector with NaN or infinity for {text!r} "
            f"({len(bad)} of {len(texts)} texts); check its weights, or encode in float32"
        )
    return rows


def _table(answer: Any, rows: int) -> NDArray[np.float32]:
    table = np.array(answer, np.float32)  # a copy: some encoders reuse their buffer
    if table.ndim != 2 or len(table) != rows:
        raise EvaluationError(
            f"the encoder returned shape {table.shape} for {rows} texts; it must return one row for each text"
        )
    return table
