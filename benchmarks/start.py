"""Seconds until a new process has answered: `isoglot search`, and one text encoded by isoglot and by its peer.

    python benchmarks/start.py                  # the default model
    python benchmarks/start.py --rounds 5 --model isoglot-static

The sides take turns, each in a process of its own. Printed are the medians over the rounds of processor time, user and
system, and of the clock, which on a busy machine is mostly waiting. The first round reads the files from disk and is
not counted. sentence-transformers opens the same model, written as a folder of its own format.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import isoglot

QUERY = "The weather is fine today."
ISOGLOT = "import isoglot, sys; isoglot.load(sys.argv[1]).encode([sys.argv[2]])"
PEER = (
    "import sys; from sentence_transformers import SentenceTransformer; "
    "SentenceTransformer(sys.argv[1], device='cpu').encode([sys.argv[2]])"
)


def seconds(command: list[str]) -> tuple[float, float]:
    """Processor time and time by the clock of a process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="isoglot-small")
    parser.add_argument("--rounds", type=int, default=5)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, index = Path(place, "model"), Path(place, "index")
        encoder = isoglot.load(words.model)
        encoder.save(folder)
        isoglot.Index.build(words.model, [f"Sentence number {row}." for row in range(400)], folder=index).close()
        sides = {
            "isoglot search": [sys.executable, "-m", "isoglot", "search", str(index), QUERY],
            "isoglot, one text": [sys.executable, "-c", ISOGLOT, words.model, QUERY],
            "sentence-transformers, one text": [sys.executable, "-c", PEER, str(folder), QUERY],
            "import torch": [sys.executable, "-c", "import torch"],
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for _ in range(words.rounds + 1):
            for name, command in sides.items():
                found[name].append(seconds(command))
    print(f"{'':34}{'processor s':>12}{'clock s':>10}")
    for name, runs in found.items():
        processor, clock = (statistics.median(column) for column in zip(*runs[1:], strict=True))
        print(f"{name:34}{processor:12.2f}{clock:10.2f}")


if __name__ == "__main__":
    main()
