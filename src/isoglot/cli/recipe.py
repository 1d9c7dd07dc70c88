"""`isoglot recipe list` and `check`."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from isoglot import objectives
from isoglot import recipe as recipes
from isoglot.data.readers import check as check_reader
from isoglot.data.streams import Sources
from isoglot.errors import RecipeError
from isoglot.evaluation import TASKS
from isoglot.settings import Recipe


def show_list() -> None:
    """One packaged recipe a line, with what it says of itself."""
    names = [*recipes.names()]
    width = max(map(len, names))
    for name in names:
        typer.echo(f"{name:<{width}}  {recipes.load(name).description}")


def check(name: str, overrides: Sequence[str]) -> None:
    """Everything that can be known before a run starts."""
    recipe = recipes.load(name, overrides)
    inspect(recipe)
    typer.echo(f"{name}: ok", err=True)


def inspect(recipe: Recipe) -> None:
    """Raise an error that names the first key that would stop a run."""
    for stage in recipe.stages:
        for stream in stage.streams:
            sources = Sources(stream, recipe.resolve)
            sources.weights()
            for number, source in enumerate(stream.sources):
                check_reader(source.reader, source.options, where=f"streams.{stream.name}.sources.{number}")
            for number, objective in enumerate(stream.objectives):
                where = f"streams.{stream.name}.objectives.{number}"
                objectives.check(objective.name, objective.options, where=where)
            sources.digest()  # opens every file
    for evaluation in recipe.evaluation:
        if evaluation.task not in TASKS:
            raise RecipeError(f"evaluation.task: no task is called {evaluation.task!r}; known: {', '.join(TASKS)}")
