"""Two stores for an index: this project's SQLite with shards beside LanceDB (embedded), on size, kills, appends, speed.

    pip install lancedb
    python benchmarks/index_stores.py --rows 100000 --output stores.json

Every run is a fresh process. `build`: all rows in one addition; `append`: additions of `--piece` rows; `search`: the 10
nearest of single queries and of 64 at once, exact, with texts; `kill`: a process that appends is killed with
SIGKILL ten times at moments drawn with the seed, and the store is opened after each: counted are the openings that show
whole additions only and lose none that was reported as done. Sizes are those of the folder. The vectors are random.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import memory

Table = NDArray[np.float32]


class Isoglot:
    """`isoglot.Index`, flat."""

    def __init__(self, folder: Path, dim: int) -> None:
        from isoglot.index import Index, Origin

        there = Index.exists(folder)
        self.index = Index.open(folder) if there else Index.create(folder, Origin("benchmark", "0", dim))

    def add(self, first: int, vectors: Table) -> None:
        from isoglot.index import Sentence

        rows = [Sentence(f"s{row}", text_of(row), "eng") for row in range(first, first + len(vectors))]
        self.index.add_vectors(rows, vectors)

    def search(self, queries: Table) -> list[list[str]]:
        return [[hit.text for hit in hits] for hits in self.index.search(queries, 10)]

    def __len__(self) -> int:
        return len(self.index)


class Lance:
    """A LanceDB table without an index, which is searched exactly."""

    def __init__(self, folder: Path, dim: int) -> None:
        import lancedb
        import pyarrow

        database = lancedb.connect(folder)
        fields = [(name, pyarrow.string()) for name in ("id", "text", "language")]
        schema = pyarrow.schema([*fields, ("vector", pyarrow.list_(pyarrow.float32(), dim))])
        self.table = database.create_table("sentences", schema=schema, exist_ok=True)

    def add(self, first: int, vectors: Table) -> None:
        import pyarrow

        rows = range(first, first + len(vectors))
        values = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.reshape(-1)), vectors.shape[1])
        columns = [[f"s{row}" for row in rows], [text_of(row) for row in rows], ["eng"] * len(rows), values]
        self.table.add(pyarrow.table(columns, schema=self.table.schema))

    def search(self, queries: Table) -> list[list[str]]:
        found = []
        for query in queries:
            asked = self.table.search(query).distance_type("dot").select(["text", "_distance"]).limit(10)
            found.append([row["text"] for row in asked.to_list()])
        return found

    def __len__(self) -> int:
        return int(self.table.count_rows())


STORES: dict[str, Callable[[Path, int], Any]] = {"isoglot": Isoglot, "lancedb": Lance}


def text_of(row: int) -> str:
    """A sentence of some sixty characters."""
    return f"Sentence number {row} says something about the number {row * 7919 % 104729}."


def vectors_of(first: int, count: int, dim: int) -> Table:
    """Unit vectors of some rows, the same in every process."""
    table = np.random.default_rng(first).standard_normal((count, dim), np.float32)
    return np.asarray(table / np.linalg.norm(table, axis=1, keepdims=True), np.float32)


def one(task: str, store: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One task in this process; what it measured."""
    __import__({"isoglot": "isoglot.index", "lancedb": "lancedb"}[store])  # before the clock runs
    began = time.perf_counter()
    made = STORES[store](folder, options.dim)
    found: dict[str, Any] = {"open": time.perf_counter() - began}
    if task == "build":
        table, began = vectors_of(0, options.rows, options.dim), time.perf_counter()
        made.add(0, table)
        found["seconds"] = time.perf_counter() - began
    elif task == "append":
        spent = []
        for turn in range(options.appends):
            table, began = vectors_of(turn, options.piece, options.dim), time.perf_counter()
            made.add(len(made), table)
            spent.append(time.perf_counter() - began)
        found["seconds"] = statistics.median(spent)
    elif task == "endless":
        while True:
            made.add(len(made), vectors_of(0, options.piece, options.dim))
            print(len(made), flush=True)
    elif task == "search":
        queries = vectors_of(1 << 20, 64, options.dim)
        made.search(queries[:1])
        for name, some in (("single", [queries[at : at + 1] for at in range(10)]), ("batch", [queries] * 3)):
            spent = []
            for each in some:
                began = time.perf_counter()
                made.search(each)
                spent.append(time.perf_counter() - began)
            found[name] = statistics.median(spent)
        found["answers"] = made.search(queries[:5])
    return found | {"rows": len(made), "peak_mb": memory(peak=True)}


def child(task: str, store: str, folder: Path, options: argparse.Namespace) -> subprocess.Popen[str]:
    words = [f"--{name}={getattr(options, name)}" for name in ("rows", "dim", "piece", "appends")]
    command = [sys.executable, __file__, "--one", task, store, str(folder), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(task: str, store: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One task in a fresh process."""
    with child(task, store, folder, options) as process:
        assert process.stdout is not None
        out = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{store} {task} failed")
    return dict(json.loads(out.splitlines()[-1]))


def kills(store: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Kill an appending process at random moments; how often the store is as it must be afterwards."""
    moments, right = random.Random(0), 0
    for _ in range(options.kills):
        with child("endless", store, folder, options) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline()]
            time.sleep(moments.uniform(0.01, 0.4))
            os.kill(process.pid, signal.SIGKILL)
            lines += process.stdout.readlines()
        done = int([line for line in lines if line.endswith("\n")][-1])
        rows = run("look", store, folder, options)["rows"]
        right += rows >= done and rows % options.piece == 0
    return {"right": right, "of": options.kills, "rows": rows, "bytes": size_of(folder)}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--piece", type=int, default=100, help="rows of a small addition")
    parser.add_argument("--appends", type=int, default=50)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--stores", nargs="+", default=list(STORES), choices=STORES)
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    parser.add_argument("--one", nargs=3, metavar=("TASK", "STORE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one[0], options.one[1], Path(options.one[2]), options)))
        return
    figures: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as work:
        for store in options.stores:
            folder, small = Path(work) / store, Path(work) / f"{store}-small"
            figures[store] = {"build": run("build", store, folder, options), "size": size_of(folder)}
            figures[store] |= {"append": run("append", store, folder, options), "size_after": size_of(folder)}
            figures[store] |= {"search": run("search", store, folder, options), "kill": kills(store, small, options)}
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(
        "| store | build s | MB | append ms | MB after | open ms | 1 query ms | 64 queries ms | peak MB | kills right |"
    )
    print("|---|" + "---:|" * 9)
    for store, of in figures.items():
        cells = [f"{of['build']['seconds']:.1f}", f"{of['size'] / 1e6:.0f}", f"{1000 * of['append']['seconds']:.0f}"]
        cells += [f"{of['size_after'] / 1e6:.0f}", f"{1000 * of['search']['open']:.0f}"]
        cells += [f"{1000 * of['search'][name]:.0f}" for name in ("single", "batch")]
        cells += [f"{of['search']['peak_mb']:.0f}", f"{of['kill']['right']} of {of['kill']['of']}"]
        print(f"| {' | '.join([store, *cells])} |")


if __name__ == "__main__":
    main()
