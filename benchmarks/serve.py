"""Requests per second of the server with isoglot's encoder, and of the same server with sentence-transformers.

Both sides are the same application on the same server, requested by the same clients with one text per request; only
the encoder differs. The clients are threads of another process. The sides alternate in rounds, so that other work on
the machine meets both. Printed for each side: requests a second, the 95th percentile of their time, and the processor
time of the server's process for a request, and how many it answers in a second of it; and what encoding the same texts
takes without a server, in slices of as many texts as there are clients. Vectors are sent as JSON numbers or as base64.

    python benchmarks/serve.py MODEL TEXTS --clients 32 --requests 400 --rounds 3
    python benchmarks/serve.py isoglot-static TEXTS --clients 64 --requests 10000 --encoding base64 --alone
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import isoglot
from isoglot.data.files import read_lines
from isoglot.data.tokens import Tokens
from isoglot.encoders.loading import expand
from isoglot.model import Model
from isoglot.serve import Limits, Server, create_app, embeddings


class Rival(Model):
    """sentence-transformers with its own batching; tokens, which the server counts, are isoglot's."""

    def __init__(self, folder: Path, own: Model) -> None:
        from sentence_transformers import SentenceTransformer

        self.model, self.own = SentenceTransformer(str(folder), device="cpu"), own
        self.dim, self.max_length = own.dim, own.max_length

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Tokens of the other side."""
        return self.own.tokenize(texts, prompt=prompt)


def encode(encoder: Model, texts: Sequence[str]) -> Any:
    """Called by the server for a slice of requests."""
    if isinstance(encoder, Rival):
        return encoder.model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    return encoder.encode(texts, normalize_embeddings=True)


def served(encoder: Model, texts: Sequence[str]) -> list[tuple[embeddings.Vector, int]]:
    """What the server encodes with: its own way, or the peer's vectors, whose tokens are not counted."""
    if isinstance(encoder, Rival):
        return [(vector, 0) for vector in encode(encoder, texts)]
    return own_way(encoder, texts)


own_way = embeddings.encode


@contextmanager
def running(encoder: Model) -> Iterator[Server]:
    """A server in a thread."""
    server = Server(create_app(encoder=encoder, name="model"), "127.0.0.1", 0, Limits())
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.should_exit = True
        thread.join()


def ask(port: int, texts: Sequence[str], clients: int, encoding: str) -> tuple[float, float]:
    """Requests per second, and the 95th percentile of their seconds, of clients that each keep one connection."""

    def client(own: Sequence[str]) -> list[float]:
        connection, taken = HTTPConnection("127.0.0.1", port, timeout=300), []
        for text in own:
            began = time.perf_counter()
            connection.request("POST", "/v1/embeddings", json.dumps({"input": text, "encoding_format": encoding}))
            reply = connection.getresponse()
            if reply.status != 200 or not reply.read():
                raise SystemExit(f"the server answered {reply.status}")
            taken.append(time.perf_counter() - began)
        connection.close()
        return taken

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        taken = [one for some in pool.map(client, [texts[at::clients] for at in range(clients)]) for one in some]
    return len(texts) / (time.perf_counter() - began), float(np.quantile(taken, 0.95))


def asked(
    outside: Executor, server: Server, texts: Sequence[str], clients: int, encoding: str
) -> tuple[float, float, float]:
    """What `ask` measures in another process, and the milliseconds of processor time of this one for a request."""
    began = time.process_time()
    rate, late = outside.submit(ask, server.port, texts, clients, encoding).result()
    return rate, late, 1000 * (time.process_time() - began) / len(texts)


def alone(encoder: Model, texts: Sequence[str], slice_of: int) -> float:
    """Milliseconds of processor time for a text, encoded without a server."""
    began = time.process_time()
    for start in range(0, len(texts), slice_of):
        served(encoder, texts[start : start + slice_of])
    return 1000 * (time.process_time() - began) / len(texts)


def main() -> None:
    """Print rates, ratios and latencies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--encoding", choices=("float", "base64"), default="float")
    parser.add_argument("--alone", action="store_true", help="without sentence-transformers")
    options = parser.parse_args()
    texts = [text for _, text in islice(read_lines(options.texts), options.requests) if text.strip()]
    embeddings.encode = served
    own = isoglot.load(options.model, device="cpu")
    sides: dict[str, Model] = {"isoglot": own}
    if not options.alone:
        folder = Path(options.model) if Path(options.model).is_dir() else expand(options.model)
        sides["sentence-transformers"] = Rival(folder, own)
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in sides}
    with ProcessPoolExecutor(1, get_context("spawn")) as outside:
        for number in range(options.rounds + 1):
            for name, encoder in sides.items():
                with running(encoder) as server:
                    measured = asked(outside, server, texts, options.clients, options.encoding)
                if number:  # the first round warms up
                    found[name].append((*measured, alone(encoder, texts, options.clients)))
    for name, rates in found.items():
        rate, late, cost, least = (statistics.median(column) for column in zip(*rates, strict=True))
        print(
            f"{name}: {rate:.1f} requests per second, 95% within {late:.2f} s, {cost:.3f} ms of processor time each "
            f"({1000 / cost:.0f} a second of it), {least:.3f} for encoding alone"
        )
    if not options.alone:
        ratios = [a[0] / b[0] for a, b in zip(*found.values(), strict=True)]
        far = float(np.abs(np.subtract(*(encode(encoder, texts[:8]) for encoder in sides.values()))).max())
        print(
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
            f"vectors differ by {far:.1e}"
        )


if __name__ == "__main__":
    main()
