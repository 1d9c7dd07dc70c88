"""`isoglot train`: train once, or once per seed with mean and standard deviation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isoglot.cli import console
from isoglot.cli.options import Device, Output, Overrides, Settings
from isoglot.cli.signatures import Of
from isoglot.core.arguments import PositiveInt

if TYPE_CHECKING:
    from isoglot.training.record import Outcome


def train(
    recipe: str,
    *,
    output: Output,
    overrides: Overrides = None,
    seeds: PositiveInt = 1,
    resume: Annotated[bool, typer.Option(hidden=True)] = False,  # noqa: ARG001 (users' scripts may pass it)
    device: Device = "auto",
    settings: Annotated[Settings, Of("training.train:train", "track")],
) -> None:
    """Train an encoder with a recipe; the same command resumes an interrupted run.

    recipe  TOML file, or name of a packaged recipe (`isoglot recipe list`)
    seeds   number of random seeds to train with
    resume  no effect: the same command always resumes
    """
    from isoglot.encoders.device import describe, resolve
    from isoglot.training import ranks
    from isoglot.training import recipe as recipes
    from isoglot.training.train import train_seeds

    console.on_interrupt("run the same command again to resume")
    place = resolve(device)
    if ranks.is_first():
        console.say(describe(place))
    found = recipes.load(recipe, overrides or [])
    outcomes = train_seeds(found, output, name=recipe, seeds=seeds, device=place, **settings)
    if not ranks.is_first():
        return
    for outcome in outcomes:
        best = "" if outcome.best is None else f", best dev score {outcome.best:.4f}{_direction(outcome)}"
        console.say(f"{outcome.steps} steps in {outcome.seconds:.0f} s{best}")
        typer.echo(outcome.model)
    if seeds > 1:
        console.say(_summary(outcomes, output / "seeds.json"))


def _summary(outcomes: list[Outcome], path: Path) -> str:
    import json

    if all(outcome.best is None for outcome in outcomes):
        return "no scores to average over seeds: the recipe has no [evaluation]"
    found = json.loads(path.read_text(encoding="utf-8"))
    deviation = found["standard_deviation"]
    spread = "" if deviation is None else f" ± {deviation:.4f} (sample standard deviation)"
    return f"dev score over {found['n']} seeds: {found['mean']:.4f}{spread}{_direction(outcomes[0])}"


def _direction(outcome: Outcome) -> str:
    return ", lower is better" if outcome.lower_is_better else ""
