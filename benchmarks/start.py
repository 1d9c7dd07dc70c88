"""Seconds until a new process has answered: `isoglot search`, and one text encoded by isoglot and by its peer.

    python benchmarks/start.py                  # the default model
    python benchmarks/start.py --model isoglot-static --rounds 5
    python benchmarks/start.py --python CORE/bin/python --peers PEERS/bin/python

`--python` runs isoglot, for example in an environment without torch; `--peers` runs sentence-transformers, which opens
the same weights as a folder of its own format, in float32. What an environment lacks is left out. The sides take turns,
each in a process of its own. Printed are the medians over the rounds of processor time, user and system, and of the
clock, which on a busy machine is mostly waiting. The first round reads the files from disk and is not counted.
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
SENTENCE_TRANSFORMERS = (
    "import sys; from sentence_transformers import SentenceTransformer; "
    "SentenceTransformer(sys.argv[1], device='cpu').encode([sys.argv[2]])"
)


def seconds(command: list[str]) -> tuple[float, float]:
    """Processor time and time by the clock of a process."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    clock, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, clock


def has(python: str, package: str) -> bool:
    """Whether the environment of a Python has a package."""
    code = "import sys, importlib.util as util; sys.exit(util.find_spec(sys.argv[1]) is None)"
    return subprocess.run([python, "-c", code, package], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="isoglot-base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="runs isoglot")
    parser.add_argument("--peers", default=sys.executable, help="runs sentence-transformers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, index = Path(place, "model"), Path(place, "index")
        model = isoglot.load(options.model)
        model.save(folder)
        isoglot.Index.build(model, [f"Sentence number {row}." for row in range(400)], folder=index).close()
        sides = {
            "isoglot search": [options.python, "-m", "isoglot", "search", str(index), QUERY],
            "isoglot, one text": [options.python, "-c", ISOGLOT, options.model, QUERY],
        }
        if has(options.peers, "sentence_transformers"):
            sides["sentence-transformers, one text"] = [
                options.peers, "-c", SENTENCE_TRANSFORMERS, str(folder), QUERY,
            ]  # fmt: skip
        if has(options.peers, "torch"):
            sides["import torch"] = [options.peers, "-c", "import torch"]
        runs: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for _ in range(options.rounds + 1):
            for name, command in sides.items():
                runs[name].append(seconds(command))
    print("| | processor s | clock s |\n|---|---:|---:|")
    for name, figures in runs.items():
        processor, clock = (statistics.median(column) for column in zip(*figures[1:], strict=True))
        print(f"| {name} | {processor:.2f} | {clock:.2f} |")


if __name__ == "__main__":
    main()
