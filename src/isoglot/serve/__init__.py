"""The web application: a search page, a JSON search interface, and embeddings in the shape of OpenAI's interface.

`create_app` builds a Starlette application, which any ASGI server can run and any Starlette or FastAPI application can
mount; `serve` runs it on uvicorn.
"""

from __future__ import annotations

from isoglot.core.errors import naming_extras

with naming_extras():
    from isoglot.serve.application import create_app
    from isoglot.serve.limits import Limits
    from isoglot.serve.server import Server, serve

__all__ = ["Limits", "Server", "create_app", "serve"]
