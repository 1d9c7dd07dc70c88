"""A real server on localhost for the tests, and requests to it, well-formed and not."""

import json
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.client import HTTPConnection

import pytest

pytest.importorskip("faiss")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from conftest import build_tokenizer
from isoglot.encoders import StaticEncoder
from isoglot.serve import Limits, Server, create_app, embeddings
from isoglot.serve.embeddings import encode

SERVE = "import sys; from isoglot.cli.main import app; app(['serve', sys.argv[1], '--port', '0'])"


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.create(build_tokenizer(), 8, seed=1)


@contextmanager
def started(app, **limits):
    """A server in a thread of its own; give the application the same limits."""
    server = Server(app, "127.0.0.1", 0, Limits(**limits))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def limited(encoder, **limits):
    """A server of embeddings with these limits."""
    return started(create_app(encoder=encoder, limits=Limits(**limits)), **limits)


class Slow:
    """Encodes, and needs two milliseconds for each text, or as long as `hold` is not set.

    `has_work` is set once there is something to do; `seen` counts the texts that were encoded.
    """

    def __init__(self):
        self.hold, self.has_work, self.seen = threading.Event(), threading.Event(), 0
        self.hold.set()

    def __call__(self, encoder, texts):
        self.has_work.set()
        assert self.hold.wait(120)
        self.seen += len(texts)
        time.sleep(0.002 * len(texts))
        return encode(encoder, texts)


@pytest.fixture
def slow(monkeypatch):
    """What encodes, as a `Slow`."""
    encoding = Slow()
    monkeypatch.setattr(embeddings, "encode", encoding)
    yield encoding
    encoding.hold.set()


def until(is_so):
    """Wait until something is so; a failure after twenty seconds."""
    deadline = time.monotonic() + 20
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert is_so()


def ask(server, method, path, body=None, **headers):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=30)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, data, headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()
    finally:
        connection.close()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def received(connection):
    """Everything that comes until the other side closes."""
    parts = []
    with suppress(ConnectionError):
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def raw(server, data):
    """Everything that comes back for some bytes, after which the client sends no more."""
    with connect(server) as connection:
        with suppress(ConnectionError):
            connection.sendall(data)
        return received(connection)
