"""`isoglot models list`."""

from __future__ import annotations

from isoglot.cli.console import say, show_columns, show_json
from isoglot.encoders.packaged import models


def show_list(*, as_json: bool = False) -> None:
    """A table of the packaged models; with `as_json`, a list of objects."""
    if as_json:
        keys = ("name", "what", "dim", "licence", "installed", "cached")
        show_json([{key: getattr(model, key) for key in keys} for model in models()])
        return
    rows = [["name", "what it is", "dims", "licence", "installed", "unpacked"]]
    for model in models():
        state = ["yes" if flag else "no" for flag in (model.installed, model.cached)]
        rows.append([model.name, model.what, str(model.dim), model.licence, *state])
    show_columns(rows)
    say('Install them with: pip install "isoglot[models]"')
