"""Estimates time, memory and cost of encoding, indexing and mining N sentences from measured rates.

    python benchmarks/scale.py                                        the rates of docs/scale.md
    python benchmarks/scale.py --encode 2000 --product 20e12 --scan 1e12 --price 3.0      others, of an accelerator say
    OMP_NUM_THREADS=1 python benchmarks/scale.py --measure news.txt   measures the rates of a core of this machine

A rate is for one worker: a core, or an accelerator. Only `--measure` measures, in processor seconds; the table is
arithmetic. The number of lists, the probes and the code of IVF-PQ are those of isoglot's own approximate mining.
"""

from __future__ import annotations

import argparse
import math
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isoglot import load
from isoglot.data.formats import read_texts
from isoglot.data.vectors import unit
from isoglot.index import Index, Origin
from isoglot.model import Model
from isoglot.search import neighbours
from isoglot.search.faiss_index import PROBES, candidates, create, factory, faiss_module, train
from measure import now

SIZES = (10**6, 10**7, 10**8, 10**9)


@dataclass(frozen=True)
class Rates:
    """One worker: sentences encoded per second, operations per second of matmuls, price per hour.

    `scan` and `scan_codes` are dimensions per second that IVF-Flat and IVF-PQ compare, `add` sentences per second that
    one process adds to an index, beside the encoding.
    """

    encode: float = 47.0
    product: float = 65e9
    scan: float = 4.1e9
    scan_codes: float = 6.2e9
    add: float = 22e3
    price: float = 0.04
    dim: int = 384
    probes: int = PROBES


@dataclass(frozen=True)
class Plan:
    """Hours of one worker, and bytes, for N sentences on each of two sides."""

    encode: float
    add: float
    exact: float
    approximate: float
    compressed: float
    vectors: float
    codes: float


def lists(n: int, dim: int) -> int:
    """Lists of an IVF index over n vectors."""
    return int(re.findall(r"IVF(\d+)", factory("ivf", n, dim))[0])


def code_bytes(n: int, dim: int) -> int:
    """Bytes of a row in an IVF-PQ index over n vectors: a byte for each part of the vector, and its number."""
    return int(re.findall(r"PQ(\d+)x8", factory("ivf-pq", n, dim))[0]) + 8


def plan(n: int, rates: Rates) -> Plan:
    """The cost of encoding both sides and finding neighbours both ways."""
    exact = 2 * n * n * rates.dim / rates.product
    # For each way: every vector and every query is compared with all centres, and a query with the lists it probes.
    centres = 2 * (2 * n * lists(n, rates.dim) * rates.dim) / rates.product
    scanned = n * rates.probes * n / lists(n, rates.dim) * rates.dim
    hours = 3600.0
    return Plan(
        encode=2 * n / rates.encode / hours,
        add=2 * n / rates.add / hours,
        exact=exact / hours,
        approximate=2 * (centres + scanned / rates.scan) / hours,
        compressed=2 * (centres + scanned / rates.scan_codes) / hours,
        vectors=2 * n * rates.dim * 2,
        codes=2 * n * code_bytes(n, rates.dim),
    )


def table(rates: Rates) -> str:
    """The plans as a Markdown table."""
    head = "| sentences per side | encode, hours | add, hours | exact, hours | IVF, hours | IVF-PQ, hours |"
    head += " vectors | codes | encode | exact | IVF | IVF-PQ |"
    lines = [head, "|---|" + "---:|" * 11]
    for n in SIZES:
        found = plan(n, rates)
        hours = [found.encode, found.exact, found.approximate, found.compressed]
        cells = [f"{n:,}", *map(number, [hours[0], found.add, *hours[1:]]), size(found.vectors), size(found.codes)]
        lines.append(f"| {' | '.join([*cells, *(number(hour * rates.price) for hour in hours)])} |")
    return "\n".join(lines)


def number(value: float) -> str:
    """Two significant digits."""
    if value <= 0:
        return "0"
    rounded = round(value, 1 - math.floor(math.log10(value)))
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def size(count: float) -> str:
    """Bytes in GB or TB."""
    return f"{number(count / 1e12)} TB" if count >= 1e12 else f"{number(count / 1e9)} GB"


def measure(texts: list[str], model: str | Model, *, rows: int = 200_000, dim: int = Rates.dim) -> dict[str, float]:
    """The rates of this process, and bytes of a row in IVF-PQ, over random vectors in clusters and given texts."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(8, rows // 100), dim), dtype=np.float32)
    vectors = centres[rng.integers(len(centres), size=rows)] + rng.standard_normal((rows, dim), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries, rates = vectors[:: max(1, rows // 4096)], dict[str, float]()

    def seconds(work: Callable[[], object]) -> float:
        began = now()
        work()
        return now().since(began).cpu

    rates["product"] = 2 * len(queries) * rows * dim / seconds(lambda: neighbours(queries, vectors, 4))
    for kind, name in (("ivf", "scan"), ("ivf-pq", "scan_codes")):
        built = create(kind, rows, dim)
        train(built, lambda drawn: vectors[drawn], rows)
        empty = faiss_module().serialize_index(built).nbytes
        built.add(vectors)
        cells = built.nlist
        spent = seconds(lambda index=built: candidates(index, queries, 16, effort=PROBES))  # type: ignore[misc]
        spent -= 2 * len(queries) * cells * dim / rates["product"]
        rates[name] = len(queries) * min(PROBES, cells) * rows / cells * dim / spent
        rates[f"bytes of a row in {kind}"] = (faiss_module().serialize_index(built).nbytes - empty) / rows
    encoder = model if isinstance(model, Model) else load(model, device="cpu")
    encoder.encode(texts[:64])
    rates["encode"] = len(texts) / seconds(lambda: encoder.encode(texts))
    with tempfile.TemporaryDirectory() as folder:
        given = [f"{text} {row}" for row, text in enumerate(texts * (1 + rows // 2 // len(texts)))]

        def encoding(origin: Origin, pieces: Iterable[list[str]]) -> Iterator[np.ndarray[Any, Any]]:
            for piece in pieces:
                yield unit(rng.standard_normal((len(piece), origin.dim), dtype=np.float32))

        made = seconds(lambda: Index.build(encoder, given, folder=Path(folder) / "index", encoding=encoding).close())
        rates["add"] = len(given) / made
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", type=Path, metavar="TEXTS", help="measure the rates, with 1,000 lines of a file")
    parser.add_argument("--model", default="multilingual-e5-small")
    for name, value in vars(Rates()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    options = vars(parser.parse_args())
    texts, model = options.pop("measure"), options.pop("model")
    if texts is None:
        print(table(Rates(**options)))
        return
    lines = [text for _, text in read_texts(texts) if text][:1000]
    for name, rate in measure(lines, model).items():
        print(f"{name}: {rate:.3g}")


if __name__ == "__main__":
    main()
