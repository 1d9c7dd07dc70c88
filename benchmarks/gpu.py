"""Speed, share of the peak, memory and waits of training, inference and search on one device, as a Markdown table.

    python benchmarks/gpu.py MODEL TEXTS --peak 989 --search-peak 67    an H100: Tflop/s in bfloat16 and in float32
    python benchmarks/gpu.py MODEL TEXTS --device cpu --batch 8 --search 20000                  small, to try it
    python benchmarks/gpu.py MODEL TEXTS --peer                                   sentence-transformers beside, in turns

MODEL is what `isoglot.load` takes, a transformer, with --peer a folder; TEXTS is a file of sentences, at least twice
`--batch`. A pair is a line and the next one: what is learned does not matter here. The share of the peak counts the
products of real tokens in linear layers, once forward and in training twice backward: padding, a second forward pass
and attention count as loss. A search finds the 5 nearest both ways between two tables of random unit vectors with the
dimensions of the model; its work is one product of the tables in float32. On a CPU that is NumPy's. Waits are those of
the host for the device in one step or one call, which PyTorch reports for CUDA alone. The peer computes in the same
precision, with batches of 256 in inference; in training it has CachedMultipleNegativesRankingLoss with parts of 256, of
the same pairs, tokenized before as ours are.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from isoglot.data.batch import Batch
from isoglot.data.formats import read_texts
from isoglot.data.vectors import unit
from isoglot.encoders import load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import settle
from isoglot.objectives import InfoNCE
from isoglot.search import neighbours
from isoglot.training import optimizer
from isoglot.training.settings import OptimizerSettings
from isoglot.training.step import Chunks, StepLimits, train_step
from measure import memory, now

HEAD = "| | sentences/s | tokens/s | Tflop/s | of the peak | positions/tokens | memory, GB | waits |"


class Repeated:
    """A stream of one batch, prepared beforehand as a run's thread would."""

    name = "pairs"

    def __init__(self, batch: Batch, chunks: Chunks) -> None:
        self.given, self.objective = (batch, chunks), InfoNCE()

    def next(self) -> tuple[Batch, Chunks]:
        """The batch and its chunks."""
        return self.given


def pairs(encoder: Encoder, texts: Sequence[str]) -> Batch:
    """Each line and the next one as a group."""
    count = torch.arange(len(texts))
    return Batch(encoder.tokenize(texts), count // 2, count // 2, count % 2, count % 2)


def work_of_token(encoder: Any) -> int:
    """Operations of a token forward: two for each weight of the linear layers of the backbone."""
    layers = [part for name, part in encoder.backbone.named_modules() if "pooler" not in name]
    return sum(2 * part.weight.numel() for part in layers if isinstance(part, torch.nn.Linear))


@dataclass
class Work:
    """What is measured: its row's name, what it processes, the passes of a token, and positions for each token."""

    name: str
    sentences: int
    tokens: int
    passes: int
    padding: str
    run: Callable[[], object]


def measure(works: Sequence[Callable[[], object]], device: torch.device, rounds: int) -> list[tuple[float, float, str]]:
    """Median seconds of a round in turns, after a first one; peak memory in GB, and waits of a round."""
    module: Any = None if device.type == "cpu" else torch.get_device_module(device)
    seconds: list[list[float]] = [[] for _ in works]
    peaks = [0.0] * len(works)
    for turn in range(rounds + 1):
        for place, work in enumerate(works):
            if module is not None:
                module.reset_peak_memory_stats()
                torch.accelerator.synchronize()
            began = now().wall
            work()
            if module is not None:
                torch.accelerator.synchronize()
            seconds[place] += [now().wall - began] if turn else []
            peaks[place] = memory(peak=True) / 1e3 if module is None else module.max_memory_allocated() / 1e9
    return [
        (median(of_work), peak, waits(work, device)) for of_work, peak, work in zip(seconds, peaks, works, strict=True)
    ]


def waits(work: Callable[[], object], device: torch.device) -> str:
    if device.type != "cuda":
        return "–"
    torch.cuda.set_sync_debug_mode("warn")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        work()
    torch.cuda.set_sync_debug_mode("default")
    return str(sum("synchroniz" in str(wait.message) for wait in seen))


def peer(folder: str, precision: str, device: torch.device, english: list[str], other: list[str]) -> tuple[Any, Any]:
    """What sentence-transformers does to encode texts, and to train on pairs of two lists."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.losses import CachedMultipleNegativesRankingLoss

    kind = {"dtype": torch.bfloat16} if precision == "bfloat16" else {}
    model = SentenceTransformer(folder, device=str(device), model_kwargs=kind)
    trained = SentenceTransformer(folder, device=str(device))
    loss = CachedMultipleNegativesRankingLoss(trained, mini_batch_size=256)
    adam = torch.optim.AdamW(trained.parameters(), lr=1e-5, fused=device.type == "cuda")
    features = [
        {name: part.to(device) if hasattr(part, "to") else part for name, part in trained.tokenize(side).items()}
        for side in (english, other)
    ]

    def step() -> None:
        adam.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            value = loss([dict(feature) for feature in features], None)
        value.backward()
        torch.nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        adam.step()

    return partial(model.encode, batch_size=256, show_progress_bar=False), step


def rows(encoder: Encoder, texts: list[str], options: argparse.Namespace) -> Iterator[str]:
    """The rows of the table, one after another: inference, training and search."""
    device, precision = encoder.device, settle(options.precision, encoder.device)
    limits = StepLimits.on(device, chunk=None, graph=options.graph_tokens, precision=precision)
    batch = pairs(encoder, texts[: 2 * options.batch])
    chunks = Chunks.of(encoder, batch.tokens, limits)
    real, every = int(batch.tokens.lengths.sum()), int(encoder.tokenize(texts).lengths.sum())
    encoder.eval()
    distinct = len(set(texts))
    encode = partial(encoder.encode, texts, precision=precision)
    encoding = [Work(f"inference, {distinct:,} sentences", distinct, every, 1, "–", encode)]
    adam = optimizer.build([encoder], OptimizerSettings(lr=1e-5))
    streams: Any = [Repeated(batch, chunks)]

    def step() -> None:
        encoder.train()
        train_step(encoder, streams, adam, limits, lr=1e-5, clip=1.0)

    name, padding = f"training, {options.batch:,} pairs in {len(chunks.pieces)} chunks", f"{chunks.padded / real:.2f}"
    training = [Work(name, len(batch), real, 3, padding, step)]
    if options.peer:
        given = texts[: 2 * options.batch]
        encode_by_peer, step_by_peer = peer(options.model, precision, device, given[::2], given[1::2])
        encoding.append(
            Work("the same by sentence-transformers", distinct, every, 1, "–", partial(encode_by_peer, texts))
        )
        training.append(Work("the same by sentence-transformers", len(batch), real, 3, "–", step_by_peer))
    for works in (encoding, training):
        measured = measure([work.run for work in works], device, options.rounds)
        for work, (seconds, gigabytes, waited) in zip(works, measured, strict=True):
            rate = work.passes * work_of_token(encoder) * work.tokens / seconds / 1e12
            share = f"{rate / options.peak:.1%}" if options.peak else "–"
            figures = f"{work.sentences / seconds:,.0f} | {work.tokens / seconds:,.0f} | {rate:.3g} | {share}"
            yield f"| {work.name} | {figures} | {work.padding} | {gigabytes:.2f} | {waited} |"
    yield search_row(options.search, encoder.dim, device, options.search_peak)


def search_row(size: int, dim: int, device: torch.device, peak: float) -> str:
    """A row of the table for a search of `size` vectors among as many."""
    x, y = (unit(table) for table in np.random.default_rng(0).standard_normal((2, size, dim), np.float32))
    [(seconds, gigabytes, waited)] = measure([lambda: neighbours(x, y, 5, device=str(device))], device, 1)
    rate = 2 * size * size * dim / seconds / 1e12
    share = f"{rate / peak:.1%}" if peak else "–"
    name = f"search, {size:,} among {size:,} of {dim}"
    return f"| {name} | {size / seconds:,.0f} | – | {rate:.3g} | {share} | – | {gigabytes:.2f} | {waited} |"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("texts", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--batch", type=int, default=2048, help="pairs of a training step")
    parser.add_argument("--graph-tokens", type=int, help="as in a recipe; default: that of the device")
    parser.add_argument("--lines", type=int, default=65_536, help="maximum lines of TEXTS")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", type=float, default=0, help="Tflop/s of the device in this precision")
    parser.add_argument("--search", type=int, default=1_000_000, help="rows of both tables of the search")
    parser.add_argument("--search-peak", type=float, default=0, help="Tflop/s of the device in float32, not TF32")
    parser.add_argument("--peer", action="store_true", help="measure sentence-transformers beside")
    options = parser.parse_args(given)
    encoder: Any = load(options.model, device=options.device)
    texts = [text for _, text in islice(read_texts(options.texts), options.lines) if text]
    if len(texts) < 2 * options.batch:
        raise SystemExit(f"{options.texts}: {len(texts)} sentences; --batch {options.batch} needs {2 * options.batch}")
    kind = torch.cuda.get_device_name(encoder.device) if encoder.device.type == "cuda" else str(encoder.device)
    print(f"{options.model} on {kind}, {settle(options.precision, encoder.device)}, PyTorch {torch.__version__}\n")
    print(HEAD, "|---|" + "---:|" * 7, sep="\n")
    for row in rows(encoder, texts, options):
        print(row, flush=True)


if __name__ == "__main__":
    main()
