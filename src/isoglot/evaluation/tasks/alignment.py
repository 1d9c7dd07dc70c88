"""Alignment and uniformity: how near pairs of one meaning lie, and how evenly sentences fill the sphere.

Wang and Isola 2020, "Understanding Contrastive Representation Learning through Alignment and Uniformity on the
Hypersphere", as EASE reports them (figure 3): positive pairs are those of a similarity set with a gold score of at
least 4. Both values are taken over the whole set. A mean of batches, as some code gives, depends on the batch size:
the logarithm stands outside the mean. Both are made of distances: lower is better, and they are no shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Encode, Metric, Score, averages, units_of
from isoglot.evaluation.tasks.sts import Find, Pairs, chosen, embed_sides, joined, sides
from isoglot.evaluation.tasks.sts_english import ENGLISH, find_stsb_english
from isoglot.evaluation.tasks.sts_sets import EXTENDED_10, STS17_NEEDS, find_sts17
from isoglot.evaluation.vectors import unit

POSITIVE = 4.0  # the gold score from which a pair counts as of one meaning
POOLED = "pooled-10"

_BLOCK = 2048  # sentences on each side of a block of distances: 32 MiB
METRICS = tuple(
    Metric(name, "plain", lower_is_better=True, main=True) for name in ("alignment", "uniformity")
)  # either alone is easily perfect


@dataclass(frozen=True, slots=True)
class Alignment:
    """Both values of each subset of a similarity set.

    `pools` are subsets of their own, each made of all pairs of the subsets it names, and given when all of them were
    evaluated. `lists` are averages, likewise; the `mean` of several subsets is over whatever was evaluated, without
    the pools.
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    name: str
    needs: str
    find: Find
    pools: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The subsets whose files are there, then the pools."""
        single = chosen(self.find(data), languages)
        return (*single, *(pool for pool, parts in self.pools.items() if set(parts) <= set(single)))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """`alignment` and `uniformity` of each subset and pool, then the averages."""
        readers = self.find(data)
        pairs = {name: readers[name](where=f"{self.name} {name}") for name in chosen(readers, languages)}
        single = tuple(pairs)
        pairs |= {
            pool: joined([pairs[p] for p in over]) for pool, over in self.pools.items() if set(over) <= set(single)
        }
        scores = [score for subset in pairs for score in _scores(encode, pairs[subset], task=self.name, subset=subset)]
        lists = {**self.lists, **({"mean": single} if len(single) > 1 else {})}
        return [*scores, *(average for name, over in lists.items() for average in averages(scores, name, over=over))]


def alignment(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Squared distances (N,) of unit vectors of N pairs (N, D): 0 to 4. Their mean is the alignment."""
    differences = unit(first) - unit(second)
    return np.asarray(np.einsum("nd,nd->n", differences, differences))


def uniformity(rows: NDArray[Any], *, block: int = _BLOCK) -> float:
    """The logarithm of the mean of exp(-2 d²) over all N (N - 1) / 2 pairs of N > 1 vectors, made unit vectors.

    -8 to 0; 0 when all are the same. `block` bounds the memory and changes nothing but the last digits.
    """
    from sklearn.metrics.pairwise import euclidean_distances

    units, total = unit(rows), 0.0
    for start in range(0, len(units), block):
        for other in range(start, len(units), block):
            squares = euclidean_distances(units[start : start + block], units[other : other + block], squared=True)
            kernel = np.exp(-2 * squares)
            total += float(np.triu(kernel, 1).sum() if other == start else kernel.sum())
    return float(np.log(total / (len(units) * (len(units) - 1) / 2)))


def _scores(encode: Encode, pairs: Pairs, *, task: str, subset: str) -> list[Score]:
    texts = list(chain(*pairs.sides))
    distinct = sorted({text: row for row, text in reversed(list(enumerate(texts)))}.values())
    positive = np.array(pairs.gold) >= POSITIVE
    if len(distinct) < 2:
        raise EvaluationError(f"{task} {subset}: all of its sentences are the same one; give a set with others")
    if not positive.any():
        raise EvaluationError(
            f"{task} {subset}: none of its {len(pairs.gold)} labelled pairs has a score of {POSITIVE:g} or more; "
            "give a set with pairs of one meaning, on the scale 0 to 5"
        )
    first, second = embed_sides(encode, pairs, where=f"{task} {subset}", languages=sides(subset))
    squares = alignment(first[positive], second[positive]).astype(np.float32)
    rows = np.concatenate([first, second])[distinct]
    value, units = float(squares.mean(dtype=np.float64)), units_of(pairs.gold)
    return [
        METRICS[0].score(task, subset, value, len(squares), items=squares, units=units),
        METRICS[1].score(task, subset, uniformity(rows), len(rows)),
    ]


def _dev(data: Path) -> dict[str, Any]:
    found = find_stsb_english(data, "dev")
    return {"eng": found[""]} if found else {}


ALIGNMENT: dict[str, Alignment] = {
    task.name: task
    for task in (
        Alignment("alignment", ENGLISH["sts-b/dev"].needs, _dev),
        Alignment("alignment/sts17", STS17_NEEDS, find_sts17, {POOLED: EXTENDED_10}, {"extended-10": EXTENDED_10}),
    )
}
