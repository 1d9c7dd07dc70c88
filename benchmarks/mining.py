"""Exact mining compared with FAISS: neighbours both ways, in fresh processes that alternate.

    python benchmarks/mining.py --size 50000 --rounds 5 --output mining.json
    python benchmarks/mining.py --size 200000 --rounds 1 --sides isoglot float16

Every run maps the same two tables of random unit vectors and finds the k nearest both ways: isoglot by `neighbours`,
float16 as well, with the tables in half precision, faiss by two searches in two flat indexes, product by the
multiplication alone, block by block as isoglot does it: the rate of the machine. The table has medians over the rounds,
`x faiss`, how many times as fast as faiss within a round, the share of the machine's rate that one product of all rows
would reach, peak memory with imports, the share of the neighbours of isoglot in float32 that a side gives in the same
place, and the share of the pairs mined from them (ratio margin, both directions, best first) that are mined from the
side's; nan where a side was left out. Half of the rows have a translation. `million.py` is for tables that take hours.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from measure import fresh, keep, memory, now

Table = NDArray[np.float32]
Found = tuple[NDArray[Any], ...]  # scores and ids forward, scores and ids backward
PARTS = ("forward_scores", "forward_ids", "backward_scores", "backward_ids")


def with_isoglot(x: Table, y: Table, k: int) -> Found:
    from isoglot.search import neighbours

    return neighbours(x, y, k, metric="cosine")


def with_faiss(x: Table, y: Table, k: int) -> Found:
    import faiss

    found: list[NDArray[Any]] = []
    for queries, rows in ((x, y), (y, x)):
        index = faiss.IndexFlatIP(rows.shape[1])
        index.add(np.ascontiguousarray(rows))
        found += index.search(np.ascontiguousarray(queries), k)
    return tuple(found)


def with_product(x: Table, y: Table, k: int) -> Found:  # noqa: ARG001 - all sides are called alike
    out = np.empty((2048, 4096), np.float32)
    for j in range(0, len(y), 4096):
        columns = np.array(y[j : j + 4096])
        for i in range(0, len(x), 2048):
            rows = np.array(x[i : i + 2048])
            np.matmul(rows, columns.T, out=out[: len(rows), : len(columns)])
    return ()


SIDES: dict[str, Callable[[Table, Table, int], Found]] = {
    "isoglot": with_isoglot,
    "float16": with_isoglot,
    "faiss": with_faiss,
    "product": with_product,
}
IMPORTS = {"faiss": ("faiss",)}


def one(side: str, work: Path, k: int) -> None:
    """One run in this process: what it measured goes to a file."""
    for name in IMPORTS.get(side, ("isoglot.search",)):  # before the clock runs
        __import__(name)
    ending = "16.npy" if side == "float16" else ".npy"
    x, y = (np.load(work / f"{name}{ending}", mmap_mode="r") for name in "xy")
    before, began = memory(), now()
    found = SIDES[side](x, y, k)
    spent = now().since(began)
    for name, part in zip(PARTS, found, strict=False):
        np.save(work / f"{side}.{name}.npy", part)
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
        np.save(work / f"{name}16.npy", table.astype(np.float16))


def agreement(work: Path, side: str) -> dict[str, float]:
    """Shares of the neighbours of isoglot, both ways, and of the pairs mined from them, that another side has."""
    from isoglot.search import Neighbours, choose

    ours, other = (Neighbours(*(np.load(work / f"{name}.{part}.npy") for part in PARTS)) for name in ("isoglot", side))
    same = [(ours.forward_ids == other.forward_ids).mean(), (ours.backward_ids == other.backward_ids).mean()]
    pairs, others = (
        {*zip(chosen.source.tolist(), chosen.target.tolist(), strict=True)} for chosen in map(choose, (ours, other))
    )
    return {"same_neighbours": float(np.mean(same)), "same_pairs": len(pairs & others) / len(pairs)}


def summary(runs: dict[str, list[dict[str, Any]]], work: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Medians, ratios within a round, and shares of the machine's rate, by side."""
    figures: dict[str, Any] = {}
    operations = 2 * options.size**2 * options.dim
    for side, values in runs.items():
        walls = [value["wall"] for value in values]
        figures[side] = {
            "wall": statistics.median(walls),
            "cpu": statistics.median(value["cpu"] for value in values),
            "times_faiss": ratio(runs.get("faiss"), values, "wall"),
            "times_faiss_cpu": ratio(runs.get("faiss"), values, "cpu"),
            "share_of_rate": ratio(runs.get("product"), values, "wall"),
            "gflops": operations / statistics.median(walls) / 1e9,
            "peak_mb": max(value["peak"] for value in values),
            "before_mb": max(value["before"] for value in values),
        }
        if side != "product":
            figures[side] |= agreement(work, side)
    return figures


def ratio(base: list[dict[str, Any]] | None, own: list[dict[str, Any]], name: str) -> float:
    """How many times as fast as the base, the median over the rounds; NaN without a base."""
    if base is None:
        return math.nan
    return float(statistics.median(one[name] / other[name] for one, other in zip(base, own, strict=True)))


def table(sides: dict[str, Any], options: argparse.Namespace) -> str:
    """The summary as Markdown."""
    head = f"{options.size:,} x {options.size:,} | s | processor s | x faiss (wall) | (cpu) | Gflop/s"
    lines = [
        f"| {head} | share of the machine's rate | peak MB | same neighbours | same pairs |",
        "|---|" + "---:|" * 9,
    ]
    for side, of in sides.items():
        cells = [side, *(f"{of[name]:.2f}" for name in ("wall", "cpu", "times_faiss", "times_faiss_cpu"))]
        cells += [f"{of['gflops']:.0f}", f"{of['share_of_rate']:.2f}", f"{of['peak_mb']:.0f}"]
        cells += [f"{of[name]:.6f}" if name in of else "" for name in ("same_neighbours", "same_pairs")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=50_000, help="rows of each table")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON file for the summary and every run")
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "WORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]), options.k)
        return
    sides = options.sides
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
        sides_told = summary(runs, work, options)
    keep(options, sides_told, runs)
    print(table(sides_told, options))


if __name__ == "__main__":
    main()
