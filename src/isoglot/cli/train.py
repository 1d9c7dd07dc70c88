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
    best = "" if outcome.best is None else f", best dev score {outcome.best:.4f}{_way(outcome)}"
    typer.echo(f"{outcome.steps} steps in {outcome.seconds:.0f} s{best}", err=True)
    typer.echo(outcome.model)


def summarise(outcomes: Sequence[Outcome], path: Path) -> None:
    """Mean and standard deviation of the best dev scores over seeds, and the best of all, printed and written."""
    scores = [outcome.best for outcome in outcomes if outcome.best is not None]
    if not scores:
        typer.echo("no [evaluation] in the recipe, so there is no score to average over seeds", err=True)
        return
    mean, lower = statistics.mean(scores), outcomes[0].lower_is_better
    deviation = statistics.stdev(scores) if len(scores) > 1 else None  # seeds without a finite score are left out
    found = {"scores": scores, "mean": mean, "standard_deviation": deviation, "n": len(scores)}
    found |= {"best": (min if lower else max)(scores), "lower_is_better": lower}
    with atomic_write(path) as stream:
        json.dump(found, stream, indent=1)
    spread = "" if deviation is None else f" ± {deviation:.4f} (sample standard deviation)"
    typer.echo(f"dev score over {len(scores)} seeds: {mean:.4f}{spread}{_way(outcomes[0])}", err=True)


def _way(outcome: Outcome) -> str:
    return ", lower is better" if outcome.lower_is_better else ""
