"""The papers' equations in plain loops: the readable specification against which the fast code is checked.

Rows are dictionaries with `vector` (list of floats), `group`, `key` and `slot`; no tensors, no tricks, no masks.
"""

from __future__ import annotations

import math
from typing import Any

Row = dict[str, Any]


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / (math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b)))


def same_meaning_elsewhere(anchor: Row, other: Row) -> bool:
    """Neither positive nor negative: another group with the same key."""
    return other["slot"] >= 0 and other["key"] == anchor["key"] and other["group"] != anchor["group"]


def info_nce(rows: list[Row], temperature: float, hard_negative_weight: float = 0.0) -> float:
    """mSimCSE eq. 1 / SimCSE eq. 5: -log exp(s(i, i+)/T) / sum_j [exp(s(i, j+)/T) + exp(s(i, j-)/T)], mean over i.

    Several positives share the target equally, outside the logarithm.
    """
    losses = []
    for anchor in (row for row in rows if row["slot"] == 0):
        total, positives = 0.0, []
        for other in rows:
            if other["slot"] == 0 or same_meaning_elsewhere(anchor, other):
                continue
            logit = cosine(anchor["vector"], other["vector"]) / temperature
            own = other["group"] == anchor["group"]
            if own and other["slot"] < 0:
                logit += hard_negative_weight
            if own and other["slot"] > 0:
                positives.append(logit)
            total += math.exp(logit)
        if positives:
            losses.append(sum(math.log(total) - logit for logit in positives) / len(positives))
    return sum(losses) / len(losses) if losses else 0.0


def info_nce_back(rows: list[Row], temperature: float) -> float:
    """The other direction of two-way InfoNCE: anchors are the other slots, candidates the slots 0."""
    losses = []
    for anchor in (row for row in rows if row["slot"] > 0):
        candidates = [row for row in rows if row["slot"] == 0 and not same_meaning_elsewhere(anchor, row)]
        logits = [cosine(anchor["vector"], row["vector"]) / temperature for row in candidates]
        positives = [s for s, row in zip(logits, candidates, strict=True) if row["group"] == anchor["group"]]
        if positives:
            total = math.log(sum(math.exp(s) for s in logits))
            losses.append(sum(total - s for s in positives) / len(positives))
    return sum(losses) / len(losses) if losses else 0.0


def multi_positive(
    rows: list[Row],
    temperature: float,
    rescale: str = "off",
    anchors: str = "first",
    candidates: str = "batch",
    hard_negatives: str = "shared",
) -> float:
    """MPCL eq. 2: -log  sum_k exp(s(h_i, h_i^k)/T) / sum_{j != i} exp(s(h_i, h_j)/T), mean over anchors.

    Section 3.3: similarities are stretched by min-max to [-1/T, 1/T]; here over the cells of the denominators.
    """
    cells: dict[int, dict[int, float]] = {}
    for i, anchor in enumerate(rows):
        if anchor["slot"] != 0 if anchors == "first" else anchor["slot"] < 0:
            continue
        cells[i] = {}
        for j, other in enumerate(rows):
            foreign_hard = other["slot"] < 0 and other["group"] != anchor["group"]
            if (
                j == i
                or same_meaning_elsewhere(anchor, other)
                or (candidates == "non-anchors" and other["slot"] == 0)
                or (hard_negatives == "own" and foreign_hard)
            ):
                continue
            cells[i][j] = cosine(anchor["vector"], other["vector"])
    everything = [s for row in cells.values() for s in row.values()]
    losses = []
    for i, row in cells.items():
        if rescale != "off" and row:
            scope = everything if rescale == "matrix" else list(row.values())
            low, high = min(scope), max(scope)
            row = {j: 2 * (s - low) / max(high - low, 1e-6) - 1 for j, s in row.items()}
        positives = [
            math.exp(s / temperature)
            for j, s in row.items()
            if rows[j]["group"] == rows[i]["group"] and rows[j]["slot"] >= 0
        ]
        if positives:
            losses.append(-math.log(sum(positives) / sum(math.exp(s / temperature) for s in row.values())))
    return sum(losses) / len(losses) if losses else 0.0
