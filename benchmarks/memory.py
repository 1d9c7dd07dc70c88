"""Peak memory and seconds of one training step, which depend on the chunk, not on the batch or the queue.

    python benchmarks/memory.py                        # all cases; the batch of 8,192 groups takes its time
    python benchmarks/memory.py --groups 256 1024      # smaller batches
    python benchmarks/memory.py --no-batch             # the queue alone

*Queue.* A step of dual momentum contrast against two queues of 409,600 keys of 384 dimensions, by a static encoder, so
that only the queue is measured. `cells` is the greatest number of logits that exist at once; `whole` makes all of them
in one block, and keeps none of them for the backward pass either.

*Batch.* A step on many pairs of sentences, by the first layers of the packaged multilingual-e5-small, its word table
frozen. `chunk` is the number of tokens that pass through the encoder at once; `whole` embeds the batch in one piece and
keeps its activations, as a plain training step would. What grows with the batch all the same are its vectors, of which
loss and gradient make about ten copies; logits grow up to a block of 2^24 of them.

Every case is a process of its own. Memory is its peak beyond what was resident before: before the step for a batch,
before the queues were made for a queue (the queues themselves are shown next to it). One step, so seconds are those of
a first step.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import material
from measure import fresh, memory, now

if TYPE_CHECKING:
    from isoglot.encoders import Encoder
    from isoglot.objectives.base import Objective

WHOLE = 1 << 62
OBJECTIVES: dict[str, dict[str, Any]] = {
    "multi_positive": {"temperature": 0.05, "rescale": "matrix"},
    "info_nce": {"temperature": 0.05, "direction": "two-way"},
}


def queue_step(case: dict[str, Any]) -> dict[str, float]:
    """One step against queues, of random vectors and keys."""
    from isoglot.encoders.static import StaticEncoder
    from isoglot.model.tokenizer import train_tokenizer
    from isoglot.objectives import build, kernel

    kernel.BLOCK_CELLS = case["cells"]
    pairs = list(islice(material.distinct(material.groups(Path(case["data"]))), case["pairs"]))
    tokenizer = train_tokenizer((text for pair in pairs for text in pair["texts"]), 2000)
    encoder = StaticEncoder.create(tokenizer, case["dim"])
    before = memory()
    objective = build("dual_momentum", {"queue": case["queue"]}, encoder)
    return step(encoder, objective, pairs, before=before, chunk=WHOLE)


def batch_step(case: dict[str, Any]) -> dict[str, float]:
    """One step on a large batch."""
    from isoglot.encoders import load
    from isoglot.objectives import build

    pairs = list(islice(material.distinct(material.groups(Path(case["data"]))), case["groups"]))
    encoder = load(
        "multilingual-e5-small", layers=case["layers"], freeze_embeddings=True, max_length=64, prompt=""
    ).train()
    objective = build(case["objective"], OBJECTIVES[case["objective"]], encoder)
    return step(encoder, objective, pairs, chunk=case["chunk"])


def step(
    encoder: Encoder, objective: Objective, pairs: list[material.Pair], *, chunk: int, before: float | None = None
) -> dict[str, float]:
    """What a stage does in a step except for the optimiser; `before` is the memory to count from, else at its start."""
    import torch

    from isoglot.data.batching import Batches, Batching
    from isoglot.data.groups import Group
    from isoglot.data.table import GroupTable
    from isoglot.training.step import StepLimits, backward

    groups = [Group(tuple(pair["texts"]), tuple(pair["langs"])) for pair in pairs]
    table = GroupTable.build([("pairs", groups)], encoder.tokenize)
    batch = Batches(table, Batching(size=len(groups)), seed=1).next()
    before, start = memory() if before is None else before, now()
    report = backward(encoder, objective, batch, StepLimits(chunk, WHOLE if chunk == WHOLE else 0))
    with torch.no_grad():
        objective.after_step(encoder, [report.batch])
    spent = now().since(start)
    grown = memory(peak=True) - before
    return {"groups": len(groups), "tokens": report.tokens, "memory": grown, "wall": spent.wall, "cpu": spent.cpu}


def measured(options: argparse.Namespace, case: dict[str, Any], folder: str) -> dict[str, float]:
    """A case in a process of its own."""
    result = Path(folder) / "result.json"
    asked = json.dumps({**case, "data": str(options.data), "threads": options.threads, "result": str(result)})
    environment = {"OMP_NUM_THREADS": str(options.threads)}
    return fresh(Path(__file__), ["--child", asked], result=result, environment=environment)


def queues(options: argparse.Namespace, folder: str) -> None:
    size = 2 * options.queue * options.dim * 4 / 1e6
    print(f"Two queues of {options.queue:,} keys of {options.dim} dimensions are {size:,.0f} MB.\n")
    print("| pairs | cells | memory beyond the queues, MB | seconds | CPU-seconds |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for pairs in options.pairs:
        for cells in options.cells:
            case = {"kind": "queue", "pairs": pairs, "cells": cells, "queue": options.queue, "dim": options.dim}
            found = measured(options, case, folder)
            own = found["memory"] - size
            print(f"| {pairs:,} | {named(cells)} | {own:,.0f} | {found['wall']:.1f} | {found['cpu']:.1f} |", flush=True)


def batches(options: argparse.Namespace, folder: str) -> None:
    print(f"\nPairs of sentences, {options.layers} layers of width 384:\n")
    print("| objective | groups | tokens | chunk | memory, MB | seconds | CPU-seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for objective in options.objectives:
        for groups in options.groups:
            for chunk in options.chunks:
                case = {"kind": "batch", "objective": objective, "groups": groups, "chunk": chunk}
                found = measured(options, {**case, "layers": options.layers}, folder)
                sizes = f"{found['groups']:,} | {found['tokens']:,} | {named(chunk)}"
                spent = f"{found['memory']:,.0f} | {found['wall']:.1f} | {found['cpu']:.1f}"
                print(f"| {objective} | {sizes} | {spent} |", flush=True)


def named(limit: int) -> str:
    return "whole" if limit == WHOLE else f"{limit:,}"


def limits(given: str) -> int:
    return WHOLE if given == "whole" else int(given)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, help="folder of translated text; without it, the bundled text")
    parser.add_argument("--queue", type=int, default=409_600, help="keys in each queue")
    parser.add_argument("--dim", type=int, default=384, help="width of the keys")
    parser.add_argument("--pairs", type=int, nargs="+", default=[128, 1024], help="batches against the queue")
    parser.add_argument(
        "--cells", type=limits, nargs="+", default=[1 << 20, 1 << 24], help="logits at once, or `whole`"
    )
    parser.add_argument("--groups", type=int, nargs="+", default=[1024, 8192], help="large batches")
    parser.add_argument("--chunks", type=limits, nargs="+", default=[512, 4096], help="tokens at once, or `whole`")
    parser.add_argument("--objectives", nargs="+", choices=[*OBJECTIVES], default=[*OBJECTIVES])
    parser.add_argument("--layers", type=int, default=6, help="layers of the transformer")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-queue", action="store_true", help="leave the queue out")
    parser.add_argument("--no-batch", action="store_true", help="leave the large batches out")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args()


def child(case: dict[str, Any]) -> None:
    """One case, in its own process."""
    import torch

    torch.set_num_threads(case["threads"])
    found = queue_step(case) if case["kind"] == "queue" else batch_step(case)
    Path(case["result"]).write_text(json.dumps(found), encoding="utf-8")


def main() -> None:
    """Measure, and print the tables."""
    options = arguments()
    if options.child:
        return child(json.loads(options.child))
    if options.data is None:
        from isoglot.data.files import BUNDLED

        options.data = BUNDLED / "pairs"
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        if not options.no_queue:
            queues(options, folder)
        if not options.no_batch:
            batches(options, folder)
    return None


if __name__ == "__main__":
    main()
