"""`isoglot sweep`: train a recipe over settings and seeds, or the arms of an experiment; one table, one plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli import console
from isoglot.cli.options import Data, Device, Json, Languages, Output, split


def sweep(
    output: Output,
    data: Data,
    recipe: Annotated[str | None, typer.Argument(help="TOML file, or name of a packaged recipe.")] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE,VALUE", help="Values of a setting, such as batching.most=2,4; repeatable, for a grid."
        ),
    ] = None,
    arms: Annotated[
        Path | None, typer.Option(help="TOML file of named arms, each a recipe with changes, instead of RECIPE.")
    ] = None,
    entry: Annotated[str, typer.Option(help="Name of the table in the --arms file, if it contains several.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Number of random seeds per arm.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="First random seed.")] = 1,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting in all arms; repeatable."),
    ] = None,
    tasks: Annotated[
        str, typer.Option(help="Tasks and suites to evaluate in addition to the dev score, separated by commas.")
    ] = "",
    languages: Languages = "",
    files: Annotated[
        Path, typer.Option(help="Folder with the training files that packaged recipes expect, such as wikipedia/.")
    ] = Path(),
    jobs: Annotated[int, typer.Option(min=1, help="Number of parallel runs.")] = 1,
    steps: Annotated[int, typer.Option(min=0, help="Steps of every stage, for a trial run; 0: as in the recipes.")] = 0,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the models and checkpoints of all runs.")] = False,
    device: Device = "auto",
    precision: Annotated[
        str | None,
        typer.Option(help="Precision of the evaluation, as of `isoglot evaluate`; training has its own in the recipe."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train over settings and seeds, and compare the results in one table."""
    from isoglot.data.files import check_outputs
    from isoglot.encoders.device import describe, resolve
    from isoglot.training.sweep import read_design, sweep

    if (recipe is None) == (arms is None):
        raise typer.BadParameter("pass a recipe, or --arms FILE")
    written = [output / f"sweep.{kind}" for kind in ("md", "json", "svg")]
    check_outputs(*written, inputs=[arms])
    console.on_interrupt("run the same command again to resume")
    console.say(describe(resolve(device)))
    made = sweep(
        read_design(arms, entry) if arms is not None else str(recipe), output, over=over or [],
        seeds=range(seed, seed + seeds), overrides=overrides or [], tasks=split(tasks), languages=split(languages),
        data=data, files=files, jobs=jobs, steps=steps, keep=keep, device=device, precision=precision,
    )  # fmt: skip
    if as_json:
        console.show_json(made.to_dict())
    else:
        for grid in made.grids():
            console.show_grid(grid)
    console.say(f"wrote {', '.join(str(path) for path in written if path.exists())}")
