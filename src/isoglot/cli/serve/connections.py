"""The HTTP server: the standard library's, with bounds on everything that a client decides.

One request a connection. A fixed number of threads work, a fixed number of connections wait, others are turned away
with 503. A request must have arrived whole within a time, counted from its first byte to its last, so that a client
who sends one byte now and then holds a thread no longer than one who sends nothing. Bodies need a length and have a
greatest one. On loopback, requests that were meant for another host name are refused: a page of another site may point
its own name at this machine.
"""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from socket import AF_INET6, SHUT_WR, socket
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

from isoglot.cli.serve.replies import Problem, Reply
from isoglot.errors import IsoglotError
from isoglot.index import SearchError

Answer = Callable[[str, str, bytes], Reply]

_HEADERS = {
    "Connection": "close",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What clients may use: bytes of a body, seconds to send a request or take an answer, threads, connections."""

    body: int = 4 << 20
    seconds: float = 10.0
    threads: int = 64
    connections: int = 1024


class Server(HTTPServer):
    """Listens at once; `serve_forever` answers. Raises `SearchError` if the address cannot be had."""

    request_queue_size = 512
    allow_reuse_address = True

    def __init__(self, host: str, port: int, answer: Answer, limits: Limits) -> None:
        if ":" in host:
            self.address_family = AF_INET6
        self.answer, self.limits, self.host = answer, limits, host
        self._workers = ThreadPoolExecutor(limits.threads)
        self._places = BoundedSemaphore(limits.connections)
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise SearchError(f"{host}:{port}: cannot listen there ({error}); choose another --port") from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.server_port}/"

    def server_bind(self) -> None:
        """Bind without asking the name service who we are, as the standard library would."""
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = self.host, self.server_address[1]

    def is_meant(self, host: str | None) -> bool:
        """Whether a `Host` header names this server; anything does unless it listens on loopback only."""
        return not is_loopback(self.host) or host is None or is_loopback(_without_port(host))

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hand a connection to a thread, or turn it away."""
        if not self._places.acquire(blocking=False):
            request.setblocking(False)
            with_body = Problem(503, "Too many requests are waiting; try again later.").reply().body
            head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Length: {len(with_body)}\r\nRetry-After: 1\r\n"
            request.send(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + with_body)
            self.shutdown_request(request)
            return
        self._workers.submit(self._work, request, client_address)

    def _work(self, request: socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception:
            self.handle_error(request, client_address)
        finally:
            self.shutdown_request(request)
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - called by the base
        """A client that went away is nothing to tell."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()

    def server_close(self) -> None:
        """Stop listening and let go of what waits."""
        super().server_close()
        self._workers.shutdown(wait=False, cancel_futures=True)


class Handler(BaseHTTPRequestHandler):
    """Reads one request and sends one answer."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "isoglot", ""

    def setup(self) -> None:
        """Give the whole request one deadline."""
        super().setup()
        self.rfile.close()
        self.rfile = io.BufferedReader(_Patient(self.connection, self.server.limits.seconds))
        self.unread = False

    def do_GET(self) -> None:
        """Answer, without a body."""
        self._reply(self._answer(b""))

    def do_POST(self) -> None:
        """Answer what the body asks."""
        try:
            body = self._body()
        except Problem as problem:
            self.unread = True
            self._reply(problem.reply())
            return
        self._reply(self._answer(body))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """What the base finds wrong, in our shape."""
        self.unread = True
        self.request_version = self.protocol_version  # a request that was not understood gets a status line too
        self._reply(Problem(int(code), message or self.responses.get(code, ("This cannot be answered",))[0]).reply())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: queries are nobody's business."""

    def finish(self) -> None:
        """Take in what a refused client still sends, for a moment: to close on it would cost it our answer."""
        super().finish()
        if not self.unread:
            return
        try:
            self.connection.shutdown(SHUT_WR)
            rest, end = _Patient(self.connection, min(1.0, self.server.limits.seconds)), 2 * self.server.limits.body
            buffer = bytearray(1 << 16)
            while end > 0 and (size := rest.readinto(buffer)):
                end -= size
        except OSError:
            pass

    def _body(self) -> bytes:
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or not lengths:
            raise Problem(411, "Send the body with a Content-Length.")
        if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdigit() and len(lengths[0]) < 20):
            raise Problem(400, "Content-Length must be one whole number.")
        size = int(lengths[0])
        if size > self.server.limits.body:
            raise Problem(413, f"The body may have {self.server.limits.body} bytes; send fewer texts at once.")
        try:
            body = self.rfile.read(size)
        except TimeoutError:
            raise Problem(408, "The body did not arrive in time.") from None
        if len(body) < size:
            raise Problem(400, "The body is shorter than its Content-Length.")
        return body

    def _answer(self, body: bytes) -> Reply:
        if not self.server.is_meant(self.headers.get("Host")):
            return Problem(421, "This server answers on its own address only.").reply()
        try:
            return self.server.answer(self.command, self.path, body)
        except IsoglotError as error:
            return Problem(500, str(error)).reply()
        except Exception:
            traceback.print_exc()
            return Problem(500, "This request met a fault of the server, which has written it down.").reply()

    def _reply(self, reply: Reply) -> None:
        self.connection.settimeout(self.server.limits.seconds)  # of the whole answer: sendall counts down
        self.send_response(reply.status)
        known = {"Content-Type": reply.kind, "Content-Length": str(len(reply.body)), **_HEADERS}
        for name, value in known.items() if not reply.allow else {**known, "Allow": reply.allow}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)


class _Patient(io.RawIOBase):
    """Bytes of a socket, all of which must come before one deadline; TimeoutError after that."""

    def __init__(self, connection: socket, seconds: float) -> None:
        self._connection, self._end = connection, monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - monotonic()
        if left <= 0:
            raise TimeoutError("the request did not arrive in time")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0]
    return host.partition(":")[0]
