"""Access control: requests need the token, if one is set, and pages of other sites are blocked. There are two ways for
such a page to reach the server. A page may send a request across origins, which carries its `Origin`. Or it may point
its own host name at this machine (DNS rebinding), and then the request carries that name as its `Host`. IP addresses,
`localhost` and the name of this machine can't be redirected, so they are always allowed.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from ipaddress import ip_address
from socket import gethostname
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from isoglot.serve.replies import CLOSE, Problem

ANY = "*"


class Access:
    """Middleware that answers 421 for a foreign `Host` and 403 for a foreign `Origin`; "*" allows all.

    `hosts` are as `check_host` gives them, `origins` as `check_origin` does.
    """

    def __init__(self, app: ASGIApp, *, hosts: Iterable[str], origins: Iterable[str]) -> None:
        self.app = app
        self.hosts = {"localhost", gethostname().lower(), *hosts}
        self.origins = set(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI
        problem = self._problem(scope) if scope["type"] in ("http", "websocket") else None
        if problem is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await problem.response()(scope, receive, send)
        else:
            await send({"type": "websocket.close"})

    def _problem(self, scope: Scope) -> Problem | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host"), headers.get("origin")
        if host is not None and not self._is_known(_host(host)):
            return Problem(421, f"This server does not answer for the host {host!r}; see --allow-host.", headers=CLOSE)
        if origin is None or ANY in self.origins or origin.lower() in self.origins:
            return None
        # The scheme is left out: a proxy in front may have taken the encryption off.
        if host and origin.lower().partition("://")[2] == host.lower():
            return None
        return Problem(403, f"Requests from the origin {origin!r} are not allowed; see --allow-origin.", headers=CLOSE)

    def _is_known(self, name: str) -> bool:
        if name in self.hosts or ANY in self.hosts:
            return True
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return False
        return True


class Token:
    """Middleware that answers 401 without `Authorization: Bearer TOKEN`, except for some paths."""

    def __init__(self, app: ASGIApp, *, token: str, public: Iterable[str]) -> None:
        self.app, self.token, self.public = app, token.encode(), set(public)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI
        mounted_at = scope.get("root_path", "")  # path of the application that this one is mounted in
        path = scope.get("path", "").removeprefix(mounted_at)
        if scope["type"] != "http" or path in self.public or self._has_token(scope):
            await self.app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer", **CLOSE}
        problem = Problem(401, "Send the token of this server: Authorization: Bearer TOKEN.", headers=headers)
        await problem.response()(scope, receive, send)

    def _has_token(self, scope: Scope) -> bool:
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and hmac.compare_digest(token.strip().encode("latin-1"), self.token)


def check_host(host: str) -> str:
    """A host name without its port, in lower case. Raises `ValueError` for an address, which no `Host` could equal."""
    if "/" in host:
        raise ValueError(f"{host!r} is not a host name; write it as search.example.org")
    return _host(host)


def check_origin(origin: str) -> str:
    """An origin as browsers send it, in lower case. Raises `ValueError` for what can't be one."""
    normalized = origin.lower().rstrip("/")
    parts = urlsplit(normalized)
    is_whole = parts.scheme and parts.netloc and normalized == f"{parts.scheme}://{parts.netloc}"
    if is_whole or normalized in (ANY, "null"):
        return normalized
    raise ValueError(f"{origin!r} is not an origin; write it as https://example.org or http://localhost:3000")


def _host(header: str) -> str:
    """A `Host` without its port."""
    name = header.strip().lower()
    return name.partition("]")[0] if name.startswith("[") else name.partition(":")[0]
