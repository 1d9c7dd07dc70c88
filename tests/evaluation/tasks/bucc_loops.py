"""The mining protocols in plain loops, from their description, on texts and ids as LASER's scripts pass them on.

Step by step: identical lines merged, neighbours both ways, a margin for each candidate, one of two retrievals, texts
mapped back to ids, the threshold found by walking down the list, pairs at or above it predicted.
"""

from __future__ import annotations

from fractions import Fraction

from oracle import cosine

INFINITY = float("inf")


def candidates(sources, targets, vector, *, k, margin, direction):
    """(score, source, target) of distinct lines, best first; ties by place."""
    cos = [[cosine(vector(s), vector(t)) for t in targets] for s in sources]
    near_source = [sorted(range(len(targets)), key=lambda j, i=i: (-cos[i][j], j))[:k] for i in range(len(sources))]
    near_target = [sorted(range(len(sources)), key=lambda i, j=j: (-cos[i][j], i))[:k] for j in range(len(targets))]
    mean_source = [sum(cos[i][j] for j in near) / len(near) for i, near in enumerate(near_source)]
    mean_target = [sum(cos[i][j] for i in near) / len(near) for j, near in enumerate(near_target)]

    def score(i, j):
        around = (mean_source[i] + mean_target[j]) / 2
        return {"ratio": cos[i][j] / max(around, 1e-6), "distance": cos[i][j] - around, "absolute": cos[i][j]}[margin]

    forward = [max((score(i, j), -i, -j) for j in near) for i, near in enumerate(near_source)]
    backward = [max((score(i, j), -i, -j) for i in near) for j, near in enumerate(near_target)]
    chosen, seen_sources, seen_targets = [], set(), set()
    for value, minus_i, minus_j in sorted(forward + (backward if direction == "max" else []), reverse=True):
        i, j = -minus_i, -minus_j
        if direction == "forward" or (i not in seen_sources and j not in seen_targets):
            seen_sources.add(i)
            seen_targets.add(j)
            chosen.append((value, sources[i], targets[j]))
    return chosen


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
