"""One million by one million, exact: memory and time from the first stripes of the search, which else takes hours.

    python benchmarks/million.py --output million.json            a million rows on either side, three stripes
    python benchmarks/million.py --size 30000 --stripes 0         all of a small search: how good the estimate is

Two memory-mapped tables of random unit vectors, and the very search that mines them all, `neighbours`, stopped by its
own report of progress once some stripes are done: a stripe is 4,096 rows of one table against all rows of the other.
The estimate is the median time of the last full stripe, over the rounds, times the number of stripes: what the first
one does beyond the others, filling empty lists of neighbours, is left out, and that later ones do less, since ever
fewer candidates beat the known ones, is not counted on. In turns with it, `product`: the product of one stripe alone.
With `--stripes 0`, the time of the whole search stands beside the estimate.

Memory is reported in two parts: what the process holds for itself, imports and results included, at its highest
(sampled at every tile), and the files it maps, which the system may drop when it needs room. Their sum is the most it
can come to.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from measure import STATUS, fresh, keep, memory, now
from mining import make, with_product

STRIPE, TILE = 4096, 2048


class EnoughError(Exception):
    """The requested stripes are done."""


def own() -> float:
    """Memory of this process without the files it maps, in MB; where Linux is not, all of it."""
    if not STATUS.exists():
        return memory()
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024 / 1e6


def one(side: str, work: Path, k: int, stripes: int) -> None:
    """One run in this process: the times of the stripes go to a file."""
    from isoglot.search import neighbours

    x, y = (np.load(work / f"{name}.npy", mmap_mode="r") for name in "xy")
    tall, ends, held = -(-len(x) // TILE), [now().wall], [own()]

    def watch(done: int, _total: int | None) -> None:
        held.append(own())
        if done % tall == 0:  # a stripe is done; the next one's first products are being made, as ever
            ends.append(now().wall)
        if done == stripes * tall:
            raise EnoughError

    if side == "product":
        with_product(x, y[:STRIPE], k)
        ends.append(now().wall)
    else:
        with contextlib.suppress(EnoughError):
            neighbours(x, y, k, metric="cosine", progress=watch)
    values = {"stripes": np.diff(ends).tolist(), "own": max(held), "peak": memory(peak=True)}
    (work / "result.json").write_text(json.dumps(values), encoding="utf-8")


def summary(runs: dict[str, list[dict[str, Any]]], options: argparse.Namespace) -> dict[str, Any]:
    """Hours and memory of the whole search, by side."""
    full = options.size // STRIPE
    mapped = 2 * options.size * options.dim * 4 / 1e6
    alone = statistics.median(run["stripes"][0] for run in runs["product"])
    figures: dict[str, Any] = {}
    for side, values in runs.items():
        last = statistics.median(run["stripes"][:full][-1] for run in values)
        held = max(run["own"] for run in values)
        figures[side] = {
            "stripe_s": last,
            "first_stripe_s": statistics.median(run["stripes"][0] for run in values),
            "measured_hours": statistics.median(sum(run["stripes"]) for run in values) / 3600
            if options.stripes == 0 and side != "product"
            else None,
            "hours": last * options.size / STRIPE / 3600,
            "gflops": 2 * STRIPE * options.size * options.dim / last / 1e9,
            "share_of_rate": alone / last,
            "own_mb": held,
            "mapped_mb": mapped,
            "at_most_mb": held + mapped,
            "peak_mb": max(run["peak"] for run in values),
        }
    return figures


def table(sides: dict[str, Any], options: argparse.Namespace) -> str:
    """The summary as Markdown."""
    head = "stripe, s | first, s | Gflop/s | share of the machine's rate | all, hours | measured | own MB | mapped MB"
    lines = [
        f"| {options.size:,} x {options.size:,} | {head} | at most MB | measured peak MB |",
        "|---|" + "---:|" * 10,
    ]
    for side, of in sides.items():
        cells = [side, f"{of['stripe_s']:.2f}", f"{of['first_stripe_s']:.2f}", f"{of['gflops']:.0f}"]
        cells += [f"{of['share_of_rate']:.2f}", f"{of['hours']:.3g}"]
        cells.append("" if of["measured_hours"] is None else f"{of['measured_hours']:.3g}")
        cells += [f"{of[name]:.0f}" for name in ("own_mb", "mapped_mb", "at_most_mb", "peak_mb")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1_000_000, help="rows of each table")
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("-k", type=int, default=4)
    parser.add_argument("--stripes", type=int, default=3, help="how many to run; 0 for all")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", type=Path, help="JSON file for the summary and every run")
    parser.add_argument("--one", nargs=2, metavar=("SIDE", "WORK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]), options.k, options.stripes)
        return
    if options.size < STRIPE:
        parser.error(f"--size: a stripe has {STRIPE} rows; pass at least as many, not {options.size}")
    sides = ["isoglot", "product"]
    runs: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), options.size, options.dim, 0)
        for turn in range(options.rounds):
            for side in sides if turn % 2 == 0 else sides[::-1]:
                words = ["--one", side, folder, "-k", str(options.k), "--stripes", str(options.stripes)]
                figures = fresh(Path(__file__), words, result=Path(folder) / "result.json", environment=threads)
                runs[side].append(figures)
                sys.stderr.write(f"round {turn + 1}, {side}: {figures['stripes'][-1]:.2f} s for its last stripe\n")
    found = summary(runs, options)
    keep(options, found, runs)
    print(table(found, options))


if __name__ == "__main__":
    main()
