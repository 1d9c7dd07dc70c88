"""`isoglot demo`, `train`, `sweep` and `freeze`, and `isoglot recipe list`, `show` and `check`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli.console import on_interrupt, say, show_columns, show_grid, show_json
from isoglot.cli.options import Data, Device, Json, Output, Overrides, Settings
from isoglot.cli.signatures import Of
from isoglot.core.arguments import NonNegativeInt, PositiveInt
from isoglot.data.files import check_outputs


def demo(output: Output = Path("isoglot-demo"), device: Device = "auto") -> None:
    """Train, evaluate and mine on the bundled text; takes about three minutes."""
    from isoglot.encoders.device import describe, resolve
    from isoglot.training.demo import run

    say(describe(resolve(device)))
    run(output, device=device, report=say, show=show_grid)


def train(
    recipe: str,
    *,
    output: Output,
    overrides: Overrides = None,
    seeds: PositiveInt = 1,
    device: Device = "auto",
    settings: Annotated[Settings, Of("training.train:train", "track")],
) -> None:
    """Train an encoder with a recipe; the same command resumes an interrupted run.

    recipe  TOML file, or name of a packaged recipe (`isoglot recipe list`)
    seeds   number of random seeds to train with
    """
    from isoglot.encoders.device import describe, resolve
    from isoglot.training import ranks
    from isoglot.training import recipe as recipes
    from isoglot.training.train import summarize, train_seeds

    on_interrupt("run the same command again to resume")
    place = resolve(device)
    if ranks.is_first():
        say(describe(place))
    loaded_recipe = recipes.load(recipe, overrides or [])
    outcomes = train_seeds(loaded_recipe, output, name=recipe, seeds=seeds, device=place, **settings)
    if not ranks.is_first():
        return
    for outcome in outcomes:
        direction = ", lower is better" if outcome.lower_is_better else ""
        best = "" if outcome.best is None else f", best dev score {outcome.best:.4f}{direction}"
        say(f"{outcome.steps} steps in {outcome.seconds:.0f} s{best}")
        typer.echo(outcome.model)
    if seeds == 1:
        return
    if summary := summarize(outcomes):
        deviation = summary["standard_deviation"]
        spread = "" if deviation is None else f" ± {deviation:.4f} (sample standard deviation)"
        say(f"dev score over {summary['n']} seeds: {summary['mean']:.4f}{spread}{direction}")
    else:
        reason = "no dev score was a finite number" if loaded_recipe.evaluation else "the recipe has no [evaluation]"
        say(f"no scores to average over seeds: {reason}")


def sweep(
    recipe: str | None = None,
    *,
    output: Output,
    data: Data,
    over: Annotated[list[str] | None, typer.Option(metavar="KEY=VALUE,VALUE")] = None,
    arms: Path | None = None,
    entry: str = "",
    seed: NonNegativeInt = 1,
    overrides: Overrides = None,
    settings: Annotated[Settings, Of("training.sweep:sweep")],
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Train over settings and seeds, and compare the results in one table.

    recipe  TOML file, or name of a packaged recipe
    over    values of a setting, such as batching.most=2,4; repeatable, for a grid
    arms    TOML file of named arms, each a recipe with changes, instead of RECIPE
    entry   name of the table in the --arms file, if it contains several
    seed    first random seed
    """
    from isoglot.encoders.device import describe, resolve
    from isoglot.training.sweep import read_design, sweep

    if (recipe is None) == (arms is None):
        raise typer.BadParameter("pass a recipe, or --arms FILE")
    written = [output / f"sweep.{kind}" for kind in ("md", "tex", "json", "svg")]
    check_outputs(*written, inputs=[arms])
    on_interrupt("run the same command again to resume")
    say(describe(resolve(device)))
    finished = sweep(
        read_design(arms, entry) if arms is not None else str(recipe), output, over=over or [], data=data,
        seeds=range(seed, seed + settings.pop("seeds")), overrides=overrides or [], device=device, **settings,
    )  # fmt: skip
    if as_json:
        show_json(finished.to_dict())
    else:
        for grid in finished.grids():
            show_grid(grid)
    say(f"wrote {', '.join(str(path) for path in written if path.exists())}")


def freeze(run: Path, *, output: Output) -> None:
    """Freeze a finished run or sweep, so that others can repeat it and compare the results.

    run     folder of `isoglot train` or `isoglot sweep`
    output  a new folder, or an archive whose name ends in .zip
    """
    from isoglot.training.freeze import freeze

    freeze(run, output)
    say(f"wrote {output}; repeat.sh in it repeats {run}")


Recipe = Annotated[str, typer.Argument(help="TOML file, or name of a packaged recipe.")]


def list_recipes() -> None:
    """List the packaged recipes."""
    from isoglot.training import recipe as recipes

    show_columns([(name, recipes.describe(name)) for name in recipes.names()])


def show(recipe: Recipe, *, raw: bool = False) -> None:
    """Print a recipe, complete with everything it extends.

    raw  print the file unchanged, without its bases
    """
    from isoglot.training import recipe as recipes

    sys.stdout.write(recipes.text(recipe) if raw else recipes.show(recipe))


def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Check a recipe: its keys, values, objectives, readers and files."""
    from isoglot.training import recipe as recipes
    from isoglot.training.plan import make_plan

    make_plan(recipes.load(recipe, overrides or []), recipe).check_data()
    say(f"{recipe}: ok")
