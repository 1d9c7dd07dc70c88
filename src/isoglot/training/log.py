"""What a run writes down: one JSON object per line, always, and TensorBoard's files where that library is installed."""

from __future__ import annotations

import json
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from isoglot.data.files import atomic_write, writing
from isoglot.training import ranks


class RunLog:
    """Appends records to `log.jsonl` of the run's folder; each says which step of the whole run it belongs to.

    Of several ranks, only the first writes.

    A resumed run first drops the lines of the steps it is about to repeat, so the log reads as if nothing had
    happened.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        self._stream: IO[str] | None = None
        self._board: Any = None
        if ranks.rank() > 0:
            return
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "log.jsonl"
        if resumed_at is not None and path.exists():
            kept = [line for line in path.read_bytes().split(b"\n") if _step(line) <= resumed_at]
            with atomic_write(path, binary=True) as stream:
                stream.write(b"".join(line + b"\n" for line in kept))
        with writing(path):
            self._stream = path.open("a", encoding="utf-8")
        self._board = _tensorboard(folder)

    def write(self, kind: str, step: int, **values: Any) -> None:
        """Append a record of a kind, `step` or `evaluation`."""
        if self._stream is None:
            return
        line = json.dumps({"kind": kind, "step": step, **values}, allow_nan=False) + "\n"
        with writing(self._stream.name):
            self._stream.write(line)
            self._stream.flush()
        if self._board is not None:
            for name, value in _numbers(values):
                self._board.add_scalar(f"{kind}/{name}", value, step)

    def close(self) -> None:
        """Flush and close the files."""
        if self._stream is not None:
            with suppress(OSError):  # what could not be written was reported as it was written
                self._stream.close()
        if self._board is not None:
            self._board.close()


def _step(line: bytes) -> float:
    """The step of a line; one that is torn or damaged belongs to no step."""
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")


def _tensorboard(folder: Path) -> Any:
    if find_spec("tensorboard") is None:
        return None
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))


def _numbers(values: dict[str, Any]) -> list[tuple[str, float]]:
    flat = []
    for name, value in values.items():
        if isinstance(value, dict):
            flat += [(f"{name}/{inner}", number) for inner, number in _numbers(value)]
        elif isinstance(value, int | float):
            flat.append((name, float(value)))
    return flat
