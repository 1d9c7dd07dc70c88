"""The web application: a search page, a JSON search interface, and embeddings in the shape of OpenAI's interface.

`create_app` builds a Starlette application, which any ASGI server can run and any Starlette or FastAPI application can
mount; `serve` runs it on uvicorn.
"""

from __future__ import annotations

from isoglot.core.errors import SearchError

try:
    from isoglot.serve.application import create_app
    from isoglot.serve.limits import Limits
    from isoglot.serve.server import Server, serve
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] == "isoglot":
        raise
    raise SearchError(f'the server needs {error.name}: pip install "isoglot[serve]"') from error

__all__ = ["Limits", "Server", "create_app", "serve"]
