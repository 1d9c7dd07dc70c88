"""BUCC 2018: find the pairs of translations hidden in two piles of sentences most of which have no partner.

What is special here: the papers share the data and the name of the task, and little else. They differ in margin, k,
repeated sentences, and above all in which pairs the threshold is tuned on and which are scored; so each has its own
name and no number of one may be held against another's. The miner is `search.mine` and the threshold `search.tune`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages
from isoglot.evaluation.tasks.bucc_data import SAMPLE, TRAINING, Side, Split, golds, load
from isoglot.evaluation.tasks.bucc_design import DESIGNS, Cut, Mined
from isoglot.evaluation.vectors import embed
from isoglot.search.pairs import Pairs, mine
from isoglot.search.threshold import quality

POSITIVE = float(np.nextafter(0, 1))  # a threshold below which lies exactly what is not greater than 0
MISTAKES = 10
METRICS = Metric("f1", main=True), Metric("precision"), Metric("recall")


@dataclass(frozen=True, slots=True)
class Mining:
    """A mining task: how pairs are mined, and by which design the threshold is tuned and the rest scored.

    `k`, `margin`, `direction` and `floor` (the lowest score ever kept) are those of `search.mine`. `repeated` names
    what becomes of a sentence that stands in its file more than once: "merged" takes part once and in no pair that
    counts, since nobody can say which of its ids is meant; "kept" leaves the copies to compete. `design`: see
    `DESIGNS`. Subsets are named as the files are (`zh-en`).
    """

    metrics: ClassVar[tuple[Metric, ...]] = METRICS
    name: str
    k: int = 4
    margin: str = "ratio"
    direction: str = "max"
    floor: float | None = None
    repeated: str = "merged"
    design: str = "transfer"

    @property
    def needs(self) -> str:
        """The files of one pair, and where they are published."""
        names = {SAMPLE: "sample (XTREME: dev)", TRAINING: "training (XTREME: test)"}
        splits = " and ".join(names[split] for split in DESIGNS[self.design][0])
        return (
            f"files <xx>-en.<split>.<xx>, .en and .gold of the split {splits}, as in BUCC 2018 of "
            "https://comparable.limsi.fr/bucc2018/ or in the download of XTREME"
        )

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The pairs whose gold is there for every split that the design needs."""
        return tuple(golds(data, DESIGNS[self.design][0], languages=languages))

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """F1, precision and recall of each pair, then their `mean`. The items of f1 are counts for each source."""
        splits, design = DESIGNS[self.design]
        scores: list[Score] = []
        for pair, paths in golds(data, splits, languages=languages).items():
            mined = [self._mine(encode, load(paths[split], task=self.name)) for split in splits]
            scores += self._score(pair, mined[-1], list(design(*mined)))
        return scores + averages(scores, "mean")

    def _mine(self, encode: Encode, split: Split) -> Mined:
        sources, source_sure = _distinct(split.source, self.repeated)
        targets, target_sure = _distinct(split.target, self.repeated)
        x, y = _embed(encode, split, split.source)[sources], _embed(encode, split, split.target)[targets]
        pairs = mine(x, y, k=self.k, margin=self.margin, direction=self.direction, threshold=self.floor)
        sure = source_sure[pairs.source] & target_sure[pairs.target]
        return Mined(split, Pairs(sources[pairs.source[sure]], targets[pairs.target[sure]], pairs.score[sure]))

    def _score(self, subset: str, mined: Mined, cuts: Sequence[Cut]) -> list[Score]:
        kept = _together([cut.kept for cut in cuts])
        found, items = quality(kept, mined.split.gold), _items(kept, mined.split)
        details = (self._mining(cuts), _mistakes(kept, mined.split))
        values = found.f1, found.precision, found.recall
        f1, *rest = (
            metric.score(self.name, subset, value, len(items), items=items, statistic=metric.name)
            for metric, value in zip(METRICS, values, strict=True)
        )
        return [replace(f1, details=details), *rest]

    def _mining(self, cuts: Sequence[Cut]) -> Detail:
        columns = ("tuned on", "scored on", "threshold", "f1 tuned", "kept", "gold", "margin", "k", "direction")
        rows: list[tuple[str | float, ...]] = []
        for cut in cuts:
            threshold = cut.tuned.threshold if np.isfinite(cut.tuned.threshold) else "none: nothing right was mined"
            counts = (len(cut.kept), len(cut.gold))
            rows.append(
                (cut.tuned_on, cut.scored_on, threshold, cut.tuned.f1, *counts, self.margin, self.k, self.direction)
            )
        return Detail("mining", columns, tuple(rows))


MINING: tuple[Mining, ...] = (
    Mining("bucc/xtreme", floor=POSITIVE),
    Mining("bucc/oracle", floor=POSITIVE, repeated="kept", design="same"),
    Mining("bucc/moco", k=3, margin="distance"),
    Mining("bucc/ease", k=1, margin="absolute", direction="forward"),
    Mining("bucc/dev-split", floor=POSITIVE, design="halves"),
)


def _embed(encode: Encode, split: Split, side: Side) -> NDArray[np.float32]:
    # All lines, repeated ones too, so that a message names the line of the file.
    where = f"{split.where}, {split.name}, language {side.language}"
    return embed(encode, side.texts, where=where, place=lambda row: f"{side.path}:{row + 1}")


def _distinct(side: Side, repeated: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The rows that take part, and of each of them whether its pairs count."""
    if repeated == "kept":
        return np.arange(len(side.texts)), np.ones(len(side.texts), np.bool_)
    first: dict[str, int] = {}
    for row, text in enumerate(side.texts):
        first.setdefault(text, row)
    counts = Counter(side.texts)
    return np.array([*first.values()], np.int64), np.array([counts[text] == 1 for text in first], np.bool_)


def _together(parts: Sequence[Pairs]) -> Pairs:
    """The pairs of all parts, best first."""
    source, target = (np.concatenate([getattr(part, name) for part in parts]) for name in ("source", "target"))
    score = np.concatenate([part.score for part in parts])
    order = np.lexsort((target, source, -score))
    return Pairs(source[order], target[order], score[order])


def _items(kept: Pairs, split: Split) -> NDArray[np.float32]:
    """Of each source sentence: how many of its pairs are right, kept, and gold, (N, 3)."""
    items = np.zeros((len(split.source.ids), 3), np.float32)
    known = set(split.gold)
    for source, target in zip(kept.source.tolist(), kept.target.tolist(), strict=True):
        items[source, 0] += (source, target) in known
        items[source, 1] += 1
    for source, _ in split.gold:
        items[source, 2] += 1
    return items


def _mistakes(kept: Pairs, split: Split) -> Detail:
    """The wrong pairs of the best scores; where a source has several translations, the first is the one expected."""
    known, expected = set(split.gold), dict(reversed(split.gold))
    rows: list[tuple[str | float, ...]] = []
    for source, target, score in zip(kept.source.tolist(), kept.target.tolist(), kept.score.tolist(), strict=True):
        if (source, target) not in known and len(rows) < MISTAKES:
            right = split.target.texts[expected[source]] if source in expected else ""
            rows.append((split.source.texts[source], split.target.texts[target], right, score))
    return Detail("mistakes", ("source", "found", "expected", "score"), tuple(rows))
