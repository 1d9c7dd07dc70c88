"""Logging and metrics: a log line and an id for each request, and metrics for Prometheus. They contain no text of a
request: a path is shown as the route that answers it, `-` if there is none.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
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
    """Counts since the start, in a registry of their own. `waiting` is called when the metrics are requested."""

    def __init__(self, waiting: Callable[[], int], most_waiting: int) -> None:
        self.registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter("isoglot_requests", "Requests answered.", labels, registry=self.registry)
        about = "Time from a request's head to its answer's end."
        self._seconds = Histogram("isoglot_request_seconds", about, ["route"], buckets=SECONDS, registry=self.registry)
        self.texts = Counter("isoglot_texts", "Texts encoded, queries included.", registry=self.registry)
        about = "Requests that wait for the model."
        Gauge("isoglot_waiting_requests", about, registry=self.registry).set_function(waiting)
        Gauge("isoglot_waiting_requests_limit", "Further requests get 503.", registry=self.registry).set(most_waiting)

    def count_answer(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests.labels(route, method, status).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus's text format."""
        return generate_latest(self.registry)


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
        client_id = Headers(scope=scope).get(ID, "")
        number = client_id if _GIVEN.fullmatch(client_id) else f"{random.getrandbits(128):032x}"
        scope[SCOPE_KEY] = number
        began, status, size = perf_counter(), 500, 0

        async def send_on(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).append(ID, number)
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_on)
        finally:  # an error is answered with 500 and logged by an outer layer
            seconds, route = perf_counter() - began, getattr(scope.get("route"), "path", "-")
            method = scope["method"] if scope["method"] in _METHODS else "-"
            self.metrics.count_answer(route, method, status, seconds)
            client = (scope.get("client") or ("-",))[0]
            facts = {"client": client, "method": method, "route": route, "status": status, "bytes": size}
            facts |= {"milliseconds": 1000 * seconds, "request": number}
            LOG.info(_LINE, facts)
