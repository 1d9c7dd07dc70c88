"""`isoglot serve`: an HTTP server of embeddings and similarities, and of a search page for an index."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from isoglot.cli.console import say
from isoglot.cli.options import Device
from isoglot.cli.signatures import Of
from isoglot.core import environment
from isoglot.core.arguments import NonNegativeInt


def serve(
    subject: Annotated[str | None, typer.Argument(metavar="[MODEL|INDEX]")] = None,
    *,
    host: Annotated[str, typer.Option(envvar="ISOGLOT_SERVE_HOST")] = "127.0.0.1",
    port: Annotated[NonNegativeInt, typer.Option(max=65535, envvar="ISOGLOT_SERVE_PORT")] = 8765,
    model: Annotated[str | None, typer.Option(envvar="ISOGLOT_SERVE_MODEL")] = None,
    effort: Annotated[
        int | None, Of("index.index:Index.search", effort=typer.Option(envvar="ISOGLOT_SERVE_EFFORT")).option("effort")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(envvar="ISOGLOT_SERVE_HOSTS")] = None,
    allow_origin: Annotated[list[str] | None, typer.Option(envvar="ISOGLOT_SERVE_ORIGINS")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, envvar="ISOGLOT_SERVE_TIMEOUT")] = 120.0,
    grace: Annotated[NonNegativeInt, typer.Option(envvar="ISOGLOT_SERVE_GRACE")] = 25,
    access_log: Annotated[bool, typer.Option("--access-log/--no-access-log", envvar="ISOGLOT_SERVE_LOG")] = True,
    device: Device = "auto",
) -> None:
    """Serve a model or an index: an OpenAI-compatible API, and a web page to search an index.

    If $ISOGLOT_SERVE_TOKEN is set, requests must send it as a bearer token.

    subject       model or folder of an index to serve; default: the default model
    host          address to listen on; the default serves this machine only
    port          port to listen on; 0 chooses a free one
    model         model of the index, if its folder was moved
    allow_host    host name that requests may use, or '*' for any; repeatable
    allow_origin  origin of pages that may send requests, such as https://example.org, or '*' for any; repeatable
    timeout       maximum time of a request in seconds, waiting included
    grace         seconds allowed for open requests to finish after SIGTERM
    access_log    log every request
    """
    from isoglot.core.errors import SearchError
    from isoglot.index import Index
    from isoglot.model import load
    from isoglot.serve import Limits, create_app
    from isoglot.serve import serve as run
    from isoglot.serve.observe import LOG

    LOG.disabled = not access_log
    limits = Limits(work=timeout, grace=grace)
    with ExitStack() as stack:
        found = None
        if subject is not None and Index.exists(subject):
            found = stack.enter_context(Index.open(subject, model, device=device))
            encoder = found.model
        elif model is not None or effort is not None:
            raise SearchError(f"{subject}: not an index; --model and --effort need the folder of an index")
        else:
            encoder = load(subject, device=device)
        say(encoder.describe())
        try:
            app = create_app(
                found, encoder, effort=effort, allow_hosts=[host, *(allow_host or [])],
                allow_origins=allow_origin or [], token=environment.serve_token(), limits=limits,
            )  # fmt: skip
        except ValueError as error:
            raise SearchError(f"serve: {error}") from None

        def started(url: str) -> None:
            typer.echo(url if found is not None else f"{url}v1")  # a model has no page
            what = f"model {encoder.name}" if found is None else f"{len(found):,} sentences"
            say(f"{what}; stop with Ctrl-C")

        run(app, host=host, port=port, limits=limits, started=started)
        say("stopped")
