"""What the percentages of a search are for translations of indexed sentences and for sentences without one.

    python benchmarks/percentages.py isoglot-static
    python benchmarks/percentages.py isoglot-base --data data/ntrex-128 --cache build/percentages

The sets are pairs of Tatoeba, of the dev data in this package, and of NTREX-128 if its folder is passed. The first half
of the pairs of a set is indexed, each pair an entry of two sentences. Queries are its sentences of the one language,
searched for in the other, and all sentences of the second half, of which no translation is in the index; of these, some
have a sentence in the index that means nearly the same. Printed are quantiles of the percentage of the best hit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import isoglot
from isoglot.data.files import BUNDLED, read_lines
from isoglot.index import Index, Origin, Sentence

TATOEBA = ("ara", "cmn", "deu", "fra", "hin", "jpn", "kor", "rus")
NTREX = {"deu": "deu", "kor": "kor", "swa": "swa"}
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


def pairs_of(ntrex: Path | None) -> dict[str, tuple[list[str], list[str]]]:
    """The two sides of each set."""

    def lines(path: Path, most: int) -> list[str]:
        return [text for _, text in read_lines(path)][:most]

    def tatoeba(code: str, side: str) -> Path:
        return BUNDLED / "dev" / f"tatoeba.{code}-eng.{side}.xz"

    sets = {f"tat-{one}": (lines(tatoeba(one, one), 400), lines(tatoeba(one, "eng"), 400)) for one in TATOEBA}
    if ntrex is not None:
        (english,) = ntrex.rglob("*src.eng.txt*")
        for code in NTREX:
            path = next(ntrex.rglob(f"*ref.{code}*"))
            sets[f"ntrex-{code}"] = lines(path, 600), lines(english, 600)
    return sets


def main() -> None:
    """Print a table of all sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--data", type=Path, help="folder of NTREX-128")
    parser.add_argument("--cache", type=Path, help="folder to keep vectors in")
    words = parser.parse_args()
    cached = None if words.cache is None else words.cache / f"{words.model}.npz"
    model = isoglot.load(words.model)
    kept = dict(np.load(cached)) if cached is not None and cached.exists() else {}
    every: dict[str, list[np.ndarray]] = {"translation": [], "none": []}
    sets = pairs_of(words.data)
    for name, pair in sets.items():
        for side, texts in zip("ab", pair, strict=True):
            if f"{name}/{side}" not in kept:
                kept[f"{name}/{side}"] = model.encode(texts)
    if cached is not None:
        cached.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cached, **kept)
    print("| set | queries | " + " | ".join(f"{at:.0%}" for at in QUANTILES) + " | at least 50 % |")
    print("|---|---|" + "---:|" * (len(QUANTILES) + 1))
    for name, pair in sets.items():
        sides = [kept[f"{name}/{side}"] / np.linalg.norm(kept[f"{name}/{side}"], axis=1)[:, None] for side in "ab"]
        half, code = len(pair[0]) // 2, name.partition("-")[2]
        sentences = [
            Sentence(str(row), pair[side][row], ("eng" if side else code)) for row in range(half) for side in (0, 1)
        ]
        index = Index.create(None, Origin.of(model), model=model)
        index.add_vectors(sentences, np.stack([side[:half] for side in sides], axis=1).reshape(2 * half, -1))
        index.restructure()
        english = index.search(sides[0][:half], 1, languages="eng")
        others = index.search(np.concatenate([side[half:] for side in sides]), 1)
        right = [hits[0].percent if hits[0].id == str(row) else 0.0 for row, hits in enumerate(english)]
        found = {"translation": np.array(right), "none": np.array([hits[0].percent for hits in others])}
        for kind, values in found.items():
            every[kind].append(values)
            show(name, kind, values)
    for kind, parts in every.items():
        show("all", kind, np.concatenate(parts))


def show(name: str, kind: str, values: np.ndarray) -> None:
    """Print a row of the table."""
    cells = [f"{value:.0f}" for value in np.quantile(values, QUANTILES)]
    print(f"| {name} | {kind} | {' | '.join(cells)} | {(values >= 50).mean():.0%} |", flush=True)


if __name__ == "__main__":
    main()
