"""`isoglot recipe list` and `check`."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import filter as matching
from pathlib import Path

import typer

from isoglot import objectives
from isoglot import recipe as recipes
from isoglot.cli.shown import show_columns
from isoglot.data.readers import check as check_reader
from isoglot.errors import RecipeError
from isoglot.settings import Recipe
from isoglot.training.best import check as check_choices


def show_list() -> None:
    """One packaged recipe a line, with what it says of itself."""
    show_columns([(name, recipes.load(name).description) for name in recipes.names()])


def check(name: str, overrides: Sequence[str]) -> None:
    """Everything that can be known before a run starts."""
    recipe = recipes.load(name, overrides)
    find_files(recipe, name)
    inspect(recipe)
    typer.echo(f"{name}: ok", err=True)


def find_files(recipe: Recipe, name: str) -> None:
    """Raise RecipeError, saying what to do, for files that only the user can name and data sets that are not there."""
    streams = [stream for stage in recipe.stages for stream in stage.streams]
    paths = [source.path for stream in streams for source in stream.sources]
    own = [path for path in paths if not (path.startswith(("bundled:", "data:")) or Path(path).is_absolute())]
    if own and recipe.folder.is_relative_to(recipes.PACKAGED):
        raise RecipeError(
            f"{name}: does not know your {own[0]}; save it with `isoglot recipe show {name} > mine.toml`, "
            "name your files in it, and train mine.toml"
        )
    root = recipe.data.expanduser()
    paths += [path for stream in streams for path in stream.leakage]
    paths += [evaluation.data for evaluation in recipe.evaluation]
    there = [entry.name for entry in root.iterdir()] if root.is_dir() else []
    for path in paths:
        first = "".join(Path(path.removeprefix("data:")).parts[:1])  # a name, the beginning of one or a pattern
        if path.startswith("data:") and first and not matching(there, f"{first}*"):
            raise RecipeError(
                f"{name}: {path}: there is no {first} in {root}, which `data:` stands for; set ISOGLOT_DATA to the "
                "folder of your data sets (`isoglot data list` says where each comes from)"
            )


def inspect(recipe: Recipe) -> None:
    """Raise an error that names the first key that would stop a run."""
    for stage in recipe.stages:
        for stream in stage.streams:
            corpus = recipe.corpus(stream)
            for number, source in enumerate(stream.sources):
                check_reader(source.reader, source.options, where=f"streams.{stream.name}.sources.{number}")
            for number, objective in enumerate(stream.objectives):
                where = f"streams.{stream.name}.objectives.{number}"
                objectives.check(objective.name, objective.options, where=where)
            corpus.check()
    check_choices(recipe)
