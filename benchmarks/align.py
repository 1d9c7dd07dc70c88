"""Sentence alignment, measured on documents whose alignment is known because they were made from parallel text.

    python benchmarks/align.py --data DATA --output align.json

The lines of NTREX-128 are translations of each other and come with the document of each line. Documents are joined into
texts of at least 100 lines, and on either side lines are joined, cut at punctuation, dropped and inserted at random
(with a seed), so that the alignment of the sides is known and is n to m. The first half of the texts is for the choice
of settings (`--part dev`), the other half is reported.

Precision, recall and F1 are counted over alignments with sentences on both sides, as in Thompson and Koehn (2019):
strict ones equal an alignment of the gold standard, lax ones have a sentence of it on either side. The models are
compared with lengths alone (Gale and Church 1993) and with line i to line i.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import isoglot

LANGUAGES = "deu,fra,rus,zho-CN,jpn,arb,tur,fin,hin,swa"
# What is done to a line of a side, with its probability; the rest stays as it is.
EDITS = {"join": 0.06, "join 3": 0.02, "cut": 0.08, "drop": 0.04, "insert": 0.03}
CLAUSE = re.compile(r"(?<=[,;:，；：、،؛]) ?(?=\S)")
LINES = 100  # of a text, at least

Alignment = tuple[tuple[int, ...], tuple[int, ...]]
Text = tuple[list[str], list[str], list[Alignment]]  # both sides, and which sentences belong together


def read_sides(data: Path, code: str) -> Iterator[list[tuple[str, str]]]:
    """The texts of English and another language, as pairs of lines."""
    folder = data / "ntrex-128"
    names = [line.split("\t")[0] for line in (folder / "DOCUMENT_IDS.tsv").read_text("utf-8").splitlines()]
    sides = []
    for name in ("src.eng", f"ref.{code}"):
        with lzma.open(folder / "NTREX-128" / f"newstest2019-{name}.txt.xz", "rt", encoding="utf-8") as file:
            sides.append(file.read().split("\n")[: len(names)])
    text: list[tuple[str, str]] = []
    for _, lines in groupby(zip(names, *sides, strict=True), key=lambda line: line[0]):
        text += [(english, other) for _, english, other in lines]
        if len(text) >= LINES:
            yield text
            text = []


def edit(pairs: list[tuple[str, str]], others: list[tuple[str, str]], rng: random.Random) -> Text:
    """Two sides of a text with random differences, and their alignment."""
    sides: tuple[list[str], list[str]] = ([], [])
    gold: list[Alignment] = []
    rest = list(pairs)
    while rest:
        side = rng.randrange(2)
        edits = [*EDITS, "none"]
        kind = rng.choices(edits, [*EDITS.values(), 1 - sum(EDITS.values())])[0]
        count = 3 if kind == "join 3" else 2 if kind == "join" else 1
        lines = [list(column) for column in zip(*rest[:count], strict=True)]
        del rest[:count]
        if kind.startswith("join"):
            space = "" if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]$|[。！？]$", lines[side][0]) else " "
            lines[side] = [space.join(lines[side])]
        elif kind == "cut":
            places = [found.span() for found in CLAUSE.finditer(lines[side][0]) if found.start() > 15]
            if places:
                start, end = min(places, key=lambda span: abs(2 * span[0] - len(lines[side][0])))
                lines[side] = [lines[side][0][:start], lines[side][0][end:]]
        elif kind == "drop":
            lines[side] = []
        elif kind == "insert":
            sides[side].append(rng.choice(others)[side])
        numbers = [tuple(range(len(one), len(one) + len(new))) for one, new in zip(sides, lines, strict=True)]
        for one, new in zip(sides, lines, strict=True):
            one += new
        if all(numbers):
            gold.append((numbers[0], numbers[1]))
    return (*sides, gold)


def one_to_one(source: list[str], target: list[str]) -> list[Alignment]:
    return [((place,), (place,)) for place in range(min(len(source), len(target)))]


def by_length(source: list[str], target: list[str]) -> list[Alignment]:
    """Gale and Church (1993): lengths of translations differ by a normal variable; with the paper's constants, except
    that the ratio of characters is that of the two texts.
    """
    prior = {(1, 1): 0.89, (1, 0): 0.0099, (0, 1): 0.0099, (2, 1): 0.089, (1, 2): 0.089, (2, 2): 0.011}
    lengths = [[len(text.encode()) for text in side] for side in (source, target)]
    ratio = sum(lengths[1]) / sum(lengths[0])
    best: dict[tuple[int, int], tuple[float, tuple[int, int]]] = {(0, 0): (0, (0, 0))}
    for i in range(len(source) + 1):
        for j in range(len(target) + 1):
            for (a, b), chance in prior.items():
                if (i - a, j - b) not in best:
                    continue
                x, y = sum(lengths[0][i - a : i]), sum(lengths[1][j - b : j])
                delta = abs(y - x * ratio) / math.sqrt(6.8 * max((x * ratio + y) / 2, 1))
                cost = -math.log(max(math.erfc(delta / math.sqrt(2)), 1e-300)) - math.log(chance)
                cost += best[i - a, j - b][0]
                if (i, j) not in best or cost < best[i, j][0]:
                    best[i, j] = cost, (a, b)
    found, place = list[Alignment](), (len(source), len(target))
    while place != (0, 0):
        (i, j), (a, b) = place, best[place][1]
        if a and b:
            found.append((tuple(range(i - a, i)), tuple(range(j - b, j))))
        place = i - a, j - b
    return found[::-1]


def score(pairs: list[tuple[list[Alignment], list[Alignment]]]) -> dict[str, float]:
    """Strict and lax precision, recall and F1 over all texts, of (found, gold)."""

    def is_near(one: Alignment, other: Alignment) -> bool:
        return all({*a} & {*b} for a, b in zip(one, other, strict=True))

    figures: dict[str, float] = {}
    kinds: dict[str, Callable[[Alignment, list[Alignment]], bool]] = {
        "strict": lambda one, many: one in many,
        "lax": lambda one, many: any(is_near(one, two) for two in many),
    }
    for kind, is_in in kinds.items():
        right = sum(is_in(one, gold) for found, gold in pairs for one in found)
        hit = sum(is_in(one, found) for found, gold in pairs for one in gold)
        precision = right / max(1, sum(len(found) for found, _ in pairs))
        recall = hit / max(1, sum(len(gold) for _, gold in pairs))
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        figures |= {f"{kind} precision": precision, f"{kind} recall": recall, f"{kind} F1": f1}
    return figures


def texts_of(options: argparse.Namespace, code: str) -> list[Text]:
    texts = list(read_sides(options.data, code))
    half = len(texts) // 2
    chosen, rest = (texts[:half], texts[half:]) if options.part == "dev" else (texts[half:], texts[:half])
    rng = random.Random(f"{options.seed} {code}")
    return [edit(text, [pair for one in rest for pair in one], rng) for text in chosen[: options.texts]]


def table(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    """Strict and lax F1 by language and method, as Markdown."""
    names = list(next(iter(figures.values())))
    lines = [f"| English with | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    mean = {
        name: {kind: sum(of[name][kind] for of in figures.values()) / len(figures) for kind in ("strict F1", "lax F1")}
        for name in names
    }
    for code, of in [*figures.items(), ("mean", mean)]:
        cells = [f"{of[name]['strict F1'] * 100:.1f} / {of[name]['lax F1'] * 100:.1f}" for name in names]
        lines.append(f"| {code} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data sets")
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--languages", default=LANGUAGES)
    parser.add_argument("--models", default=",isoglot-static", help="names, separated by commas; empty: the default")
    parser.add_argument("--texts", type=int, help="maximum number of texts per language")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="JSON file for all figures")
    options = parser.parse_args()
    models = [isoglot.load(name or None) for name in options.models.split(",")]
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for code in options.languages.split(","):
        texts = texts_of(options, code)
        methods: dict[str, Any] = {"line by line": one_to_one, "lengths": by_length}
        methods |= {
            model.name: lambda source, target, model=model: with_model(model, source, target) for model in models
        }
        figures[code] = {}
        for name, method in methods.items():
            began = time.perf_counter()
            found = [(method(source, target), gold) for source, target, gold in texts]
            figures[code][name] = score(found) | {"seconds": time.perf_counter() - began}
            sys.stderr.write(f"{code}, {name}: {figures[code][name]}\n")
    if options.output:
        options.output.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(table(figures))


def with_model(model: Any, source: list[str], target: list[str]) -> list[Alignment]:
    found = isoglot.align(source, target, model=model)
    return [(one.source_ids, one.target_ids) for one in found]


if __name__ == "__main__":
    main()
