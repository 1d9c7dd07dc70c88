"""`isoglot recipe list` and `check`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from isoglot import recipe as recipes
from isoglot.cli.shown import show_columns
from isoglot.training.recipes import plan_of


def show_list() -> None:
    """One packaged recipe a line, with what it says of itself."""
    show_columns([(name, recipes.load(name).description) for name in recipes.names()])


def check(name: str, overrides: Sequence[str]) -> None:
    """Everything that can be known before a run starts."""
    plan = plan_of(recipes.load(name, overrides), name=name)
    for stage in plan.stages:
        for stream in stage.streams:
            stream.corpus.check()
    typer.echo(f"{name}: ok", err=True)
