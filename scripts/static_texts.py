"""Text, teacher and start of the recipe models/static-taught, beside what the data sets have as it is.

    python scripts/static_texts.py DATA OUTPUT TEACHER START

Reads base-pairs, base-groups and base-long.jsonl in OUTPUT, which scripts/base_texts.py writes, and writes there

    static-long.jsonl        base-long without its prompts
    static-cloze.jsonl       a sentence of a paragraph of Wikipedias, more than isoglot-base has, and the others
    static-teacher           the model TEACHER, its vectors reduced to 256 dimensions
    static-first             the static model START, turned towards the teacher

Vectors of multilingual-e5-small lie in a narrow cone. The teacher's are taken about their mean and turned to principal
directions, each divided by the fourth root of its variance: halfway, by the logarithm, between those directions as they
are and whitened ones. The start is turned by the rotation that brings its vectors nearest to the teacher's (orthogonal
Procrustes), which changes no cosine: without it, the first thing that training would do is to undo what was learnt.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import base_texts
from isoglot.data.groups import Group
from isoglot.data.readers import read
from isoglot.data.readers.jsonl import write_jsonl
from isoglot.encoders import load
from isoglot.encoders.fitting import fit_whitening
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.encoders.static import StaticEncoder

DIM = 256
PARAGRAPHS, OF_A_PAGE = 4000, 15
FITTED = {"pairs": 3000, "groups": 700, "paragraphs": 800}  # texts of each kind that reduction and turn are fitted to
LETTERS = 400  # of each


def without_prompts(group: Group) -> Group:
    texts = (text.removeprefix(base_texts.QUERY).removeprefix(base_texts.PASSAGE) for text in group.texts)
    return Group(tuple(texts), group.langs, key=group.key)


def lines(path: Path) -> Iterator[Group]:
    return map(without_prompts, read("jsonl", path, on_unknown_language="skip"))


def reduce(teacher: str, texts: list[str], folder: Path) -> WithLayer:
    """Save the teacher, followed by the reduction that is fitted to `texts`; give it back."""
    whitened = fit_whitening(load(teacher), texts, dim=DIM).encoder
    assert isinstance(whitened, WithLayer)
    assert isinstance(whitened.layer, Dense)
    linear = whitened.layer.linear
    with torch.no_grad():  # a row is a direction over its deviation
        root = linear.weight.norm(dim=1).sqrt()
        linear.weight.div_(root[:, None])
        linear.bias.div_(root)
    whitened.save(folder)
    return whitened


def turn(start: str, teacher: WithLayer, texts: list[str], folder: Path) -> None:
    """Save the static model, turned so that its vectors of `texts` are nearest to the teacher's."""
    encoder = load(start)
    assert isinstance(encoder, StaticEncoder)
    ours, theirs = (model.encode(texts, normalize_embeddings=True) for model in (encoder, teacher))
    left, _, right = np.linalg.svd(ours.T @ theirs)
    rows = encoder.fold().float() @ torch.from_numpy(left @ right)
    StaticEncoder(rows, encoder.tokenizer, max_length=encoder.max_length).save(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("teacher")
    parser.add_argument("start")
    words = parser.parse_args()
    paragraphs = [
        without_prompts(group) for group in base_texts.paragraphs(words.data, most=PARAGRAPHS, of_a_page=OF_A_PAGE)
    ]
    write_jsonl(words.output / "static-cloze.jsonl", map(without_prompts, base_texts.cloze(paragraphs)))
    write_jsonl(words.output / "static-long.jsonl", lines(words.output / "base-long.jsonl"))
    draw, texts = random.Random(1), []
    for name, count in FITTED.items():
        groups = paragraphs if name == "paragraphs" else list(lines(words.output / f"base-{name}.jsonl"))
        texts += [draw.choice(group.texts)[:LETTERS] for group in draw.sample(groups, min(count, len(groups)))]
    teacher = reduce(words.teacher, texts, words.output / "static-teacher")
    turn(words.start, teacher, texts, words.output / "static-first")


if __name__ == "__main__":
    main()
