"""JSON responses, and errors in the format of OpenAI's API."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from isoglot.core.errors import quote

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_BRACKETS = 50_000

CLOSE = {"Connection": "close"}


class Problem(Exception):  # noqa: N818 - reported to the client, not a fault of the program
    """A request that cannot be answered; the message explains how to fix it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.param, self.code, self.headers = status, param, code, headers or {}

    def body(self) -> bytes:
        """`{"error": {"message", "type", "param", "code"}}`."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return as_json({"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}})

    def response(self) -> Response:
        """The problem as an answer."""
        return reply(self.body(), status=self.status, headers=self.headers)


def reply(
    body: bytes, *, kind: str = "application/json", status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """An answer with the headers that all answers have."""
    return Response(body, status, {"Content-Type": kind, **HEADERS, **(headers or {})})


def as_json(value: Any) -> bytes:
    """A value as ASCII JSON, so that no text can break it."""
    return json.dumps(value, allow_nan=False).encode("ascii")


def parse(body: bytes, keys: Sequence[str] = ()) -> dict[str, Any]:
    """The object of a request, which may have only these keys, if they are passed. Raises `Problem`."""
    # A list of a million lists takes Python's parser, which nothing can interrupt, most of a second.
    if body.count(b"[") + body.count(b"{") > _BRACKETS:
        raise Problem(400, f"The body has more than {_BRACKETS} opening brackets; send fewer texts at once.")
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not JSON; send an object in UTF-8.") from None
    if not isinstance(request, dict):
        raise Problem(400, "The body is JSON, but not an object.")
    if keys and (unknown := sorted(request.keys() - keys)):  # a filter that is misspelled would find other hits
        raise Problem(400, f"The request has no {quote(unknown[0])}; its keys are {', '.join(keys)}.")
    return request


def integer(request: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    """An integer of a request, between bounds. Raises `Problem`."""
    value = request.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Problem(400, f"'{name}' must be an integer from {low} to {high}.", param=name)
    return value


def require_text(value: object, name: str, limit: int) -> str:
    """A string of at most `limit` characters that UTF-8 can hold. Raises `Problem`."""
    if not isinstance(value, str):
        raise Problem(400, f"'{name}' must be a string.", param=name)
    if len(value) > limit:
        raise Problem(400, f"'{name}' has {len(value)} characters; at most {limit} are allowed.", param=name)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Problem(400, f"'{name}' contains half of a surrogate pair; send whole characters.", param=name) from None
    return value
