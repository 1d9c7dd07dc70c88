"""What explains three surprises in the table of known models, measured. The text of docs/results.md quotes it.

    python scripts/known_models_why.py DATA KNOWN [--cache FOLDER]

Why e5 finds more translations than USE in Tatoeba and mines fewer: how far the cosines of BUCC's gold pairs lie from
those of the best that other sentences find. What its prompt costs: Tatoeba with the prompt, and with the prompt but
its tokens left out of the mean. Why accuracies on MewsC-16 are low: the share of the largest category in each language,
beside the accuracy in KNOWN, the folder that comparison.py wrote.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from torch import Tensor

import isoglot
from isoglot.encoders.pooling import POOLINGS, Pooling, mean
from isoglot.evaluation import TASKS
from isoglot.evaluation.run import function
from isoglot.evaluation.scores import read_results
from isoglot.evaluation.tasks.bucc import SAMPLE, find, load
from isoglot.evaluation.vectors import unit

PROMPT, LANGUAGES = "query: ", ("pms", "kab", "nds", "tat", "swh", "deu")


def mining(data: Path, cache: Path | None) -> Iterator[str]:
    """For each model: gold pairs found as nearest, and how well one threshold separates gold pairs from others."""
    split = load("zh-en", find("bucc", ("bucc2018",), data)["zh-en"][SAMPLE], task="bucc")
    rows, columns = (np.array(side) for side in zip(*split.gold, strict=True))
    for model in ("multilingual-e5-small", "use-multilingual-v3"):
        vectors = function(model, cache=cache)
        source, target = (unit(vectors(side.texts())) for side in (split.source, split.target))
        cosines = source @ target.T
        best = cosines.max(axis=1)
        others = np.delete(best, rows)
        gold = cosines[rows, columns]
        apart = (gold.mean() - others.mean()) / np.sqrt((gold.var() + others.var()) / 2)
        area = roc_auc_score(np.repeat([1, 0], [len(gold), len(others)]), np.r_[gold, others])
        found = (cosines[rows].argmax(axis=1) == columns).mean()
        yield (
            f"{model}: of {len(gold)} gold pairs {found:.1%} nearest; cosines {gold.mean():.3f} ± {gold.std():.3f}, "
            f"best of others {others.mean():.3f} ± {others.std():.3f}, {apart:.2f} deviations apart, area {area:.3f}"
        )


def prompting(data: Path) -> Iterator[str]:
    """Accuracy on Tatoeba, mean of both ways: plain, with the prompt, and with its tokens left out of the mean."""
    encoder = isoglot.load("multilingual-e5-small", engine="torch")
    taken = len(encoder.tokenizer.backend_tokenizer.encode(PROMPT.strip(), add_special_tokens=False).ids)

    def text_alone(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
        kept = states[-1].new_ones(states[-1].shape[:2]) if mask is None else mask.clone()
        kept[:, 1 : 1 + taken] = 0
        return mean(states, kept)

    POOLINGS["text-alone"] = Pooling(text_alone)
    for prompt, pooling in (("", "mean"), (PROMPT, "mean"), (PROMPT, "text-alone")):
        encoder.prompt, encoder.pooling = prompt, pooling
        scores = isoglot.evaluate(encoder, ["tatoeba"], data=data, languages=LANGUAGES)
        values = {s.subset[:3]: s.value for s in scores if s.metric == "accuracy/mean" and s.subset.endswith("-eng")}
        shown = ", ".join(f"{code} {values[code]:.1%}" for code in LANGUAGES)
        yield f"prompt {prompt!r}, {taken} tokens, pooling {pooling}: {shown}"


def majorities(data: Path, known: Path) -> Iterator[str]:
    """The share of the largest category of each language of MewsC-16, and what each model reaches."""
    counts = {code: Counter(one.read("t").labels) for code, one in TASKS["mewsc-16"].find(data).items()}
    shares = {code: max(found.values()) / found.total() for code, found in counts.items()}
    yield "largest category: " + ", ".join(f"{code} {share:.1%}" for code, share in shares.items())
    for results in map(read_results, sorted(path.parent for path in known.glob("*/mewsc-16/results.json"))):
        values = {s.subset: s.value for s in results if (s.task, s.metric) == ("mewsc-16", "accuracy")}
        if values:
            together = np.corrcoef([shares[code] for code in shares], [values[code] for code in shares])[0, 1]
            shown = ", ".join(f"{code} {values[code]:.1%}" for code in shares)
            yield f"{results.model}: {shown}; correlation with the largest category {together:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("known", type=Path)
    parser.add_argument("--cache", type=Path)
    words = parser.parse_args()
    for lines in (mining(words.data, words.cache), prompting(words.data), majorities(words.data, words.known)):
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
