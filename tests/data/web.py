"""A small web server for tests: serves bytes by path, whole or from a place on, and misbehaves as it is told."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO

from isoglot.data.sets import find
from isoglot.data.sets.catalogue import Hub


@dataclass
class Web:
    """`pages`: path -> bytes. `cut`: path -> bytes after which the connection is closed, once each. `answers`: path ->
    codes given first. `ranges`, `validator`: whether Range is honoured and an ETag sent. `extra`: bytes that the length
    announced is too large. `stall`: paths that fall silent after their headers. `trickle`: seconds between
    pieces, of which there are then twelve."""

    pages: dict[str, bytes]
    cut: dict[str, list[int]] = field(default_factory=dict)
    answers: dict[str, list[int]] = field(default_factory=dict)
    ranges: bool = True
    validator: bool = True
    length: bool = True
    extra: int = 0
    stall: set[str] = field(default_factory=set)
    trickle: float = 0
    asked: Counter[str] = field(default_factory=Counter)
    sent: list[tuple[str, int]] = field(default_factory=list)
    address: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path
        self.asked[path] += 1
        if self.answers.get(path):
            request.send_error(self.answers[path].pop(0))
            return
        if path not in self.pages:
            request.send_error(404)
            return
        page, start = self.pages[path], 0
        wanted = request.headers.get("Range")
        if wanted and self.ranges:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(page):
                request.send_error(416)
                return
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(page) - 1}/{len(page) + self.extra}")
        if self.length:
            request.send_header("Content-Length", str(len(page) - start + self.extra))
        if self.validator:
            request.send_header("ETag", f'"{hash(page)}"')
        request.end_headers()
        if path in self.stall:
            request.wfile.flush()
            self.over.wait(5)
            return
        body = page[start:]
        if self.cut.get(path):
            body = body[: self.cut[path].pop(0)]
        self.sent.append((path, len(body)))
        self.write(request.wfile, body)
        request.close_connection = True

    def write(self, stream: IO[bytes], body: bytes) -> None:
        size = len(body) // 12 + 1 if self.trickle else len(body) + 1
        for start in range(0, len(body), size):
            stream.write(body[start : start + size])
            stream.flush()
            self.over.wait(self.trickle)


@contextmanager
def serving(web: Web) -> Iterator[Web]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            web.handle(self)

        def do_POST(self) -> None:
            web.handle(self)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    web.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield web
    finally:
        web.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def pages_of(hub: Hub, files: dict[str, bytes], digest: str = "") -> dict[str, bytes]:
    """Pages of a hub that has these files; `digest` is listed instead of theirs."""
    listing = [{"type": "directory", "path": "data"}, {"type": "file", "path": "README.md"}]
    for path, text in files.items():
        content = {"size": len(text), "lfs": {"oid": digest or sha256(text).hexdigest()}}
        listing.append({"type": "file", "path": path, **content})
    where, tree = f"datasets/{hub.repository}", "/".join(filter(None, (hub.revision, hub.folder)))
    pages = {f"/huggingface.co/api/{where}/tree/{tree}?recursive=true": json.dumps(listing).encode()}
    return pages | {f"/huggingface.co/{where}/resolve/{hub.revision}/{path}": text for path, text in files.items()}


def hub_pages(name: str) -> dict[str, bytes]:
    """Pages of a hub that has the files of a set, with as many lines as the catalogue expects."""
    one = find(name)
    return pages_of(one.hub, {count.files.removesuffix("*"): b"{}\n" * count.lines for count in one.counts})
