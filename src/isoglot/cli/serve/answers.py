"""What the server answers, whatever carries the request: a table of paths, each of which is exactly one function.

No path is ever looked up on disk. The three files of the page are read when the server starts; everything else comes
out of the index.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import unquote

import numpy as np

from isoglot.cli.serve import embeddings
from isoglot.cli.serve.batching import Batching
from isoglot.cli.serve.embeddings import Vector
from isoglot.cli.serve.replies import Problem, Reply, as_json, integer, parse, require_text
from isoglot.data.languages import canonical
from isoglot.encoders import Encoder
from isoglot.errors import CorpusError
from isoglot.index import Index
from isoglot.index.origin import encode_queries, encode_sentences
from isoglot.report.page.markup import tag

QUERY = 10_000  # characters of a query
HITS = 200  # sentences in one answer

_PAGE = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}


class Answers:
    """Answers requests about one index with one encoder, from any number of threads."""

    def __init__(self, index: Index, encoder: Encoder, *, effort: int | None = None) -> None:
        self.index, self.encoder, self.effort = index, encoder, effort
        self.model = Path(index.origin.name).name
        self.languages = index.store.languages()
        self.created = int((index.folder / "index.sqlite").stat().st_mtime)
        lock = Lock()  # one encoding at a time: each uses all cores
        self._queries = Batching(lambda texts: list(encode_queries(encoder, texts, index.origin)), lock)
        self._sentences = Batching(self._encode, lock)
        page = files("isoglot.cli.serve")
        self._files = {path: (page.joinpath(name).read_bytes(), kind) for path, (name, kind) in _PAGE.items()}
        self._routes: dict[str, tuple[str, Callable[[bytes], Reply]]] = {
            **{path: ("GET", self._file(path)) for path in _PAGE},
            "/index": ("GET", self._about),
            "/search": ("POST", self._search),
            "/v1/models": ("GET", self._models),
            "/v1/embeddings": ("POST", self._embeddings),
        }

    def __call__(self, method: str, target: str, body: bytes) -> Reply:
        """Answer one request; what goes wrong is an answer too."""
        try:
            return self._route(method, target.partition("?")[0])(body)
        except Problem as problem:
            found = problem.reply()
            allow = self._routes[target.partition("?")[0]][0] if problem.status == 405 else ""
            return Reply(found.status, found.body, found.kind, allow)

    def _route(self, method: str, path: str) -> Callable[[bytes], Reply]:
        if path not in self._routes:
            if method == "GET" and path.startswith("/v1/models/"):
                return lambda _: self._one_model(unquote(path.removeprefix("/v1/models/")))
            raise Problem(404, f"There is nothing here; known are {', '.join(self._routes)}.")
        known, answer = self._routes[path]
        if method != known:
            raise Problem(405, f"This path is for {known} only.")
        return answer

    def _file(self, path: str) -> Callable[[bytes], Reply]:
        content, kind = self._files[path]
        return lambda _: Reply(200, content, f"{kind}; charset=utf-8")

    def _about(self, _: bytes) -> Reply:
        languages = [{"code": c, "tag": tag(c), "sentences": n} for c, n in self.languages.items()]
        known = {"model": self.model, "sentences": len(self.index), "kind": self.index.kind, "languages": languages}
        return as_json(known)

    def _search(self, body: bytes) -> Reply:
        found = parse(body)
        query = require_text(found.get("query"), "query")
        if not query.strip() or len(query) > QUERY:
            raise Problem(400, f"'query' must be text of 1 to {QUERY} characters.", param="query")
        k, languages = integer(found, "k", 10, 1, HITS), self._wanted(found.get("languages"))
        vectors = np.asarray(self._queries([query]))
        (hits,) = self.index.search(vectors, k, languages=languages, effort=self.effort)
        rows = [
            {"score": hit.score, "id": hit.id, "text": hit.text, "language": hit.language, "tag": tag(hit.language)}
            for hit in hits
        ]
        return as_json({"query": query, "hits": rows})

    def _wanted(self, found: object) -> tuple[str, ...]:
        codes = [] if found is None else found
        if not isinstance(codes, list) or len(codes) > 1000 or any(not isinstance(code, str) for code in codes):
            raise Problem(400, "'languages' must be a list of language codes.", param="languages")
        try:
            return tuple(canonical(code) for code in codes)
        except CorpusError as error:
            raise Problem(400, f"'languages': {error}", param="languages") from None

    def _models(self, _: bytes) -> Reply:
        return as_json({"object": "list", "data": [self._model()]})

    def _one_model(self, name: str) -> Reply:
        if name != self.model:
            raise Problem(
                404, f"The model does not exist here; this server has '{self.model}'.", code="model_not_found"
            )
        return as_json(self._model())

    def _model(self) -> dict[str, Any]:
        return {"id": self.model, "object": "model", "created": self.created, "owned_by": "isoglot"}

    def _embeddings(self, body: bytes) -> Reply:
        request = embeddings.read(parse(body), self.model, self.index.origin.dim)
        encoded = self._sentences(request.texts)
        return embeddings.reply(request, [vector for vector, _ in encoded], sum(n for _, n in encoded), self.model)

    def _encode(self, texts: list[str]) -> list[tuple[Vector, int]]:
        lengths = self.encoder.tokenize(texts).lengths.tolist()
        return list(zip(encode_sentences(self.encoder, texts), lengths, strict=True))
