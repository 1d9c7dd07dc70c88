"""Checkpoints that survive a kill, a full disk and damage.

A checkpoint is one file of `torch.save`, written to a temporary file and renamed. It is a zip archive, whose checksums
show damage: resuming then falls back to the checkpoint before it, which is deleted only when a newer one is complete.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import torch

from isoglot.core.errors import CheckpointError, OutputError
from isoglot.data.files import atomic_write, remove_temporary

KEPT = 2
_NAME = r"step-\d{8}\.pt"


def save(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `state` as the checkpoint of `step` and drop all but the newest two; CheckpointError if it cannot be."""
    path = folder / f"step-{step:08d}.pt"
    try:
        with atomic_write(path, binary=True) as stream:
            torch.save(state, stream)
    except (OutputError, OSError, RuntimeError) as error:  # torch turns some write errors into RuntimeError
        earlier = [old.stem for old in _files(folder) if old != path]
        intact = f"{earlier[0]} is intact" if earlier else "no earlier checkpoint"
        reason = getattr(error.__cause__ or error, "strerror", None) or error
        raise CheckpointError(
            f"{path}: cannot be written ({reason}); {intact}; free some space and run the same again"
        ) from error
    for old in _files(folder)[KEPT:]:
        old.unlink()
    return path


def clean(folder: Path) -> None:
    """Remove the temporary files that a run that was killed has left."""
    remove_temporary(folder, _NAME)


def load(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest whole checkpoint of a folder, or None where there is none; and what was wrong with newer ones.

    Raises CheckpointError if there are checkpoints and none is whole.
    """
    problems: list[str] = []
    for path in _files(folder):
        try:
            with ZipFile(path) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f"the checksum of {damaged} is wrong")
            return torch.load(path, map_location="cpu", weights_only=True), problems
        except Exception as error:  # both libraries have many, depending on which byte is damaged
            problems.append(f"{path}: damaged: {error}".partition("\n")[0])
    if problems:
        raise CheckpointError("; ".join(problems) + f"; no checkpoint is intact; remove {folder.parent} to start again")
    return None, problems


def _files(folder: Path) -> list[Path]:
    """Checkpoints, newest first."""
    return sorted((path for path in folder.glob("step-*") if re.fullmatch(_NAME, path.name)), reverse=True)
