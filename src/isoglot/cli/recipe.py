"""`isoglot recipe list` and `check`."""

from __future__ import annotations

from collections.abc import Sequence

from isoglot import recipe as recipes
from isoglot.cli.console import say, show_columns
from isoglot.training.recipes import plan_of


def show_list() -> None:
    """One packaged recipe a line, with its description."""
    show_columns([(name, recipes.load(name).description) for name in recipes.names()])


def check(name: str, overrides: Sequence[str]) -> None:
    """Everything that can be known before a run starts."""
    plan = plan_of(recipes.load(name, overrides), name=name)
    for stage in plan.stages:
        for stream in stage.streams:
            stream.corpus.check()
    say(f"{name}: ok")
