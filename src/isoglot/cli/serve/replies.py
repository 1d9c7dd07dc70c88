"""What goes back to a client: a status and bytes; and problems, in the shape that OpenAI's clients understand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: HTTP status, body, its media type, and the methods to name in `Allow`, if any."""

    status: int
    body: bytes
    kind: str = "application/json"
    allow: str = ""


class Problem(Exception):  # noqa: N818 - told to the client, not a fault of the program
    """A request that is not answered as asked; the message says what to do."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code

    def reply(self) -> Reply:
        """As an answer: `{"error": {"message", "type", "param", "code"}}`."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        return as_json({"error": error}, status=self.status)


def as_json(value: Any, *, status: int = 200) -> Reply:
    """An object as an answer, in ASCII, so that no text can break it."""
    return Reply(status, json.dumps(value, allow_nan=False).encode("ascii"))


def parse(body: bytes) -> dict[str, Any]:
    """The object of a request. Raises `Problem`."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Problem(400, "The body is not JSON; send an object in UTF-8.") from None
    if not isinstance(found, dict):
        raise Problem(400, "The body is JSON, but no object.")
    return found


def integer(found: dict[str, Any], name: str, default: int, low: int, high: int) -> int:
    """A whole number of a request, between bounds. Raises `Problem`."""
    value = found.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Problem(400, f"'{name}' must be a whole number from {low} to {high}.", param=name)
    return value


def require_text(value: object, name: str) -> str:
    """A string that UTF-8 can hold. Raises `Problem`."""
    if not isinstance(value, str):
        raise Problem(400, f"'{name}' must be text.", param=name)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Problem(400, f"'{name}' holds half of a surrogate pair, which is no character.", param=name) from None
    return value
