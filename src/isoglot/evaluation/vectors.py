"""Between tasks and encoders: encodes each text once and rejects invalid vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import compress
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import as_python
from isoglot.core.errors import EncoderError, EvaluationError, MissingExtraError
from isoglot.data import vectors
from isoglot.data.sets.normal import Texts
from isoglot.data.store import BLOCK, VectorStore
from isoglot.evaluation.base import Encode


class Remembered:
    """A function from texts to vectors that encodes no text twice: for one run over many tasks and languages.

    With a `store`, vectors are reused across runs: known ones are read from it, new ones are added. `model` is
    the encoder behind the function, for the tasks that need more than vectors, or None; `roles` are functions for texts
    that the model has a prompt for (see `in_role`); `seconds` is the time spent encoding so far. Raises
    `EvaluationError` when the encoder's answer is not a table with one row for each text, or when its width changes.
    """

    def __init__(
        self,
        encode: Encode,
        *,
        store: VectorStore | None = None,
        model: Any = None,
        roles: Mapping[str, Remembered] | None = None,
    ) -> None:
        self.model, self.roles, self._seconds = model, roles or {}, 0.0
        self._encode, self._store = encode, store
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[Any]:
        """Vectors (N, D) of N texts, in their order."""
        cache = self._known
        new = [text for text in dict.fromkeys(texts) if text not in cache]
        if self._store is not None and new:
            rows = self._store.find(new)
            stored = rows >= 0
            cache.update(zip(compress(new, stored), self._store[rows[stored]] if stored.any() else (), strict=True))
            new = [*compress(new, ~stored)]
        for start in range(0, len(new), BLOCK):
            self._learn(new[start : start + BLOCK])
        return np.stack([cache[text] for text in texts]) if texts else _table(self._measure([]), 0)

    @property
    def seconds(self) -> float:
        """The time spent encoding so far, in any role."""
        return self._seconds + sum(one.seconds for one in self.roles.values())

    def _learn(self, new: list[str]) -> None:
        rows = _table(self._measure(new), len(new))
        width = len(next(iter(self._known.values()))) if self._known else rows.shape[1]
        if rows.shape[1] != width:
            raise EvaluationError(f"the encoder gave vectors of {width} values, then of {rows.shape[1]}")
        self._known.update(zip(new, rows, strict=True))
        if self._store is not None and np.isfinite(rows).all():
            self._store.add(new, rows)

    def _measure(self, texts: Sequence[str]) -> Any:
        start = perf_counter()
        answer = self._encode(texts)
        self._seconds += perf_counter() - start
        return answer


def find_transformer(encode: Encode) -> Any:
    """The transformer behind a function, as it is trained; None if there is none."""
    model: Any = getattr(encode, "model", None)
    with suppress(EncoderError, MissingExtraError):  # it may compute without torch
        model = getattr(model, "trainable", lambda: model)()
    return model if hasattr(model, "backbone") and hasattr(model, "tokenizer") else None


def in_role(encode: Encode, role: str) -> Encode:
    """The function for texts in a role, `query` or `document`: with the model's prompt for it, if it has one."""
    roles: Mapping[str, Encode] = getattr(encode, "roles", {})
    return roles.get(role, encode)


def embed(
    encode: Encode, texts: Sequence[str], *, where: str, place: Callable[[int], str] | None = None
) -> NDArray[np.float32]:
    """Vectors (N, D) of N texts, checked. `where` (task, subset, language) opens the message of what is wrong.

    `place` returns where a text, by its number from 0, was read (`file:line`). Raises `EvaluationError` for a wrong
    number of rows, or a value that is not finite, naming its place, or without places its line from 1.
    """
    try:
        rows = _table(encode(texts), len(texts))
    except EvaluationError as error:
        raise EvaluationError(f"{where}: {error}") from error
    bad = vectors.not_finite(rows)
    if len(bad):
        text = texts[bad[0]] if len(texts[bad[0]]) <= 60 else texts[bad[0]][:57] + "..."
        at = f": {place(int(bad[0]))}" if place else f", line {bad[0] + 1}"
        problem = f"the encoder gave a vector with NaN or infinity for {text!r} ({len(bad)} of {len(texts)} texts)"
        raise EvaluationError(f"{where}{at}: {problem}; check its weights, or encode in float32")
    return rows


def embed_rows(encode: Encode, rows: Texts, *, where: str, side: int = 0) -> NDArray[np.float32]:
    """Vectors (N, D) of one column of N rows; errors name the place of the row, see `embed`."""
    return embed(encode, rows.texts(side), where=where, place=rows.place(side))


def _table(answer: Any, rows: int) -> NDArray[np.float32]:
    try:
        raw = np.asarray(as_python(answer, "the answer"))
    except (ValueError, TypeError, RuntimeError) as error:  # ragged lists, tensors that want a gradient or are bfloat16
        raise EvaluationError(f"the encoder's answer is not a table of numbers: {error}") from error
    if raw.dtype.kind not in "fiub":
        raise EvaluationError(f"the encoder's answer contains {raw.dtype}, not real numbers; return float32")
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and is rejected as that
        table = np.array(raw, np.float32)  # a copy: some encoders reuse their buffer
    if table.ndim != 2 or len(table) != rows or not table.shape[1]:
        raise EvaluationError(f"the encoder returned shape {table.shape} for {rows} texts; return a row for each")
    return table


def unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows (N, D) at length 1 in double precision; a zero vector is unchanged."""
    return vectors.unit(rows, np.float64)
