"""`isoglot serve`: a page to search an index with, and vectors for programs that speak to OpenAI's interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from isoglot.cli.console import say
from isoglot.cli.options import announce
from isoglot.index import Index, SearchError


def run(
    folder: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    model: str | None = None,
    effort: int | None = None,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    device: str = "auto",
) -> None:
    """Serve an index until interrupted; its address goes to stdout. Port 0 takes a free one. Raises `SearchError`."""
    from isoglot.serve import create_app, serve

    with Index.open(folder, model, device=device) as index:
        announce(device)
        encoder = index.model
        try:
            app = create_app(
                index, encoder, effort=effort, allow_hosts=[host, *allow_hosts], allow_origins=allow_origins
            )
        except ValueError as error:
            raise SearchError(f"--allow-origin: {error}") from None

        def started(url: str) -> None:
            typer.echo(url)
            say(f"{len(index):,} sentences; stop with Ctrl-C")

        serve(app, host=host, port=port, started=started)
        say("stopped")
