"""Runs of recipes in tests, watched by one function for messages and steps."""

from collections.abc import Callable
from pathlib import Path

import torch

from isoglot.training.loop import ignore, run
from isoglot.training.progress import Status
from isoglot.training.record import Outcome
from isoglot.training.settings import Recipe


def train(
    recipe: Recipe,
    output: Path,
    *,
    seed: int | None = None,
    resume: bool = False,
    watch: Callable[[Status | str], None] = ignore,
) -> Outcome:
    """Train by a recipe on the CPU, without a display."""
    return run(recipe, output, device=torch.device("cpu"), seed=seed, resume=resume, report=watch, update=watch)
