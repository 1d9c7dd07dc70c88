"""Checkpoints that survive a kill, a full disk and truncated files.

A checkpoint is one file and a manifest with its digest, each written to a temporary file and renamed, the manifest
last. A file without a manifest or with another digest is ignored: resuming falls back to the checkpoint before it,
which is deleted only when a newer one is complete.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch

from isoglot.core.errors import CheckpointError, OutputError
from isoglot.data.files import atomic_write, digest, remove_temporary

KEPT = 2
_NAME = re.compile(r"step-\d{8}\.(pt|json)")


def save(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `state` as the checkpoint of `step` and drop all but the newest two; CheckpointError if it cannot be."""
    path = folder / f"step-{step:08d}.pt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, binary=True) as stream:
            torch.save(state, stream)
        with atomic_write(path.with_suffix(".json")) as stream:
            stream.write(json.dumps({"step": step, "bytes": path.stat().st_size, "sha256": digest(path)}))
    except (OutputError, OSError, RuntimeError) as error:  # torch turns some write errors into RuntimeError
        earlier = [old.name for old in _manifests(folder) if old != path.with_suffix(".json")]
        intact = f"{earlier[0].removesuffix('.json')} is intact" if earlier else "no earlier checkpoint"
        reason = getattr(error.__cause__ or error, "strerror", None) or error
        raise CheckpointError(
            f"{path}: cannot be written ({reason}); {intact}; free some space and run the same again"
        ) from error
    newest = {manifest.stem for manifest in _manifests(folder)[:KEPT]}
    for old in _files(folder):
        if old.stem not in newest:
            old.unlink()
    return path


def clean(folder: Path) -> None:
    """Remove the temporary files that a run that was killed has left."""
    remove_temporary(folder, _NAME.pattern)


def load(folder: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest whole checkpoint of a folder, or None where there is none; and what was wrong with newer ones.

    Raises CheckpointError if there are checkpoints and none is whole.
    """
    problems: list[str] = []
    for manifest in _manifests(folder):
        path = manifest.with_suffix(".pt")
        try:
            expected = json.loads(manifest.read_text(encoding="utf-8"))
            if (size := path.stat().st_size) != expected["bytes"]:
                raise ValueError(f"{size} bytes where {expected['bytes']} were written")
            if digest(path) != expected["sha256"]:
                raise ValueError("its content is not what was written")
            return torch.load(path, map_location="cpu", weights_only=True), problems
        except (OSError, ValueError, KeyError, TypeError) as error:
            problems.append(f"{path}: damaged: {error}")
    if problems:
        raise CheckpointError("; ".join(problems) + f"; no checkpoint is intact; remove {folder.parent} to start again")
    return None, problems


def _manifests(folder: Path) -> list[Path]:
    """Manifests, newest first."""
    return sorted((path for path in _files(folder) if path.suffix == ".json"), reverse=True)


def _files(folder: Path) -> list[Path]:
    """The files of checkpoints, manifests first: without one, a checkpoint is not read."""
    return sorted(path for path in folder.glob("step-*") if _NAME.fullmatch(path.name))
