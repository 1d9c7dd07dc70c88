"""Runs the application on uvicorn, with additional time limits for its connections."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import uvicorn
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from starlette.types import ASGIApp
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import SearchError
from isoglot.serve.limits import Limits
from isoglot.serve.replies import HEADERS, Problem

_BACKLOG = 2048  # connections that wait for being accepted
_AT_ONCE = 16  # accepted before those that make room are closed
_HEAD = 1 << 16  # maximum bytes of a head, and of what follows the chunks of a body
_EVERY = 10.0  # seconds between two lines of the log about connections that can't be accepted


@check_arguments()
def serve(
    app: ASGIApp,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    limits: Limits | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Run the application until Ctrl-C or SIGTERM, then finish the requests that are being answered.

    `started` is called with the address once connections are accepted. Port 0 takes a free port. Raises `SearchError`
    if the address can't be used.
    """
    server = Server(app, host, port, limits or Limits())
    with _stop_early(server):
        if started is not None:
            started(server.url)
        server.run()


class Server(uvicorn.Server):
    """Accepts connections at once; `run` answers, until `should_exit` is set. Raises `SearchError` as `serve` does."""

    def __init__(self, app: ASGIApp, host: str, port: int, limits: Limits) -> None:
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self.socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio does so only for TCP by name
        except (OSError, OverflowError, UnicodeError) as error:
            raise SearchError(f"{host}:{port}: can't listen there ({error}); try another --port or --host") from error
        self.port: int = self.socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        most_open = min(limits.connections, _open_files() // 2)
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=type("Connection", (_Connection,), {"limits": limits, "most": most_open}),
                ws="none",
                log_config=None,
                log_level="error",  # don't log what clients send
                access_log=False,
                proxy_headers=False,
                server_header=False,
                backlog=_AT_ONCE,  # asyncio's name for both: `startup` sets that of the socket again
                timeout_graceful_shutdown=limits.grace,
            )
        )

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until the server is stopped."""
        log, is_new = logging.getLogger("asyncio"), _Seldom()
        log.addFilter(is_new)
        try:
            super().run(sockets=[self.socket] if sockets is None else sockets)
        finally:
            log.removeFilter(is_new)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests under way; a second Ctrl-C ends that. Then end the application."""
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn leaves the application as it is: a thread that computes would abort the process
            await self.lifespan.shutdown()


class _Seldom(logging.Filter):
    """One line per `_EVERY` seconds where asyncio writes one for each connection that finds no free file."""

    _next = 0.0

    def filter(self, record: logging.LogRecord) -> bool:
        if "out of system resource" not in record.getMessage():
            return True
        if record.created < self._next:
            return False
        self._next = record.created + _EVERY
        return True


class _Connection(HttpToolsProtocol):
    """A connection that is closed when a request doesn't arrive, or an answer isn't taken, in time.

    uvicorn limits only the time between requests. And one connection more than the limit replaces the one
    that has been idle longest, so that idle clients never keep others out. What uvicorn's protocol stores without a
    bound has one here: heads, and requests that arrive before earlier ones are answered.
    """

    limits: Limits
    most: int  # open connections
    deadline: asyncio.TimerHandle | None = None
    unparsed: int = 0  # bytes since the last part of a request that was complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer, and close another connection if there are too many."""
        super().connection_made(transport)
        self.flow = _Flow(transport, self.pipeline)
        self._expect_before(self.limits.seconds)
        alive = [one for one in self.connections if isinstance(one, _Connection) and not one.transport.is_closing()]
        if len(alive) > self.most:  # those that are closing stay in the set until the loop's next round
            idle = [one for one in alive if one is not self and one._is_idle() and one.deadline is not None]
            min(idle, key=lambda one: one.deadline.when() if one.deadline else 0.0, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self.deadline is not None:
            self.deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has arrived; reject what is not HTTP or has too large a head."""
        self._unset_keepalive_if_required()
        self.unparsed += len(data)
        while data:
            try:
                self.parser.feed_data(data)
                break
            except HttpParserUpgrade as upgrade:
                # Nothing but HTTP/1 is spoken here, and a parser that has seen an offer ignores the body: another one
                # gets the request without the offer, which Java's clients make with every request.
                headers = b"".join(b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade")
                head = b"%s %s HTTP/1.1\r\n%s\r\n" % (self.parser.get_method(), self.url, headers)
                self.parser = HttpRequestParser(self)
                data = head + data[upgrade.args[0] :]
            except HttpParserError:
                self._refuse(_NOT_HTTP)
                return
        if self.unparsed > _HEAD:
            self._refuse(_NOT_HTTP)

    def on_headers_complete(self) -> None:
        """Start the application. The host is that of the only `Host`: an address with another one is rejected."""
        self.unparsed = 0
        size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        hosts = [name for name, _ in self.headers].count(b"host")
        required = 1 if self.parser.get_http_version() == "1.1" else 0
        if size > _HEAD or not required <= hosts <= 1 or not self.url.startswith(b"/"):
            raise HttpParserError
        if not self.parser.should_upgrade():
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass a part of the body on."""
        self.unparsed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the body."""
        self.unparsed = 0
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Restart the clock: for the client to take the answer, or to send the next request."""
        if not self.flow.write_paused:
            self._expect_before(self.limits.answer if self.transport.get_write_buffer_size() else self.limits.seconds)
        super().on_response_complete()

    def _expect_before(self, seconds: float) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
        self.deadline = self.loop.call_later(seconds, self._expire)

    def pause_writing(self) -> None:
        """Start the timer for an answer that the client doesn't take."""
        super().pause_writing()
        self._expect_before(self.limits.answer)

    def resume_writing(self) -> None:
        """The client continues to read."""
        super().resume_writing()
        self._expect_before(self.limits.seconds)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expire(self) -> None:
        if self.flow.write_paused:
            self.transport.abort()
        elif not self._is_idle():
            return  # the application limits how long a body may take, and the clock restarts with the answer
        elif self.unparsed and not self.transport.is_closing():
            self._refuse(Problem(408, "The request did not arrive in time."))
        elif self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def _refuse(self, problem: Problem) -> None:
        if self._is_idle() or not self.cycle.response_started:
            body = problem.body()
            names = {**HEADERS, "Content-Type": "application/json", "Content-Length": len(body), "Connection": "close"}
            head = "".join(f"{name}: {value}\r\n" for name, value in names.items())
            status = HTTPStatus(problem.status)
            self.transport.write(f"HTTP/1.1 {status} {status.phrase}\r\n{head}\r\n".encode() + body)
        self.transport.close()


class _Flow(FlowControl):
    """Reads nothing while requests wait for the answers to earlier ones: they would be stored without a bound."""

    def __init__(self, transport: asyncio.Transport, waiting: Collection[Any]) -> None:
        super().__init__(transport)
        self.waiting = waiting

    def resume_reading(self) -> None:
        if not self.waiting:
            super().resume_reading()


_NOT_HTTP = Problem(400, "The request is not valid HTTP, or its head is too large.")


def _open_files() -> int:
    """How many files this process may have open; a great number where the system has no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


@contextmanager
def _stop_early(server: Server) -> Iterator[None]:
    """Stop the server by signals also before uvicorn listens to them, and when it raises them again at its end.

    uvicorn then restores the previous handlers; Python's default ones would end the process with open files.
    """

    def stop(*_signal: Any) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
