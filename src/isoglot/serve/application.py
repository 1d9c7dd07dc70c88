"""The application and its routes. No path is ever looked up on disk.

The event loop only reads and writes. JSON is parsed and written in threads; encoding and search run in the one thread
of a `Worker`, for all requests together.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.resources import files
from time import time
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from isoglot.core.arguments import PositiveInt, check_arguments
from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.data.languages import canonical, tag
from isoglot.index import Hit, Index
from isoglot.index.origin import encode_queries
from isoglot.index.view import with_equal_text
from isoglot.model import Model
from isoglot.model.finding import folder_name
from isoglot.serve import embeddings
from isoglot.serve.access import Access, Token, check_host, check_origin
from isoglot.serve.bodies import Bodies
from isoglot.serve.limits import Limits
from isoglot.serve.observe import CONTENT_TYPE, ID, SCOPE_KEY, Metrics, Observe
from isoglot.serve.replies import Problem, as_json, integer, parse, reply, require_text
from isoglot.serve.work import Job, Work, Worker

Result = TypeVar("Result")
_Settings = tuple[int, tuple[str, ...], tuple[str, ...]]  # number of hits, languages, languages to exclude

_PAGE = {  # the theme is that of the pages of results
    "/": ("text/html", "serve/page.html"),
    "/page.css": ("text/css", "report/templates/theme.css", "serve/page.css"),
    "/page.js": ("text/javascript", "serve/page.js"),
}
_TINY = 4096  # bytes that are read or written at once: another thread would cost more than the work
_HIT = 256  # bytes of a hit that is written, about
_PATIENCE = 0.2  # seconds of work before it is watched whether the client goes away
_MANY = 512  # number of texts above which a request takes a place of large bodies: its answer has megabytes
_COST = 16  # cost of a text in characters, added to its length


@check_arguments()
def create_app(
    index: Index | None = None,
    encoder: Model | None = None,
    *,
    name: str | None = None,
    effort: PositiveInt | None = None,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    token: str | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """A Starlette application that answers for an index, an encoder, or both.

    index          page and search; without one there are embeddings only
    encoder        of sentences and queries; None loads the index's own model
    name           what clients call the model; None: the last part of its name or of that the index was made with, or
                   "model"
    effort         as for `Index.search`
    allow_hosts    host names that requests may be for, in addition to IP addresses, localhost and this machine's name;
                   "*": any
    allow_origins  web origins, such as "https://example.org", whose pages may make requests; "*": any
    token          what requests must send as `Authorization: Bearer TOKEN`; the files of the page, `/health` and
                   `/ready` need none; None: no request needs one
    limits         what clients may use; None: the defaults of `Limits`

    The index must stay open as long as the application is used. Raises `SearchError` if the encoder is not the one of
    the index, `ValueError` for something that is not a host or an origin, and if there is neither index nor encoder.
    """
    if index is not None:
        if encoder is None:
            encoder = index.model
        else:
            index.origin.require(encoder, "this encoder")
    if encoder is None:
        raise ValueError("pass an index, an encoder, or both")
    model = name or (folder_name(index.origin.name) if index is not None else encoder.name or "model")
    limits = limits or Limits()
    shared = _Shared(Worker(), Bodies(limits), limits)
    routes = [*_model_routes(shared, encoder, model, index), *_operator_routes(shared)]
    if index is not None:
        routes += _index_routes(shared, encoder, model, index, effort)
    hosts = [check_host(host) for host in allow_hosts]
    origins = [check_origin(origin) for origin in allow_origins]
    middleware = [Middleware(Observe, metrics=shared.metrics), Middleware(Access, hosts=hosts, origins=origins)]
    if origins:
        methods = ["GET", "POST"]
        middleware.append(Middleware(CORSMiddleware, allow_origins=origins, allow_methods=methods, allow_headers=["*"]))
    if token is not None:
        if not token.strip():
            problem = "the token is blank, which would let everybody in; pass a text that nobody can guess, or None"
            raise ValueError(f"{problem} (isoglot serve: set $ISOGLOT_SERVE_TOKEN, or unset it)")
        middleware.append(Middleware(Token, token=token.strip(), public=[*_PAGE, "/health", "/ready"]))
    handlers = dict.fromkeys((Problem, HTTPException, IsoglotError, ClientDisconnect, Exception), _on_error)
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=handlers, lifespan=shared.lifespan)
    app.router.redirect_slashes = False  # behind a proxy that ends TLS, they would redirect to http://
    return app


@dataclass
class _Shared:
    """State shared by all routes."""

    worker: Worker
    bodies: Bodies
    limits: Limits
    waiting: int = 0
    heavy: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "isoglot-large"))
    metrics: Metrics = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = Metrics(lambda: self.waiting, self.limits.requests)

    async def in_thread(self, size: int, function: Callable[..., Result], *arguments: Any) -> Result:
        """The result of the function, which reads or writes so many bytes: run at once, or in a thread.

        Large ones run one at a time, in a thread of their own. They hold Python's global lock for milliseconds, and
        every such thread delays the event loop. In the threads that all others share, those that wait for their turn
        would leave none for small requests.
        """
        if size <= min(_TINY, self.limits.small):
            return function(*arguments)
        if size > self.limits.small:
            return await asyncio.get_running_loop().run_in_executor(self.heavy, partial(function, *arguments))
        return await run_in_threadpool(function, *arguments)

    async def work(self, request: Request, work: Work, job: Job) -> list[Any]:
        """The results of a job of the worker, which is dropped if the client goes away. Raises `Problem` 503, 504."""
        if self.waiting >= self.limits.requests:
            raise Problem(503, "Too many requests are waiting; try again later.", headers={"Retry-After": "1"})
        self.waiting += 1
        future = asyncio.wrap_future(self.worker.submit(work, job.items, [len(text) + _COST for text in job.texts]))
        gone: asyncio.Future[None] | None = None
        try:
            done, _ = await asyncio.wait([future], timeout=min(_PATIENCE, self.limits.work))
            if not done:
                gone = asyncio.ensure_future(_await_disconnect(request))
                either: set[asyncio.Future[Any]] = {future, gone}
                remaining = max(0.0, self.limits.work - _PATIENCE)
                done, _ = await asyncio.wait(either, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                problem = f"The request took more than {self.limits.work:g} seconds"
                raise Problem(504, f"{problem}; send fewer texts, or try again later.")
            if not future.done():
                raise ClientDisconnect
            self.metrics.texts.inc(len(job.texts))
            return future.result()
        finally:
            self.waiting -= 1
            future.cancel()
            if gone is not None:
                gone.cancel()

    def answer(self, path: str, work: Work, read: Callable[[bytes], Job]) -> Route:
        """A route that reads a body, lets the worker do what it asks for, and writes the results."""

        async def answer(request: Request) -> Response:
            async with self.bodies.read(request) as body:
                job = await self.in_thread(len(body), read, body)
                needs_place = len(body) <= self.limits.small and len(job.texts) > _MANY
                with self.bodies.place() if needs_place else nullcontext():
                    results = await self.work(request, work, job)
                    return reply(await self.in_thread(job.size, job.write, results))

        return Route(path, answer, methods=["POST"])

    @asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """End the worker's thread with the server."""
        yield
        await run_in_threadpool(self.worker.close)


def _operator_routes(shared: _Shared) -> list[Route]:
    async def ready(_request: Request) -> Response:
        if not shared.worker.is_alive:
            raise Problem(503, "The thread of the model has ended; restart the server.")
        if shared.waiting >= shared.limits.requests:
            raise Problem(503, "Too many requests are waiting.", headers={"Retry-After": "1"})
        return reply(as_json({"status": "ready"}))

    async def metrics(_request: Request) -> Response:
        return reply(shared.metrics.text(), kind=CONTENT_TYPE)

    return [Route("/health", _always(as_json({"status": "ok"}))), Route("/ready", ready), Route("/metrics", metrics)]


def _model_routes(shared: _Shared, encoder: Model, model: str, index: Index | None) -> list[Route]:
    folder = None if index is None else index.folder
    created = int(time() if folder is None else (folder / "index.sqlite").stat().st_mtime)
    about = {"id": model, "object": "model", "created": created, "owned_by": "isoglot"}

    encode = partial(embeddings.encode, encoder)

    async def one_model(request: Request) -> Response:
        if request.path_params["name"] != model:
            message = f"The model does not exist here; this server has '{model}'."
            raise Problem(404, message, code="model_not_found")
        return reply(as_json(about))

    return [
        shared.answer("/v1/embeddings", encode, lambda body: embeddings.read(body, model, encoder.dim, shared.limits)),
        shared.answer("/similarity", encode, lambda body: embeddings.read_similarity(body, shared.limits)),
        Route("/v1/models", _always(as_json({"object": "list", "data": [about]}))),
        Route("/v1/models/{name:path}", one_model),
    ]


def _index_routes(shared: _Shared, encoder: Model, model: str, index: Index, effort: int | None) -> list[Route]:
    @lru_cache(1)
    def describe(sentences: int, kind: str, _changes: int) -> bytes:
        languages = [{"code": c, "tag": tag(c), "sentences": n} for c, n in index.languages().items()]
        return as_json({"model": model, "sentences": sentences, "kind": kind, "languages": languages})

    async def about(_request: Request) -> Response:
        state = await shared.in_thread(shared.limits.small, lambda: (len(index), index.kind, index.changes))
        return reply(await shared.in_thread(shared.limits.small, describe, *state))

    def find(searches: list[tuple[str, _Settings]]) -> list[list[Hit]]:
        """Encode all queries together; search those with equal settings together."""
        vectors = encode_queries(encoder, [query for query, _ in searches], index.origin)
        hits_of_searches: list[list[Hit]] = [[] for _ in searches]
        for settings in dict.fromkeys(settings for _, settings in searches):
            places = [place for place, search in enumerate(searches) if search[1] == settings]
            k, languages, exclude = settings
            hits = index.search(vectors[places], k, languages=languages, exclude=exclude, effort=effort)
            for place, row in zip(places, hits, strict=True):
                hits_of_searches[place] = with_equal_text(searches[place][0], row)
        return hits_of_searches

    package = files("isoglot")
    page = {
        path: ("".join(package.joinpath(name).read_text("utf-8") for name in names).encode(), f"{kind}; charset=utf-8")
        for path, (kind, *names) in _PAGE.items()
    }
    return [
        *(Route(path, _always(*answer)) for path, answer in page.items()),
        Route("/index", about),
        shared.answer("/search", find, lambda body: _read_search(body, shared.limits)),
    ]


def _read_search(body: bytes, limits: Limits) -> Job:
    request = parse(body, ("query", "k", "languages", "exclude"))
    query = require_text(request.get("query"), "query", limits.query)
    if not query.strip():
        raise Problem(400, "'query' is blank; send a text to search for.", param="query")
    languages, exclude = (_codes(request, name) for name in ("languages", "exclude"))
    k = integer(request, "k", 10, 1, limits.hits)

    def write(results: list[Any]) -> bytes:
        (hits,) = results  # of the only query
        return as_json({"query": query, "hits": [_row(hit) for hit in hits]})

    return Job([(query, (k, languages, exclude))], [query], k * _HIT, write)


def _codes(request: Mapping[str, Any], name: str) -> tuple[str, ...]:
    codes = [] if request.get(name) is None else request[name]
    if not isinstance(codes, list) or len(codes) > 1000 or any(not isinstance(code, str) for code in codes):
        raise Problem(400, f"'{name}' must be a list of language codes.", param=name)
    try:
        return tuple(sorted({canonical(code) for code in codes}))
    except CorpusError as error:
        raise Problem(400, f"'{name}': {error}", param=name) from None


def _row(hit: Hit) -> dict[str, Any]:
    row = {"score": hit.score, "percent": hit.percent, "id": hit.id, "count": hit.count}
    row |= {"text": hit.text, "language": hit.language, "tag": tag(hit.language)}
    if hit.translation is None:
        return {**row, "translation": None}
    code = hit.translation_language
    return {**row, "translation": {"text": hit.translation, "language": code, "tag": tag(code)}}


def _always(body: bytes, kind: str = "application/json") -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return reply(body, kind=kind)

    return answer


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _on_error(request: Request, error: Exception) -> Response:
    """The answer to an error; Starlette logs those of unknown classes, and answers them outside of all middleware."""
    if isinstance(error, Problem):
        return error.response()
    if isinstance(error, HTTPException):
        words = {404: "Not found.", 405: "This path does not take that method."}.get(error.status_code, error.detail)
        return Problem(error.status_code, words, headers=error.headers).response()
    if isinstance(error, ClientDisconnect):
        return Problem(400, "The request is incomplete.").response()
    if isinstance(error, IsoglotError):
        return Problem(500, str(error)).response()
    headers = {ID: request.scope[SCOPE_KEY]} if SCOPE_KEY in request.scope else {}
    return Problem(500, "Internal server error; see the log of the server.", headers=headers).response()
