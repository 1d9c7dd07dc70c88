"""Fetching one file over HTTP so that neither a cut connection nor a changed file can spoil it.

What is special here: bytes go to `NAME.part`, beside it `NAME.part.json` says of which version of the file they are
(its validators and its length); the next attempt, or the next call days later, asks for the rest by a Range request
and joins it only if the server still answers with the same version. A server that ignores the request is started over.
The length announced must be the length received. Only the standard library is used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from isoglot.data.files import atomic_write, writing
from isoglot.data.sets.content import BLOCK
from isoglot.errors import CorpusError

# Address, bytes there so far, bytes in all if the server told.
Watch = Callable[[str, int, int | None], None]

_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Network:
    """How the network is used.

    `mirror` is the address of a folder that holds copies as `<mirror>/<host>/<path>`, the tree that
    `wget --recursive` makes; empty for the publishers themselves. `timeout` is in seconds of silence. A file is
    tried `attempts` times in one call, after a pause that begins with `pause` seconds and doubles each time.
    """

    mirror: str = ""
    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.pause < 0:
            raise ValueError(f"attempts >= 1, timeout > 0 and pause >= 0 are needed, not {self}")

    def resolve(self, address: str) -> str:
        """Where to ask for what is published at `address`. Raises `CorpusError` for anything but http and https."""
        parts = urlsplit(address)
        if self.mirror:
            query = f"?{parts.query}" if parts.query else ""
            address = f"{self.mirror.rstrip('/')}/{parts.netloc}{parts.path}{query}"
        if urlsplit(address).scheme not in ("http", "https"):
            raise CorpusError(f"{address}: is no http or https address; give --base-url one that begins with http")
        return address


class _InterruptedError(Exception):
    """The transfer ended early for a reason that may pass; the message says which."""


def download(address: str, target: Path, *, network: Network | None = None, watch: Watch | None = None) -> None:
    """Fetch `address` into the file `target`, going on from what an earlier call left in `target.part`.

    Raises `CorpusError` when the server refuses, or when every attempt was cut short; what came is kept for the next
    call. Nothing is known of the content here: check it against a checksum.
    """
    network = network or Network()
    asked, part = network.resolve(address), target.with_name(f"{target.name}.part")
    reason = ""
    for attempt in range(network.attempts):
        if attempt:
            time.sleep(network.pause * 2 ** (attempt - 1))
        try:
            _attempt(asked, part, network.timeout, watch)
        except _InterruptedError as error:
            reason = str(error)
        else:
            part.replace(target)
            _notes(part).unlink(missing_ok=True)
            return
    have = part.stat().st_size if part.exists() else 0
    raise CorpusError(
        f"{asked}: {reason}, {network.attempts} times in a row; {have:,} bytes are kept: run the command again to go "
        "on, or name a mirror with --base-url"
    )


def _attempt(address: str, part: Path, timeout: float, watch: Watch | None) -> None:
    have = part.stat().st_size if part.exists() else 0
    known = _known(part) if have else None
    if known and known["length"] == have:  # all came, but the call ended before the file got its name
        return
    with _open(address, have if known else 0, part, timeout) as response:
        version = _version(response)
        resumed = response.status == 206 and known is not None and _continues(response, have, known, version)
        if response.status == 206 and not resumed:
            _forget(part)
            raise _InterruptedError("the file has changed since the transfer began")
        if not resumed:
            have = 0
            _forget(part)  # in this order: notes of the new version never stand beside bytes of an old one
            with atomic_write(_notes(part)) as stream:
                json.dump(version, stream)
        with writing(part), part.open("ab" if resumed else "wb") as stream:
            have = _copy(response, stream, have, version["length"], lambda done: _tell(watch, address, done, version))
    if version["length"] is not None and have != version["length"]:
        raise _InterruptedError(f"the connection ended after {have:,} of {version['length']:,} bytes")


def _copy(response: HTTPResponse, stream: IO[bytes], have: int, length: int | None, tell: Callable[[int], None]) -> int:
    while length is None or have < length:
        try:
            block = response.read1(BLOCK)
        except TimeoutError:
            raise _InterruptedError("the server fell silent") from None
        except (OSError, HTTPException) as error:
            raise _InterruptedError(f"the connection broke ({error or type(error).__name__})") from error
        if not block:
            break
        stream.write(block)
        have += len(block)
        tell(have)
    return have


def _open(address: str, have: int, part: Path, timeout: float) -> HTTPResponse:
    headers = {"Accept-Encoding": "identity", "User-Agent": "isoglot"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response: HTTPResponse = urlopen(Request(address, headers=headers), timeout=timeout)  # http(s) by resolve
    except HTTPError as error:
        error.close()
        if error.code == 416:  # what is there is not a beginning of what the server has now
            _forget(part)
            raise _InterruptedError("the server has no more than what is there, which is not whole") from None
        if error.code in _TEMPORARY:
            raise _InterruptedError(f"the server answered {error.code} {error.reason}") from None
        raise CorpusError(
            f"{address}: the server answered {error.code} {error.reason}; the file may have moved: get it by hand, or "
            "name a mirror with --base-url"
        ) from None
    except TimeoutError:
        raise _InterruptedError("the server did not answer in time") from None
    except (URLError, OSError, HTTPException) as error:
        raise _InterruptedError(f"no connection ({getattr(error, 'reason', None) or error})") from error
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise CorpusError(f"{address}: sent packed as {response.headers['Content-Encoding']}, unasked; name a mirror")
    return response


def _version(response: HTTPResponse) -> dict[str, Any]:
    """What tells one version of a file from another; `length` is of the whole file, None if the server is silent."""
    whole = response.headers.get("Content-Range", "").rpartition("/")[2]
    length = whole if response.status == 206 else response.headers.get("Content-Length", "")
    number = int(length) if length.isdecimal() else None
    return {"etag": response.headers.get("ETag"), "changed": response.headers.get("Last-Modified"), "length": number}


def _continues(response: HTTPResponse, have: int, known: dict[str, Any], version: dict[str, Any]) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-") and known == version


def _known(part: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(_notes(part).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict) or set(found) != {"etag", "changed", "length"}:
        return None
    # Without a validator nothing shows that the rest belongs to what is there.
    return found if found["etag"] or found["changed"] else None


def _notes(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _notes(part).unlink(missing_ok=True)


def _tell(watch: Watch | None, address: str, done: int, version: dict[str, Any]) -> None:
    if watch:
        watch(address, done, version["length"])
