"""`isoglot train`: one run, or one per seed with mean and standard deviation."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot import recipe as recipes
from isoglot.cli.display import Display
from isoglot.cli.recipe import find_files
from isoglot.data.files import atomic_write, check_json, check_output
from isoglot.training import ranks
from isoglot.training.loop import Outcome, train


def run(name: str, output: Path, *, overrides: Sequence[str], seeds: int, resume: bool) -> None:
    """Train, and print where the model is."""
    recipe = recipes.load(name, overrides)
    find_files(recipe, name)
    if seeds > 1:
        check_output(output, folder=True)
        check_json(output / "seeds.json", ("scores", "mean"))
    outcomes = []
    for seed in range(recipe.seed, recipe.seed + seeds):
        folder = output if seeds == 1 else output / f"seed-{seed}"
        again = resume and (folder / "run.json").exists()
        with Display() as display:
            outcomes.append(train(recipe, folder, seed=seed, resume=again, watch=display))
        if ranks.is_first():
            tell(outcomes[-1])
    if seeds > 1 and ranks.is_first():
        summarise(outcomes, output / "seeds.json")


def tell(outcome: Outcome) -> None:
    """Say how a run ended; the model's folder goes to stdout."""
    best = "" if outcome.best is None else f", best dev score {outcome.best:.4f}"
    typer.echo(f"{outcome.steps} steps in {outcome.seconds:.0f} s{best}", err=True)
    typer.echo(outcome.model)


def summarise(outcomes: Sequence[Outcome], path: Path) -> None:
    """Mean and standard deviation of the best dev scores over seeds, printed and written."""
    scores = [outcome.best for outcome in outcomes if outcome.best is not None]
    if not scores:
        typer.echo("no [evaluation] in the recipe, so there is no score to average over seeds", err=True)
        return
    mean, deviation = statistics.mean(scores), statistics.stdev(scores)
    with atomic_write(path) as stream:
        json.dump({"scores": scores, "mean": mean, "standard_deviation": deviation, "n": len(scores)}, stream, indent=1)
    typer.echo(
        f"dev score over {len(scores)} seeds: {mean:.4f} ± {deviation:.4f} (sample standard deviation)", err=True
    )
