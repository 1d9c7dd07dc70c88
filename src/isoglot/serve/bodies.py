"""Reads request bodies with bounds on their size, time and total memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager

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
        chunks, body = request.stream(), bytearray()
        with ExitStack() as places:
            try:
                try:
                    with fail_after(self.limits.seconds):
                        await self._receive(request, chunks, body, places)
                except TimeoutError:
                    raise Problem(408, "The body did not arrive in time.", headers=CLOSE) from None
                except Problem:
                    body.clear()
                    # A client that asks first sends nothing until the first read: there is nothing to discard.
                    if "expect" not in request.headers:
                        await self._discard(chunks)
                    raise
                yield bytes(body)
            except asyncio.CancelledError:
                raise Problem(503, "The server is shutting down.") from None

    async def _receive(
        self, request: Request, chunks: AsyncIterator[bytes], body: bytearray, places: ExitStack
    ) -> None:
        """Read the body, which takes a place as soon as it is known to be large."""
        length = request.headers.get("content-length", "")
        declared = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
        is_large = False
        while True:
            size = max(declared, len(body))
            if size > self.limits.body:
                problem = f"The body may have {self.limits.body} bytes; send fewer texts at once."
                raise Problem(413, problem, headers=CLOSE)
            if size > self.limits.small and not is_large:
                places.enter_context(self.place("read", CLOSE))
                is_large = True
            chunk = await anext(chunks, None)
            if chunk is None:
                return
            body += chunk

    @contextmanager
    def place(self, step: str = "answered", headers: Mapping[str, str] | None = None) -> Iterator[None]:
        """A place for a large body, or for a small one whose answer is large. Raises `Problem` 503."""
        if self._large >= self.limits.large:
            problem = f"Too many large requests are being {step}; try again later."
            raise Problem(503, problem, headers={**(headers or {}), "Retry-After": "1"})
        self._large += 1
        try:
            yield
        finally:
            self._large -= 1

    async def _discard(self, chunks: AsyncIterator[bytes]) -> None:
        """Read what a rejected client still sends, up to a bound: if the connection were closed, it would not get the
        response.
        """
        allowance = 4 * self.limits.body
        with move_on_after(min(2.0, self.limits.seconds)):
            async for chunk in chunks:
                allowance -= len(chunk)
                if allowance < 0:
                    return
