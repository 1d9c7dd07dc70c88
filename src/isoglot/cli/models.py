"""`isoglot models list`."""

from __future__ import annotations

from rich.console import Console
from rich.table import Column, Table

from isoglot.encoders.packaged import models


def show_list() -> None:
    """A table of the packaged models."""
    table = Table(
        Column("name", no_wrap=True), "what it is", "dims", "licence", "installed", "unpacked", box=None, pad_edge=False
    )
    for model in models():
        state = ["yes" if flag else "no" for flag in (model.installed, model.cached)]
        table.add_row(model.name, model.what, str(model.dim), model.licence, *state)
    Console().print(table)
    Console(stderr=True, highlight=False).print('Install them with: pip install "isoglot\\[models]"')
