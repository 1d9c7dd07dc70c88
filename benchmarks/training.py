"""Train one transformer on the same pairs with isoglot and with sentence-transformers, in turns, and compare.

    pip install "sentence-transformers[train]>=6"
    python benchmarks/training.py                      # on the text bundled with isoglot
    python benchmarks/training.py --data FOLDER        # TSV tables, or line-aligned files, of pairs with English

Equal on both sides: the weights at the start (BERT, 6 layers of width 384, random), the tokenizer, the pairs and how
often each is seen (once), pairs in a batch, the loss (InfoNCE from English to the translation, temperature .05, which
there is called MultipleNegativesRankingLoss with scale 20), mean pooling, dropout, maximum tokens per sentence (128),
AdamW, learning rate with linear decay to zero, gradient norm clipped at 1, number of threads, and float32, unless
--precision gives isoglot's products bfloat16. Either side is driven as its user would: here a recipe, there the
trainer; settings that are not named above are each library's own.

Different, and what is measured: there a batch is drawn at random and padded to its longest sentence. Here a batch
passes through the encoder in chunks of like length, the activations of a large batch are not kept but computed again,
and with --pool over 1 pairs of like length share a batch. Such a batch is another task than a random one, so its
training loss cannot be compared. Both models are therefore judged on pairs held out, by one function: InfoNCE with all
of them as candidates, and how many sentences find their translation among all.

Every run is a process of its own and the two libraries take turns. The clock runs from the loaded model to the last
step, tokenising included; peak memory is that of the whole process, imports included. Tables show medians over rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import material
import sides
from measure import fresh
from sides import SIDES, Setting, Values


def compare(options: argparse.Namespace, work: Path) -> dict[str, list[Values]]:
    """The results of both sides, round by round."""
    material.prepare(
        options.data, work, pairs=options.pairs, held_out=options.held_out, vocabulary=options.vocabulary, seed=0
    )
    missing = [name for name in ("sentence_transformers", "accelerate", "datasets") if find_spec(name) is None]
    if missing:
        say(f"sentence-transformers is skipped, because {', '.join(missing)} is not installed")
    results: dict[str, list[Values]] = {side: [] for side in SIDES if side == "isoglot" or not missing}
    for number in range(options.rounds):
        for side in results:
            run = work / f"{side}-{number}"
            run.mkdir()
            results[side].append(one_run(options, side=side, run=run, seed=number))
            figures = results[side][-1]
            say(
                f"round {number + 1} {side}: {options.pairs / figures['wall']:.1f} pairs/s, peak "
                f"{figures['peak']:.0f} MB"
            )
    return results


def one_run(options: argparse.Namespace, *, side: str, run: Path, seed: int) -> Values:
    """One run of one side in a fresh process without a cache."""
    own = ("batch", "lr", "threads", "freeze_embeddings", "pool", "chunk_tokens", "graph_tokens", "precision")
    named = {name: getattr(options, name) for name in own}
    setting = Setting(side=side, work=str(run.parent), folder=str(run), seed=seed, **named)
    environment = {"OMP_NUM_THREADS": str(options.threads), "ISOGLOT_CACHE": str(run / "cache")}
    return fresh(
        Path(__file__), ["--child", json.dumps(asdict(setting))], result=run / "result.json", environment=environment
    )


def table(results: dict[str, list[Values]], start: Values, *, pairs: int) -> str:
    """The comparison as a Markdown table; ratios are of medians, here over there."""

    def row(name: str, of: Callable[[Values], float], shown: str, *, ratio: bool = True) -> str:
        found = [median(of(values) for values in runs) for runs in results.values()]
        cells = [f"{value:{shown}}" for value in found]
        return f"| {name} | {' | '.join(cells)} | {f'{found[0] / found[-1]:.2f}' if ratio and len(found) > 1 else ''} |"

    return "\n".join(
        [
            f"| | {' | '.join(results)} | ratio |",
            f"| --- {'| --- ' * len(results)}| --- |",
            row("pairs per second", lambda v: pairs / v["wall"], ".1f"),
            row("CPU-seconds for 1,000 pairs", lambda v: 1000 * v["cpu"] / pairs, ".1f"),
            row("peak memory of the process, MB", lambda v: v["peak"], ".0f"),
            row("memory after the imports, MB", lambda v: v["imported"], ".0f"),
            row("memory with the model loaded, MB", lambda v: v["loaded"], ".0f"),
            row("token positions computed for a pair", lambda v: v["computed"] / pairs, ".1f"),
            row("share of them that is padding", lambda v: v["padding"], ".1%", ratio=False),
            row(f"loss on pairs held out (untrained: {start['loss']:.3f})", lambda v: v["loss"], ".3f", ratio=False),
            row(f"accuracy on them (untrained: {start['accuracy']:.1%})", lambda v: v["accuracy"], ".1%", ratio=False),
        ]
    )


def say(words: str) -> None:
    """Messages go to stderr, the table to stdout."""
    print(words, file=sys.stderr, flush=True)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument(
        "--data", type=Path, help="folder of translated text; without it, the text bundled with isoglot"
    )
    parser.add_argument("--pairs", type=int, default=1280, help="pairs to train on, each seen once")
    parser.add_argument("--held-out", type=int, default=500, help="pairs to evaluate on")
    parser.add_argument("--batch", type=int, default=64, help="pairs in a batch")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--lr", type=float, default=5e-4, help="learning rate of the first step")
    parser.add_argument("--vocabulary", type=int, default=32000, help="vocabulary size of the tokenizer")
    parser.add_argument("--freeze-embeddings", action="store_true", help="do not train the word embeddings")
    parser.add_argument(
        "--pool", type=int, help="isoglot: number of batches that are sorted by length together; 1: random batches"
    )
    parser.add_argument("--chunk-tokens", type=int, help="isoglot: token positions per chunk of the encoder")
    parser.add_argument("--graph-tokens", type=int, help="isoglot: token positions whose activations are kept")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="isoglot: of its products")
    parser.add_argument("--json", type=Path, help="file for the results of every run")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main() -> None:
    """Compare, and print the table."""
    options = arguments()
    if options.child:
        return sides.run(Setting(**json.loads(options.child)))
    if options.data is None:
        from isoglot.data.files import BUNDLED

        options.data = BUNDLED / "pairs"
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        results = compare(options, Path(folder))
        start = sides.judge(Path(folder) / "model", Path(folder) / "held-out.jsonl")
    if options.json:
        options.json.write_text(json.dumps({"untrained": start, **results}, indent=1), encoding="utf-8")
    print(table(results, start, pairs=options.pairs))
    return None


if __name__ == "__main__":
    main()
