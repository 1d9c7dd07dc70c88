"""`isoglot serve`: a page to search an index with, and vectors for programs that speak to OpenAI's interface."""

from __future__ import annotations

from pathlib import Path

import typer

from isoglot.cli.serve.answers import Answers
from isoglot.cli.serve.connections import Limits, Server
from isoglot.index import Index


def run(
    folder: Path, *, host: str = "127.0.0.1", port: int = 8765, model: str | None = None, effort: int | None = None
) -> None:
    """Serve an index until interrupted; its address goes to stdout. Port 0 takes a free one. Raises `SearchError`."""
    with Index.open(folder) as index:
        answers = Answers(index, index.origin.load(model), effort=effort)
        with Server(host, port, answers, Limits()) as server:
            typer.echo(server.url)
            typer.echo(f"{len(index):,} sentences; stop with Ctrl-C", err=True)
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                typer.echo("stopped", err=True)
