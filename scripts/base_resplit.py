"""Texts that a smaller vocabulary splits otherwise, for the recipe models/base-resplit.

    python scripts/base_resplit.py WHOLE SMALLER OUTPUT FILE... [--size 12000]

WHOLE and SMALLER are folders of a model before and after `isoglot trim`, FILE the JSON lines of groups that
scripts/base_texts.py makes and the sets of models/base. OUTPUT gets groups of one text each: of every file an equal
share, drawn at random from the texts whose pieces differ, none longer than 1,200 characters.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from isoglot.data.files import atomic_write
from isoglot.data.readers.files import read_files
from isoglot.model import packed

BLOCK = 4_096


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("whole", type=Path)
    parser.add_argument("smaller", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--size", type=int, default=12_000)
    words = parser.parse_args()
    tokenizers = [packed.read_tokenizer(folder) for folder in (words.whole, words.smaller)]
    rng, chosen = random.Random(1), []
    for file in words.files:
        texts = []
        for group in read_files([file]):
            texts += [pair for pair in zip(group.texts, group.langs, strict=True) if len(pair[0]) <= 1_200]
            if len(texts) > 400_000:
                break
        texts = sorted(set(texts))
        rng.shuffle(texts)
        share, split = words.size // len(words.files), []
        for start in range(0, len(texts), BLOCK):
            block = texts[start : start + BLOCK]
            encodings = [tokenizer.encode_batch([text for text, _ in block]) for tokenizer in tokenizers]
            split += [pair for pair, *both in zip(block, *encodings, strict=True) if both[0].tokens != both[1].tokens]
            if len(split) >= share:
                break
        chosen += split[:share]
        print(f"{file.name}: {len(texts):,} texts, {len(split[:share]):,} taken")
    rng.shuffle(chosen)
    with atomic_write(words.output) as stream:
        for text, language in chosen:
            stream.write(json.dumps({"texts": [text], "langs": [language]}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
