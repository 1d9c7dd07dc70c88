"""`isoglot train`: one run, or one per seed with mean and standard deviation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot import recipe as recipes
from isoglot.cli import console
from isoglot.cli.options import device_line
from isoglot.encoders.device import resolve
from isoglot.training import ranks
from isoglot.training.loop import Outcome
from isoglot.training.recipes import train_seeds


def run(name: str, output: Path, *, overrides: Sequence[str], seeds: int, resume: bool, device: str = "auto") -> None:
    """Train, and print the folders of the models; messages go to stderr."""
    console.on_interrupt("run the same command with --resume to continue from the newest checkpoint")
    place = resolve(device)
    if ranks.is_first():
        console.say(device_line(place))
    outcomes = train_seeds(recipes.load(name, overrides), output, name=name, seeds=seeds, resume=resume, device=place)
    if not ranks.is_first():
        return
    for outcome in outcomes:
        best = "" if outcome.best is None else f", best dev score {outcome.best:.4f}{_way(outcome)}"
        console.say(f"{outcome.steps} steps in {outcome.seconds:.0f} s{best}")
        typer.echo(outcome.model)
    if seeds > 1:
        _show_summary(outcomes, output / "seeds.json")


def _show_summary(outcomes: Sequence[Outcome], path: Path) -> None:
    if all(outcome.best is None for outcome in outcomes):
        console.say("no scores to average over seeds: the recipe has no [evaluation]")
        return
    found = json.loads(path.read_text(encoding="utf-8"))
    deviation = found["standard_deviation"]
    spread = "" if deviation is None else f" ± {deviation:.4f} (sample standard deviation)"
    console.say(f"dev score over {found['n']} seeds: {found['mean']:.4f}{spread}{_way(outcomes[0])}")


def _way(outcome: Outcome) -> str:
    return ", lower is better" if outcome.lower_is_better else ""
