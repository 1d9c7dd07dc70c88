"""`isoglot models list`."""

from __future__ import annotations

import typer

from isoglot.cli.shown import show_columns
from isoglot.encoders.packaged import models


def show_list() -> None:
    """A table of the packaged models."""
    rows = [["name", "what it is", "dims", "licence", "installed", "unpacked"]]
    for model in models():
        state = ["yes" if flag else "no" for flag in (model.installed, model.cached)]
        rows.append([model.name, model.what, str(model.dim), model.licence, *state])
    show_columns(rows)
    typer.echo('Install them with: pip install "isoglot[models]"', err=True)
