"""Encode the same texts with isoglot and with what one would use instead, in turns, and compare time and vectors.

    pip install "isoglot[models,onnx]" "sentence-transformers>=5" model2vec
    python benchmarks/encoding.py                    # short and mixed texts, transformer and static encoder
    python benchmarks/encoding.py --sides isoglot-fp32,sentence-transformers-fp32 --lengths short

Texts are sentences of many languages from one folder of translations: `short` is one sentence, `mixed` runs of one to
eight of one language. The transformer is a model folder or name that both libraries open; the static encoder (256 dims)
and its tokenizer are made from the texts. Everything else is each library's default: batch size, order, padding.

Every run is a process of its own, and the sides take turns. The clock runs from texts to vectors, tokenising included;
loading, quantising and a first call of 32 texts do not count. Peak memory is the process's, imports and model included.
Tables show medians over rounds; ratios are of medians, rate here over the first side of the group that is another
library. Vectors of all sides are compared with those of isoglot in float32: the worst cosine, and largest difference.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import material
from measure import fresh, memory, now

Encode = Callable[[list[str]], Any]  # texts to an array (N, D)
Values = dict[str, Any]


def isoglot(folder: str, precision: str) -> Encode:
    from isoglot.encoders import encode, load

    encoder = load(folder)
    if precision == "int8":
        from isoglot.encoders.int8 import quantize

        encoder = quantize(encoder)
    return lambda texts: encode(encoder, texts, normalize=True, precision="fp32" if precision == "int8" else precision)


def sentence_transformers(folder: str, precision: str) -> Encode:
    import torch
    from sentence_transformers import SentenceTransformer

    kind = {"dtype": torch.bfloat16} if precision == "bf16" else {}
    model = SentenceTransformer(folder, device="cpu", model_kwargs=kind)
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def sentence_transformers_onnx(folder: str, _precision: str) -> Encode:
    from sentence_transformers import SentenceTransformer, export_dynamic_quantized_onnx_model

    with tempfile.TemporaryDirectory() as made:
        model = SentenceTransformer(folder, device="cpu", backend="onnx")
        model.save_pretrained(made)
        export_dynamic_quantized_onnx_model(model, "avx2", made)
        kind = {"file_name": "onnx/model_quint8_avx2.onnx"}
        model = SentenceTransformer(made, device="cpu", backend="onnx", model_kwargs=kind)
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def model2vec(folder: str, _precision: str) -> Encode:
    import torch
    from model2vec import StaticModel

    from isoglot.encoders import load

    encoder: Any = load(folder)
    table = encoder.table.detach().numpy()
    model = StaticModel(table, encoder.tokenizer, normalize=True)
    several = torch.get_num_threads() > 1  # processes of its own, which would not keep to one thread
    return lambda texts: model.encode(texts, show_progress_bar=False, use_multiprocessing=several)


SIDES: dict[str, tuple[Callable[[str, str], Encode], str, str]] = {
    "isoglot-fp32": (isoglot, "fp32", "transformer"),
    "sentence-transformers-fp32": (sentence_transformers, "fp32", "transformer"),
    "isoglot-bf16": (isoglot, "bf16", "transformer"),
    "sentence-transformers-bf16": (sentence_transformers, "bf16", "transformer"),
    "isoglot-int8": (isoglot, "int8", "transformer"),
    "sentence-transformers-onnx-int8": (sentence_transformers_onnx, "int8", "transformer"),
    "isoglot-static": (isoglot, "fp32", "static"),
    "model2vec": (model2vec, "fp32", "static"),
}
NEEDS = {
    "sentence-transformers-fp32": ("sentence_transformers",),
    "sentence-transformers-bf16": ("sentence_transformers",),
    "sentence-transformers-onnx-int8": ("sentence_transformers", "optimum", "onnxruntime"),
    "isoglot-int8": ("onnx", "onnxruntime"),
    "model2vec": ("model2vec",),
}
BASE = {"transformer": "sentence-transformers-fp32", "static": "model2vec"}
REFERENCE = {"transformer": "isoglot-fp32", "static": "isoglot-static"}


def usable(side: str) -> bool:
    """Whether what a side needs is installed and, for bfloat16, whether the processor multiplies it."""
    if side.endswith("bf16"):
        import torch

        from isoglot.encoders.device import bf16_pays

        return bf16_pays(torch.device("cpu"))
    return all(find_spec(name) is not None for name in NEEDS.get(side, ()))


def draw(data: Path, count: int, kind: str, *, seed: int = 0) -> list[str]:
    """Distinct texts of one kind of length, in all languages that the folder has."""
    chance, sentences = random.Random(seed), dict[str, list[str]]()
    for group in material.groups(data):
        for text, language in zip(group.texts, group.langs, strict=True):
            sentences.setdefault(language, []).append(text)
    for found in sentences.values():
        chance.shuffle(found)
    made = {language: runs(found, kind, chance) for language, found in sorted(sentences.items())}
    turns = (text for row in itertools.zip_longest(*made.values()) for text in row if text is not None)
    chosen = list(itertools.islice(dict.fromkeys(turns), count))
    chance.shuffle(chosen)
    return chosen


def runs(sentences: list[str], kind: str, chance: random.Random) -> Iterator[str]:
    place = 0
    while place < len(sentences):
        length = 1 if kind == "short" else chance.randint(1, 8)
        yield " ".join(sentences[place : place + length])
        place += length


def child(setting: Values) -> None:
    """One run, in this process: `vectors.npy` and `result.json` into its folder."""
    import numpy as np
    import torch

    torch.set_num_threads(setting["threads"])
    make, precision, _ = SIDES[setting["side"]]
    encode = make(setting["model"], precision)
    texts = json.loads(Path(setting["texts"]).read_text(encoding="utf-8"))
    encode(texts[:32])
    loaded, began = memory(), now()
    vectors = np.asarray(encode(texts), dtype=np.float32)
    spent = now().since(began)
    folder = Path(setting["folder"])
    np.save(folder / "vectors.npy", vectors)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # processes that a side started and that have ended
    cpu = spent.cpu + used.ru_utime + used.ru_stime
    told = {"wall": spent.wall, "cpu": cpu, "loaded": loaded, "peak": memory(peak=True), "texts": len(texts)}
    (folder / "result.json").write_text(json.dumps(told), encoding="utf-8")


def compare(options: argparse.Namespace, work: Path, kind: str, group: str) -> dict[str, list[Values]]:
    """Results of the sides of one group, round by round in turns."""
    count = options.static_texts if group == "static" else options.texts
    texts = work / f"{kind}-{group}.json"
    texts.write_text(json.dumps(draw(options.data, count, kind)), encoding="utf-8")
    model = options.model if group == "transformer" else str(static(work, json.loads(texts.read_text())))
    sides = [side for side in options.sides if SIDES[side][2] == group]
    results: dict[str, list[Values]] = {side: [] for side in sides}
    for number in range(options.rounds):
        for side in sides if number % 2 == 0 else sides[::-1]:
            run = work / f"{kind}-{side}"
            run.mkdir(exist_ok=True)
            setting = {"side": side, "model": model, "texts": str(texts), "folder": str(run)}
            words = ["--child", json.dumps({**setting, "threads": options.threads})]
            environment = {"OMP_NUM_THREADS": str(options.threads), "RAYON_NUM_THREADS": str(options.threads)}
            told = fresh(Path(__file__), words, result=run / "result.json", environment=environment)
            results[side].append(told)
            say(f"{kind} round {number + 1} {side}: {told['texts'] / told['wall']:,.0f} texts/s")
    return results


def static(work: Path, texts: list[str]) -> Path:
    """A static encoder with random rows under a tokenizer that knows the texts."""
    from isoglot.encoders import StaticEncoder
    from isoglot.encoders.tokenizer import train_tokenizer

    folder = work / "static"
    if not folder.exists():
        StaticEncoder.create(train_tokenizer(texts, 32_000), 256, token_weights=False).save(folder)
    return folder


def table(results: dict[str, list[Values]], work: Path, *, kind: str, group: str) -> str:
    """One group of sides as Markdown."""
    import numpy as np

    def middle(side: str, name: str) -> float:
        return float(median(values[name] for values in results[side]))

    base = BASE[group] if BASE[group] in results else next(iter(results))
    reference = REFERENCE[group] if REFERENCE[group] in results else base
    known = np.load(work / f"{kind}-{reference}" / "vectors.npy")
    lines = [
        f"| {kind} | texts/s | x {base} (wall) | (processor) | peak MB | worst cosine | largest difference |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for side, values in results.items():
        rows = np.load(work / f"{kind}-{side}" / "vectors.npy")
        cosine, apart = (known * rows).sum(axis=1).min(), np.abs(known - rows).max()
        wall, cpu = (middle(base, name) / middle(side, name) for name in ("wall", "cpu"))
        rate = values[0]["texts"] / middle(side, "wall")
        peak = middle(side, "peak")
        lines.append(f"| {side} | {rate:,.0f} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {cosine:.6f} | {apart:.1e} |")
    return "\n".join(lines)


def say(words: str) -> None:
    """Words to people go to stderr, tables to stdout."""
    print(words, file=sys.stderr, flush=True)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--data", type=Path, help="folder of translated text; without it, the text bundled here")
    parser.add_argument("--model", default="multilingual-e5-small", help="folder or packaged name")
    parser.add_argument("--texts", type=int, default=2000, help="texts for the transformer")
    parser.add_argument("--static-texts", type=int, default=40_000, help="texts for the static encoder, at most")
    parser.add_argument("--lengths", default="short,mixed")
    parser.add_argument("--sides", default=",".join(SIDES), help="which to run, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="file for the results of every run")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main() -> None:
    """Compare, and print the tables."""
    options = arguments()
    if options.child:
        return child(json.loads(options.child))
    from isoglot.encoders.loading import find
    from isoglot.settings import BUNDLED

    options.data = options.data or BUNDLED / "pairs"
    asked = options.sides.split(",")
    options.sides = [side for side in asked if usable(side)]
    say(f"left out, not installed or without gain here: {', '.join(sorted({*asked} - {*options.sides})) or 'none'}")
    groups = list(dict.fromkeys(SIDES[side][2] for side in options.sides))
    if "transformer" in groups:
        options.model = str(find(options.model))
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        for kind, group in itertools.product(options.lengths.split(","), groups):
            results = compare(options, Path(folder), kind, group)
            told[f"{kind} {group}"] = results
            print(table(results, Path(folder), kind=kind, group=group) + "\n", flush=True)
    if options.json:
        options.json.write_text(json.dumps(told, indent=1), encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
