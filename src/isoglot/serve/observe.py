"""Logging and metrics: a log line and an id for each request, and metrics for Prometheus. They contain no text of a
request: a path is shown as the route that answers it, `-` if there is none.
"""

from __future__ import annotations

import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from time import perf_counter
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOG = logging.getLogger("isoglot.serve")
_LINE = "%(client)s %(method)s %(route)s %(status)d %(bytes)d bytes %(milliseconds).1f ms %(request)s"
ID = "X-Request-ID"
SCOPE_KEY = "isoglot.request_id"  # of the id, in the ASGI scope
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # bounds of the histogram
_GIVEN = re.compile(r"[-.:\w]{1,64}", re.ASCII)
_METHODS = ("GET", "HEAD", "POST", "OPTIONS")


class Metrics:
    """Counts since the start; threads may share one. `gauges` are called when the metrics are requested."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._gauges = gauges
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._below: Counter[tuple[str, float]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._count: Counter[str] = Counter()
        self._texts = 0

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[route, method, status] += 1
            self._count[route] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter of floats
            for bound in SECONDS:
                self._below[route, bound] += seconds <= bound

    def encoded(self, texts: int) -> None:
        """Count texts that were encoded."""
        with self._lock:
            self._texts += texts

    def text(self) -> str:
        """All metrics in Prometheus's text format."""
        with self._lock:
            lines = _head("isoglot_requests_total", "counter", "Requests answered.")
            for (route, method, status), count in sorted(self._requests.items()):
                words = f'route="{route}",method="{method}",status="{status}"'
                lines.append(f"isoglot_requests_total{{{words}}} {count}")
            lines += _head("isoglot_request_seconds", "histogram", "Time from a request's head to its answer's end.")
            for route, count in sorted(self._count.items()):
                name, label = "isoglot_request_seconds", f'route="{route}"'
                lines += [f'{name}_bucket{{{label},le="{bound}"}} {self._below[route, bound]}' for bound in SECONDS]
                lines.append(f'{name}_bucket{{{label},le="+Inf"}} {count}')
                lines.append(f"{name}_sum{{{label}}} {self._seconds[route]:.6f}")
                lines.append(f"{name}_count{{{label}}} {count}")
            lines += _head("isoglot_texts_total", "counter", "Texts encoded, queries included.")
            lines.append(f"isoglot_texts_total {self._texts}")
        for name, (about, value) in self._gauges.items():
            lines += [*_head(name, "gauge", about), f"{name} {value():g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


class Observe:
    """Middleware that gives each request an id, logs it, and counts it.

    An id that the client sends as `X-Request-ID` is kept if it has at most 64 letters, digits and `-._:`.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - ASGI
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(ID, "")
        number = given if _GIVEN.fullmatch(given) else uuid4().hex
        scope[SCOPE_KEY] = number
        began, status, size = perf_counter(), 500, 0

        async def send_on(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[ID] = number
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        finally:  # an error is answered with 500 and logged by an outer layer
            seconds, route = perf_counter() - began, getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"] in _METHODS else "-"
            self.metrics.answered(route, method, status, seconds)
            client = (scope.get("client") or ("-",))[0]
            facts = {"client": client, "method": method, "route": route, "status": status, "bytes": size}
            facts |= {"milliseconds": 1000 * seconds, "request": number}
            LOG.info(_LINE, facts)
