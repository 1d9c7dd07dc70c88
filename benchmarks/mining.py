"""Exact mining beside FAISS: neighbours both ways, in fresh processes that take turns.

    python benchmarks/mining.py --size 50000 --rounds 5 --output mining.json

Every run maps the same two tables of random unit vectors and finds the k nearest both ways: isoglot by `neighbours`,
faiss by two searches in two flat indexes, product by the multiplication alone, block by block as isoglot does it: the
rate of the machine. Told are medians over the rounds, ratios to isoglot within a round, the share of the machine's
rate, and peak memory. That all found the same is checked. With --bfloat16 the product in bfloat16 takes part, and the
share of its pairs that are those of float32 is told.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import fresh, memory, now

Table = NDArray[np.float32]
Found = tuple[NDArray[np.int64], NDArray[np.int64]]


def with_isoglot(x: Table, y: Table, k: int) -> Found:
    from isoglot.search import neighbours

    found = neighbours(x, y, k, metric="cosine")
    return found.forward_ids, found.backward_ids


def with_bfloat16(x: Table, y: Table, k: int) -> Found:
    from isoglot.cli.product import bfloat16
    from isoglot.search import neighbours

    found = neighbours(x, y, k, metric="cosine", product=bfloat16)
    return found.forward_ids, found.backward_ids


def with_faiss(x: Table, y: Table, k: int) -> Found:
    import faiss

    sides = []
    for queries, rows in ((x, y), (y, x)):
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(np.ascontiguousarray(rows))
        sides.append(index.search(np.ascontiguousarray(queries), k)[1])
    return sides[0], sides[1]


def with_product(x: Table, y: Table, k: int) -> Found:
    out = np.empty((2048, 4096), np.float32)
    for j in range(0, len(y), 4096):
        columns = np.array(y[j : j + 4096])
        for i in range(0, len(x), 2048):
            rows = np.array(x[i : i + 2048])
            np.matmul(rows, columns.T, out=out[: len(rows), : len(columns)])
    return np.empty((0, k), np.int64), np.empty((0, k), np.int64)


SIDES: dict[str, Callable[[Table, Table, int], Found]] = {
    "isoglot": with_isoglot,
    "faiss": with_faiss,
    "product": with_product,
    "bfloat16": with_bfloat16,
}
IMPORTS = {"faiss": ("faiss",), "bfloat16": ("torch", "isoglot.search")}


def one(side: str, work: Path, k: int) -> None:
    """One run in this process: what it measured goes to a file."""
    for name in IMPORTS.get(side, ("isoglot.search",)):  # before the clock runs
        __import__(name)
    x, y = (np.load(work / f"{name}.npy", mmap_mode="r") for name in "xy")
    before, began = memory(), now()
    found = SIDES[side](x, y, k)
    spent = now().since(began)
    for name, ids in zip(("forward", "backward"), found, strict=True):
        np.save(work / f"{side}.{name}.npy", ids)
    values = {"wall": spent.wall, "cpu": spent.cpu, "before": before, "peak": memory(peak=True)}
    (work / "result.json").write_text(json.dumps(values), encoding="utf-8")


def make(work: Path, size: int, dim: int, seed: int) -> None:
    """Two tables of unit vectors, half of whose rows have a translation."""
    rng = np.random.default_rng(seed)
    for name in "xy":
        table = np.lib.format.open_memmap(work / f"{name}.npy", mode="w+", dtype=np.float32, shape=(size, dim))
        for start in range(0, size, 8192):
            part = rng.standard_normal((min(8192, size - start), dim), np.float32)
            if name == "y":
                half = len(part) // 2
                part[:half] = (
                    0.6 * part[:half] + np.load(work / "x.npy", mmap_mode="r")[start : start + half] * dim**0.5
                )
            table[start : start + len(part)] = part / np.linalg.norm(part, axis=1, keepdims=True)
        table.flush()


def agreement(work: Path, side: str) -> float:
    """Share of the neighbours of isoglot, both ways, that the other side gives in the same place."""
    parts = [
        (np.load(work / f"isoglot.{name}.npy") == np.load(work / f"{side}.{name}.npy")).mean()
        for name in ("forward", "backward")
    ]
    return float(np.mean(parts))


def summary(runs: dict[str, list[dict[str, Any]]], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Medians, ratios within a round, and shares of the machine's rate, by side."""
    table: dict[str, Any] = {}
    operations = 2 * options.size**2 * options.dim
    for side, values in runs.items():
        walls = [value["wall"] for value in values]
        ratios = [wall / ours["wall"] for wall, ours in zip(walls, runs["isoglot"], strict=True)]
        shares = [alone["wall"] / wall for wall, alone in zip(walls, runs["product"], strict=True)]
        table[side] = {
            "wall": statistics.median(walls),
            "cpu": statistics.median(value["cpu"] for value in values),
            "times_isoglot": statistics.median(ratios),
            "share_of_rate": statistics.median(shares),
            "gflops": operations / statistics.median(walls) / 1e9,
            "peak_mb": max(value["peak"] for value in values),
        }
        if side != "product":
            table[side]["same_neighbours"] = agreement(work, side)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=50_000, help="rows of each table")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--bfloat16", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "WORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]), options.k)
        return
    sides = [side for side in SIDES if side != "bfloat16" or options.bfloat16]
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        make(work, options.size, options.dim, options.seed)
        for turn in range(options.rounds):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                words = ["--one", side, folder, "-k", str(options.k)]
                runs[side].append(fresh(Path(__file__), words, result=work / "result.json", environment=threads))
                sys.stderr.write(f"round {turn + 1}, {side}: {runs[side][-1]['wall']:.2f} s\n")
        found = {
            "options": {**vars(options), "output": None, "one": None},
            "sides": summary(runs, work, options),
            "runs": runs,
        }
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    json.dump(found["sides"], sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
