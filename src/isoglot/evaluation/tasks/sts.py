"""Semantic textual similarity: whether the cosine of two sentences ranks pairs as people do.

One core for every set: pairs with a gold score, the cosine of their vectors, and its correlation with gold over all
pairs of a subset at once, never over batches. A pair without a gold score takes no part. Where a set comes from, and
in which files, is the business of `sts_files.py` and `sts_sets.py`; the English sets, which have corpora inside, are
in `sts_english.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, units_of
from isoglot.evaluation.codes import among
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.vectors import embed, unit

CORRELATIONS = ("spearman", "pearson")

_SHOWN = 10  # pairs in the table of mistakes
_LETTERS = 300  # of a sentence in that table: some sets pair whole articles

Items = NDArray[np.float32]  # (n, 2): gold, cosine


@dataclass(frozen=True, slots=True)
class Pairs:
    """The labelled pairs of a subset: two sides of N sentences, N gold scores that grow with similarity, N places.

    `places` say where each pair was read (`file:line`).
    """

    sides: tuple[tuple[str, ...], tuple[str, ...]]
    gold: tuple[float, ...]
    places: tuple[str, ...]


def joined(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of several parts, one part after the other."""
    first, second = (tuple(chain.from_iterable(pairs.sides[side] for pairs in parts)) for side in (0, 1))
    gold = tuple(chain.from_iterable(pairs.gold for pairs in parts))
    return Pairs((first, second), gold, tuple(chain.from_iterable(pairs.places for pairs in parts)))


# Reads the pairs of a subset when it is called with `where=`, the task and subset that open its messages.
Read = Callable[..., Pairs]
# What a folder holds of a set: subset -> how to read it.
Find = Callable[[Path], Mapping[str, Read]]


def correlation_metric(name: str) -> Metric:
    """A correlation. Spearman is the main number; of the ways to put corpora together, that of all pairs."""
    return Metric(name, "correlation", main=name in ("spearman", "spearman/all"))


@dataclass(frozen=True, slots=True)
class Sts:
    """A set in several languages: Spearman and Pearson of each subset, then averages.

    `find` tells which subsets a folder has. `lists` are averages given when all of their subsets were evaluated;
    `mean` is over whatever was.
    """

    metrics: ClassVar[tuple[Metric, ...]] = tuple(map(correlation_metric, CORRELATIONS))
    name: str
    needs: str
    find: Find
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The subsets whose files are there, in the order of the set."""
        return chosen(self.find(data), languages)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Both correlations of each subset, then of each list, then the `mean`."""
        readers, scores = self.find(data), list[Score]()
        for subset in chosen(readers, languages):
            where = f"{self.name} {subset}"
            pairs = readers[subset](where=where)
            items = judge(encode, pairs, where=where, languages=sides(subset))
            details = (mistakes(pairs, items),)
            scores += [correlation(self.name, subset, kind, items=items, details=details) for kind in CORRELATIONS]
        lists = [average for name, over in self.lists.items() for average in averages(scores, name, over=over)]
        return [*scores, *lists, *averages(scores, "mean")]


def chosen(subsets: Mapping[str, Any], languages: Sequence[str]) -> tuple[str, ...]:
    """Those of the subsets whose languages were all asked for. English beside another need not be."""
    return tuple(subset for subset in subsets if _asked(set(sides(subset)), languages))


def sides(subset: str) -> tuple[str, str]:
    """The languages of the two sides of `deu-eng`, of `deu` (the same twice) and of `spa-eng-4b`."""
    codes = subset.split("-")
    return codes[0], codes[1] if len(codes) > 1 else codes[0]


def judge(encode: Encode, pairs: Pairs, *, where: str, languages: tuple[str, str]) -> Items:
    """Gold and cosine of each pair. The cosine of a zero vector with anything is 0.

    Raises `EvaluationError` for vectors that cannot be used, and for pairs whose gold scores do not differ.
    """
    if len(set(pairs.gold)) < 2:
        raise EvaluationError(
            f"{where}: its {len(pairs.gold)} labelled pairs have no two different scores, so nothing can be ranked; "
            "give more pairs"
        )
    tables = embed_sides(encode, pairs, where=where, languages=languages)
    # Rounded to what single precision tells apart at 1, so that all pairs of equal sentences tie there, and all that
    # have nothing in common tie at 0, where rounding of the vectors alone would rank them.
    first, second = (unit(table) for table in tables)
    cosines = np.einsum("nd,nd->n", first, second).round(7) + 0.0  # no -0
    return np.stack([np.array(pairs.gold), cosines], axis=1).astype(np.float32)


def embed_sides(
    encode: Encode, pairs: Pairs, *, where: str, languages: tuple[str, str]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Vectors (N, D) of the first and of the second sentences. Raises `EvaluationError` with the language and place."""
    first, second = (
        embed(encode, side, where=f"{where}, sentence {number}, language {language}", place=pairs.places.__getitem__)
        for number, (side, language) in enumerate(zip(pairs.sides, languages, strict=True), 1)
    )
    return first, second


def correlation(
    task: str, subset: str, kind: str, *, items: Items, metric: str = "", details: tuple[Detail, ...] = ()
) -> Score:
    """The score of gold against cosine, `kind` being one of `CORRELATIONS`. Only Spearman shows the mistakes."""
    value = STATISTICS[kind](items)
    shown, units = details if kind == "spearman" else (), units_of(items[:, 0])
    named = correlation_metric(metric or kind)
    return named.score(task, subset, value, len(items), items=items, statistic=kind, units=units, details=shown)


def mistakes(pairs: Pairs, items: Items) -> Detail:
    """The ten pairs whose ranks by gold and by cosine differ most, worst first.

    The difference is a share of the pairs: 0.5 is a pair that the cosine puts half the list nearer than people do,
    -0.5 one that it puts half the list farther apart.
    """
    from scipy.stats import rankdata

    gold, cosine = (rankdata(column) for column in items.T)
    differences = (cosine - gold) / len(items)
    worst = np.argsort(-np.abs(differences), kind="stable")[:_SHOWN]
    first, second = pairs.sides
    rows = tuple(
        (_short(first[at]), _short(second[at]), pairs.gold[at], float(items[at, 1]), float(differences[at]))
        for at in worst
    )
    return Detail("mistakes", ("sentence 1", "sentence 2", "gold", "cosine", "rank difference"), rows)


def _asked(codes: set[str], languages: Sequence[str]) -> bool:
    return all(among(code, languages) for code in codes - {"eng"} or codes)


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..."
