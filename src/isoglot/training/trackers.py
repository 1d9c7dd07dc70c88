"""Trackers: other programs that receive the numbers of `log.jsonl` while a run is trained.

Each is used as its own settings say, such as `WANDB_MODE=offline`, `WANDB_PROJECT` and `MLFLOW_TRACKING_URI`. A run
that the caller has begun there is used, and left open; otherwise one is begun, with the settings of the run, and a
resumed run continues it: its id is in `trackers.json`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from isoglot.core.errors import RecipeError, nearest
from isoglot.data.files import atomic_write

LOG = logging.getLogger("isoglot")


class Tracker(NamedTuple):
    """Takes numbers by name at a step; `id` is that of its run, by which it can be continued."""

    log: Callable[[dict[str, float], int], object]
    close: Callable[[], object]
    id: str = ""


def _tensorboard(folder: Path, _settings: Mapping[str, Any], _before: str) -> Tracker:
    from torch.utils.tensorboard import SummaryWriter

    board = SummaryWriter(str(folder / "tensorboard"))

    def log(values: dict[str, float], step: int) -> None:
        for name, value in values.items():
            board.add_scalar(name, value, step)

    return Tracker(log, board.close)


def _wandb(folder: Path, settings: Mapping[str, Any], before: str) -> Tracker:
    import wandb

    if wandb.run is not None:
        return Tracker(wandb.run.log, lambda: None)
    project = os.environ.get("WANDB_PROJECT", "isoglot")
    run = wandb.init(project=project, name=_name(folder), config=settings, id=before or None, resume="allow")
    return Tracker(run.log, run.finish, run.id)


def _mlflow(folder: Path, settings: Mapping[str, Any], before: str) -> Tracker:
    import mlflow

    def log(values: dict[str, float], step: int) -> None:
        mlflow.log_metrics({re.sub(r"[^\w./: -]", "_", name): value for name, value in values.items()}, step=step)

    if mlflow.active_run() is not None:
        return Tracker(log, lambda: None)
    run = mlflow.start_run(run_id=before or None, run_name=_name(folder))
    if not before:
        texts = [(name, json.dumps(value)[:_LONGEST]) for name, value in settings.items()]
        for start in range(0, len(texts), _MOST):
            mlflow.log_params(dict(texts[start : start + _MOST]))
    return Tracker(log, mlflow.end_run, run.info.run_id)


TRACKERS = {"tensorboard": _tensorboard, "wandb": _wandb, "mlflow": _mlflow}  # by the packages that they need
_LONGEST = 500  # characters of a parameter, as all versions of MLflow accept
_MOST = 100  # parameters that a server of MLflow takes at once


def choose_trackers(track: str | Sequence[str]) -> tuple[str, ...]:
    """The names of the trackers to use; of none, TensorBoard if it is installed.

    Raises RecipeError for an unknown one and for one whose package is missing.
    """
    names = (track,) if isinstance(track, str) else tuple(dict.fromkeys(track))
    for name in names:
        if name not in TRACKERS:
            raise RecipeError(f"track: unknown tracker {name!r}; {nearest(name, TRACKERS)}")
        if find_spec(name) is None:
            raise RecipeError(f"track: {name} is not installed: pip install {name}")
    return names or tuple(name for name in ("tensorboard",) if find_spec(name))


class Trackers:
    """The open trackers of a run; one that fails is closed with a warning, since the training is worth more."""

    def __init__(self, names: Sequence[str], folder: Path, settings: Mapping[str, Any], *, resumed: bool) -> None:
        path, before = folder / "trackers.json", dict[str, str]()
        if resumed:
            with suppress(OSError, ValueError, TypeError):
                before = dict(json.loads(path.read_text(encoding="utf-8")))
        flat = dict(flatten(settings))
        self.open = {name: TRACKERS[name](folder, flat, before.get(name, "")) for name in names}
        if ids := {name: tracker.id for name, tracker in self.open.items() if tracker.id}:
            with atomic_write(path) as stream:
                json.dump(ids, stream)

    def log(self, values: dict[str, float], step: int) -> None:
        """Pass numbers to all."""
        self._each(lambda tracker: tracker.log(values, step))

    def close(self) -> None:
        """Close all."""
        self._each(lambda tracker: tracker.close())

    def _each(self, work: Callable[[Tracker], object]) -> None:
        for name, tracker in list(self.open.items()):
            try:
                work(tracker)
            except Exception as error:
                LOG.warning("warning: %s failed and gets no more numbers: %s", name, error)
                del self.open[name]


def flatten(values: Any, mark: str = ".", path: str = "") -> Iterator[tuple[str, Any]]:
    """Nested values by their paths, such as `stages.0.optimizer.lr`: the columns by which trackers compare runs."""
    pairs = values.items() if isinstance(values, Mapping) else enumerate(values)
    for key, value in pairs:
        if isinstance(value, Mapping | list | tuple) and value:
            yield from flatten(value, mark, f"{path}{key}{mark}")
        else:
            yield f"{path}{key}", value


def _name(folder: Path) -> str:
    """The name of a run: that of its folder, of a seed with that of the folder above."""
    return f"{folder.parent.name}/{folder.name}" if folder.name.startswith("seed-") else folder.name
