"""Fetch one file over HTTP, safe against broken connections and files that change on the server.

Bytes go to `NAME.part`, and the ETag or date of their version to `NAME.part.version`. The next attempt, or the next
call days later, requests the rest with a Range request and appends it only if the server still has the same version. If
the server ignores the request, the download starts over. The length received must be the length announced.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from isoglot.core.errors import CorpusError
from isoglot.data.files import atomic_write, writing
from isoglot.data.sets.content import BLOCK

# Address, bytes received so far, total bytes if the server announced them.
Transfer = Callable[[str, int, int | None], None]

_TEMPORARY = {408, 425, 429, 500, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class Network:
    """How the network is used.

    mirror    mirror to download from, laid out as <mirror>/<host>/<path>, the tree that `wget --recursive` makes; empty
              for the publishers themselves
    timeout   read timeout in seconds
    attempts  maximum attempts per file. In one call, with pauses between them
    pause     seconds of the first pause; each is twice as long as the one before
    """

    mirror: str = ""
    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout <= 0 or self.pause < 0:
            raise ValueError(f"expected attempts >= 1, timeout > 0 and pause >= 0, got {self}")

    def resolve(self, address: str) -> str:
        """The address to download from: `address`, or its copy on the mirror. Raises `CorpusError` for anything but
        http and https.
        """
        parts = urlsplit(address)
        if self.mirror:
            query = f"?{parts.query}" if parts.query else ""
            address = f"{self.mirror.rstrip('/')}/{parts.netloc}{parts.path}{query}"
        if urlsplit(address).scheme not in ("http", "https"):
            raise CorpusError(f"{address}: not an http or https address; pass --base-url one that begins with http")
        return address


class _InterruptedError(Exception):
    """The transfer ended early for a temporary reason, given in the message."""


def download(address: str, target: Path, *, network: Network | None = None, progress: Transfer | None = None) -> None:
    """Fetch `address` into the file `target`, resuming from `target.part` of an earlier call.

    Raises `CorpusError` if the server rejects the request, or if every attempt was interrupted; the bytes received are
    kept for the next call. The content is not verified here: check it against a checksum.
    """
    network = network or Network()
    asked, part = network.resolve(address), target.with_name(f"{target.name}.part")
    reason = ""
    for attempt in range(network.attempts):
        if attempt:
            time.sleep(network.pause * 2 ** (attempt - 1))
        try:
            _attempt(asked, part, network.timeout, progress)
        except _InterruptedError as error:
            reason = str(error)
        except TimeoutError:
            reason = "timeout"
        except (OSError, HTTPException) as error:
            what = "no connection" if isinstance(error, URLError) else "the connection broke"
            reason = f"{what} ({getattr(error, 'reason', None) or error or type(error).__name__})"
        else:
            part.replace(target)
            _version_file(part).unlink(missing_ok=True)
            return
    have = part.stat().st_size if part.exists() else 0
    problem = f"{asked}: {reason}, {network.attempts} times in a row; {have:,} bytes are kept"
    raise CorpusError(f"{problem}: run the command again to resume, or pass a mirror with --base-url")


def _attempt(address: str, part: Path, timeout: float, progress: Transfer | None) -> None:
    version = _version_file(part).read_bytes() if part.exists() and _version_file(part).exists() else b""
    have = part.stat().st_size if version else 0
    with _open(address, have, part, timeout) as response:
        # Without a validator the rest may belong to another version of the file.
        served = (response.headers.get("ETag") or response.headers.get("Last-Modified") or "").encode()
        if response.status != 206:
            have = 0
            _forget(part)  # first, so that the new version is never that of old bytes
            with atomic_write(_version_file(part), binary=True) as stream:
                stream.write(served)
        elif served != version or not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            _forget(part)
            raise _InterruptedError("the file has changed since the transfer began")
        rest = response.headers.get("Content-Length", "")
        length = have + int(rest) if rest.isdecimal() else None
        with writing(part), part.open("ab") as stream:
            while (length is None or have < length) and (block := response.read1(BLOCK)):
                stream.write(block)
                have += len(block)
                if progress:
                    progress(address, have, length)
    if length is not None and have != length:
        raise _InterruptedError(f"the connection ended after {have:,} of {length:,} bytes")


def _open(address: str, have: int, part: Path, timeout: float) -> HTTPResponse:
    headers = {"Accept-Encoding": "identity", "User-Agent": "isoglot"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response: HTTPResponse = urlopen(Request(address, headers=headers), timeout=timeout)  # http(s) by resolve
    except HTTPError as error:
        error.close()
        if error.code == 416:  # the partial file is whole, or not a prefix of the server's current file
            _forget(part)
            raise _InterruptedError("the server cannot resume from the partial file") from None
        if error.code in _TEMPORARY:
            raise _InterruptedError(f"the server answered {error.code} {error.reason}") from None
        advice = "the file may have moved: download it manually, or pass a mirror with --base-url"
        raise CorpusError(f"{address}: the server answered {error.code} {error.reason}; {advice}") from None
    if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise CorpusError(f"{address}: unexpected Content-Encoding {encoding}; pass a mirror")
    return response


def _version_file(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)
