"""`isoglot serve`: a search page for an index, and embeddings in the shape of OpenAI's interface."""

from __future__ import annotations

from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import Device, Effort, IndexFolder, IndexModel, announce


def serve(
    index: IndexFolder,
    host: Annotated[
        str, typer.Option(help="Address to listen on; the default serves this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8765,
    model: IndexModel = None,
    effort: Effort = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Host name that requests may use, or '*'; repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(help="Origin whose pages may send requests, such as https://example.org, or '*'; repeatable."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Serve an index as a web page and an OpenAI-compatible API."""
    from isoglot.errors import SearchError
    from isoglot.index import Index
    from isoglot.serve import create_app
    from isoglot.serve import serve as run

    with Index.open(index, model, device=device) as found:
        announce(device)
        hosts = [host, *(allow_host or [])]
        try:
            app = create_app(found, found.model, effort=effort, allow_hosts=hosts, allow_origins=allow_origin or [])
        except ValueError as error:
            raise SearchError(f"--allow-origin: {error}") from None

        def started(url: str) -> None:
            typer.echo(url)
            say(f"{len(found):,} sentences; stop with Ctrl-C")

        run(app, host=host, port=port, started=started)
        say("stopped")
