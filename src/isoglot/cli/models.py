"""`isoglot models list` and `isoglot models get`."""

from __future__ import annotations

import typer

from isoglot.cli.console import say, show_columns, show_json
from isoglot.cli.options import Json


def list_models(as_json: Json = False) -> None:
    """List the packaged models and whether they are installed."""
    from isoglot.model.packaged import models

    if as_json:
        keys = ("name", "what", "dim", "licence", "size", "languages", "installed", "cached")
        show_json([{key: getattr(model, key) for key in keys} for model in models()])
        return
    rows = [["name", "description", "dims", "MB", "languages", "licence", "installed"]]
    for model in models():
        size, languages = f"{model.size / 1e6:.1f}" if model.size else "", str(model.languages or "")
        state = "yes" if model.installed else "no"
        rows.append([model.name, model.what, str(model.dim), size, languages, model.licence, state])
    show_columns(rows)
    if not all(model.installed for model in models()):
        say('Install the others with: pip install "isoglot[models]"')


def get(name: str) -> None:
    """Unpack a packaged model into the cache, for sentence-transformers too, and print its folder.

    name  name of a model (`isoglot models list`)
    """
    from isoglot.encoders.loading import expanded

    typer.echo(expanded(name))
