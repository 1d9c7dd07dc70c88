"""`isoglot sweep`: train a recipe over settings and seeds, or the arms of an experiment; one table, one plot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isoglot.cli import console
from isoglot.cli.options import Data, Device, Json, Output, Overrides, Settings
from isoglot.cli.signatures import Of
from isoglot.core.arguments import NonNegativeInt


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
    from isoglot.data.files import check_outputs
    from isoglot.encoders.device import describe, resolve
    from isoglot.training.sweep import read_design, sweep

    if (recipe is None) == (arms is None):
        raise typer.BadParameter("pass a recipe, or --arms FILE")
    written = [output / f"sweep.{kind}" for kind in ("md", "tex", "json", "svg")]
    check_outputs(*written, inputs=[arms])
    console.on_interrupt("run the same command again to resume")
    console.say(describe(resolve(device)))
    made = sweep(
        read_design(arms, entry) if arms is not None else str(recipe), output, over=over or [], data=data,
        seeds=range(seed, seed + settings.pop("seeds")), overrides=overrides or [], device=device, **settings,
    )  # fmt: skip
    if as_json:
        console.show_json(made.to_dict())
    else:
        for grid in made.grids():
            console.show_grid(grid)
    console.say(f"wrote {', '.join(str(path) for path in written if path.exists())}")
