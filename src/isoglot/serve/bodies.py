"""Reads request bodies with bounds on their size, time and total memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from anyio import fail_after, move_on_after
from starlette.requests import Request

from isoglot.serve.limits import Limits
from isoglot.serve.replies import CLOSE, Problem


class Bodies:
    """Reads bodies. Those of more than `Limits.small` bytes, and requests of many texts, share a number of places."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._large = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The body, whose place is kept until the block ends. Raises `Problem` 408, 413 or 503.

        A stop of the server cancels what the block waits for: that is a `Problem` 503 too.
        """
        body = _Body(request, self.limits)
        large = False
        try:
            try:
                with fail_after(self.limits.seconds):
                    await body.collect(self.limits.small)
                if not body.complete:
                    if self._large >= self.limits.large:
                        await body.discard()
                        headers = {**CLOSE, "Retry-After": "1"}
                        raise Problem(503, "Too many large requests are being read; try again later.", headers=headers)
                    large = True
                    self._large += 1
                    with fail_after(self.limits.seconds):
                        await body.collect(self.limits.body)
            except TimeoutError:
                raise Problem(408, "The body did not arrive in time.", headers=CLOSE) from None
            if not body.complete:
                await body.discard()
                raise Problem(
                    413, f"The body may have {self.limits.body} bytes; send fewer texts at once.", headers=CLOSE
                )
            yield bytes(body.kept)
        except asyncio.CancelledError:
            raise Problem(503, "The server is shutting down.") from None
        finally:
            self._large -= large

    @contextmanager
    def place(self, needed: bool) -> Iterator[None]:
        """A place, if needed, for a small body whose answer is large. Raises `Problem` 503."""
        if needed and self._large >= self.limits.large:
            problem = "Too many large requests are being answered; try again later."
            raise Problem(503, problem, headers={"Retry-After": "1"})
        self._large += needed
        try:
            yield
        finally:
            self._large -= needed


class _Body:
    def __init__(self, request: Request, limits: Limits) -> None:
        self._chunks, self._limits = request.stream(), limits
        length = request.headers.get("content-length", "")
        self._declared = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
        # Such a client sends nothing until the first read, so it can be rejected without reading anything.
        self._waits = "expect" in request.headers
        self.kept, self.complete = bytearray(), False

    async def collect(self, limit: int) -> None:
        """Read on until the body is complete or known to have more bytes than the limit."""
        if self._declared > limit:
            return
        while len(self.kept) <= limit:
            chunk = await anext(self._chunks, None)
            if chunk is None:
                self.complete = True
                return
            self.kept += chunk

    async def discard(self) -> None:
        """Read what a rejected client still sends, up to a bound: if the connection were closed, it would not get the
        response.
        """
        if self._waits:
            return
        left = 4 * self._limits.body

        async def drain() -> None:
            nonlocal left
            async for chunk in self._chunks:
                left -= len(chunk)
                if left < 0:
                    return

        self.kept.clear()
        with move_on_after(min(2.0, self._limits.seconds)):
            await drain()
