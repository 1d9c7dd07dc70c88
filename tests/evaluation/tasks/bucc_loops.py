"""The mining protocols in plain loops, from their description, on texts and ids as LASER's scripts pass them on.

Step by step: identical lines merged, pairs mined, texts mapped back to ids, the threshold found by walking down the
list, pairs at or above it predicted.
"""

from __future__ import annotations

from fractions import Fraction

import search_loops

INFINITY = float("inf")


def candidates(sources, targets, vector, *, k, margin, direction):
    """(score, source, target) of distinct lines, best first; ties by place."""
    vectors = ([vector(line) for line in side] for side in (sources, targets))
    return [(score, sources[i], targets[j]) for score, i, j in search_loops.mine(*vectors, k, margin, direction)]


def mine(sources, targets, vector, *, k, margin, direction, positive, merged):
    """(score, source id, target id), best first, of files given as lists of (id, text)."""
    if not merged:  # the ids replace the texts, and no two are the same
        texts, ids = dict([*sources, *targets]), [[key for key, _ in side] for side in (sources, targets)]
        pairs = candidates(*ids, lambda key: vector(texts[key]), k=k, margin=margin, direction=direction)
        return [pair for pair in pairs if not positive or pair[0] > 0]
    files = [[*dict.fromkeys(text for _, text in side)] for side in (sources, targets)]
    found = candidates(*files, vector, k=k, margin=margin, direction=direction)
    ids = []
    for side in (sources, targets):
        known, repeated = {}, set()
        for key, text in side:
            if text in known:
                repeated.add(text)
            known[text] = key
        ids.append({text: key for text, key in known.items() if text not in repeated})
    return [
        (value, ids[0][source], ids[1][target])
        for value, source, target in found
        if source in ids[0] and target in ids[1] and (not positive or value > 0)
    ]


def walk(items, gold):
    """The threshold of the best F1; where scores are equal the list cannot be cut."""
    right, best, threshold = 0, Fraction(0), INFINITY
    for n, (score, *pair) in enumerate(items):
        right += tuple(pair) in gold
        last = n + 1 == len(items)
        if not last and items[n + 1][0] == score:
            continue
        if right:
            precision, recall = Fraction(right, n + 1), Fraction(right, len(gold))
            f1 = 2 * precision * recall / (precision + recall)
            if f1 > best:
                best = f1
                below = items[n + 1][0] if not last else score
                threshold = below + (score - below) / 2
    return threshold


def measure(predicted, gold):
    """F1, precision and recall of a set of id pairs."""
    right = len(predicted & gold)
    precision = right / len(predicted) if predicted else 0.0
    recall = right / len(gold)
    return (2 * precision * recall / (precision + recall) if right else 0.0), precision, recall


def above(items, threshold):
    return {tuple(pair) for score, *pair in items if score >= threshold}


def weighted(labels, answers):
    """Accuracy, and precision, recall and F1 of each label, averaged by how often the label is asked for."""
    n = len(labels)
    totals = [0.0, 0.0, 0.0]
    for label in set(labels):
        asked = sum(other == label for other in labels)
        answered = sum(answer == label for answer in answers)
        both = sum(other == answer == label for other, answer in zip(labels, answers, strict=True))
        precision, recall = both / answered if answered else 0.0, both / asked
        f1 = 2 * precision * recall / (precision + recall) if both else 0.0
        totals = [t + asked / n * part for t, part in zip(totals, (precision, recall, f1), strict=True)]
    return sum(a == b for a, b in zip(labels, answers, strict=True)) / n, *totals
