"""Seconds and memory until a new process has answered: `isoglot search`, and one text encoded by isoglot and by peers.

    python benchmarks/start.py                  # the default model
    python benchmarks/start.py --model isoglot-static --rounds 5
    python benchmarks/start.py --python CORE/bin/python --peers PEERS/bin/python

`--python` runs isoglot, for example in an environment without torch; `--peers` runs sentence-transformers and
FastEmbed. What an environment lacks is left out. The sides take turns, each in a process of its own, and open the same
weights:
sentence-transformers as a folder of its own format in float32, FastEmbed as the graph that isoglot exports.
Printed are the medians over the rounds of processor time, user and system, of the clock, which on a busy machine is
mostly waiting, and of the greatest resident memory in MB. The first round reads the files from disk and is not counted.
"""

from __future__ import annotations

import argparse
import os
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
FASTEMBED = """
import sys
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType
description = {"dim": 384, "model_file": "onnx/model_quantized.onnx", "sources": ModelSource(hf="m/m")}
TextEmbedding.add_custom_model("m", pooling=PoolingType.MEAN, normalization=True, **description)
list(TextEmbedding("m", specific_model_path=sys.argv[1]).embed([sys.argv[2]]))
"""


def measure(command: list[str]) -> tuple[float, float, float]:
    """Processor seconds, seconds by the clock, and the peak of memory in MB of a process. Raises if it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    _, status, used = os.wait4(process.pid, 0)
    clock = time.perf_counter() - start
    if status:
        raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(status), command)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    return used.ru_utime + used.ru_stime, clock, used.ru_maxrss * unit / 1e6


def has(python: str, package: str) -> bool:
    """Whether the environment of a Python has a package."""
    code = "import sys, importlib.util as util; sys.exit(util.find_spec(sys.argv[1]) is None)"
    return subprocess.run([python, "-c", code, package], check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="isoglot-base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="runs isoglot")
    parser.add_argument("--peers", default=sys.executable, help="runs sentence-transformers and FastEmbed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, exported, index = Path(place, "model"), Path(place, "exported"), Path(place, "index")
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
        if has(options.peers, "fastembed") and model.settle(None) != "float32":
            model.trainable().save(exported, weights="onnx")
            sides["FastEmbed, one text"] = [options.peers, "-c", FASTEMBED, str(exported), QUERY]
        if has(options.peers, "torch"):
            sides["import torch"] = [options.peers, "-c", "import torch"]
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
        for _ in range(options.rounds + 1):
            for name, command in sides.items():
                runs[name].append(measure(command))
    print("| | processor s | clock s | memory MB |\n|---|---:|---:|---:|")
    for name, figures in runs.items():
        processor, clock, memory = (statistics.median(column) for column in zip(*figures[1:], strict=True))
        print(f"| {name} | {processor:.2f} | {clock:.2f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
