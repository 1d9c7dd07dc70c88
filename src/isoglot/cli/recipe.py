"""`isoglot recipe list`, `show` and `check`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from isoglot.cli.console import say, show_columns
from isoglot.cli.options import Overrides

Recipe = Annotated[str, typer.Argument(help="TOML file, or name of a packaged recipe.")]


def list_recipes() -> None:
    """List the packaged recipes."""
    from isoglot.training import recipe as recipes

    show_columns([(name, recipes.load(name).description) for name in recipes.names()])


def show(recipe: Recipe, *, raw: bool = False) -> None:
    """Print a recipe, complete with everything it extends.

    raw  print the file unchanged, without its bases
    """
    from isoglot.training import recipe as recipes

    sys.stdout.write(recipes.text(recipe) if raw else recipes.show(recipe))


def check(recipe: Recipe, overrides: Overrides = None) -> None:
    """Check a recipe: its keys, values, objectives, readers and files."""
    from isoglot.training import recipe as recipes
    from isoglot.training import recipes as training

    for corpora in training.check(recipes.load(recipe, overrides or []), name=recipe)[0]:
        for corpus in corpora:
            corpus.check()
    say(f"{recipe}: ok")
