"""Neighbours, margins, mining and thresholds in plain loops, as the papers and LASER's miner describe them."""

import numpy as np


def assert_same(one, other):
    """Equal parts of two results, to the last bit."""
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


def whole(rng, rows, dim, spread=2):
    """Small whole numbers: inner products are exact in any order, and ties abound."""
    return rng.integers(-spread, spread + 1, (rows, dim)).astype("float32")


def dot(a, b):
    return sum(p * q for p, q in zip(*(np.asarray(each, float).tolist() for each in (a, b)), strict=True))


def cosine(a, b):
    lengths = (dot(a, a) * dot(b, b)) ** 0.5
    return dot(a, b) / lengths if lengths else 0.0


def top(x, y, k, similarity=dot):
    """For each row of x: the k (score, id) of y, by score descending, then id ascending."""
    out = []
    for row in x:
        scored = [(similarity(row, other), j) for j, other in enumerate(y)]
        out.append(sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:k])
    return out


def margin(kind, cos, mean_x, mean_y):
    """Artetxe and Schwenk 2019, eq. 2 and 3, with the floor under the denominator."""
    around = (mean_x + mean_y) / 2
    if kind == "absolute":
        return cos
    if kind == "distance":
        return cos - around
    return cos / max(around, 1e-6)


def mine(x, y, k, kind, direction):
    """(score, source, target), best first."""
    forward_top, backward_top = top(x, y, k, cosine), top(y, x, k, cosine)
    mean_x = [sum(score for score, _ in row) / len(row) for row in forward_top]
    mean_y = [sum(score for score, _ in row) / len(row) for row in backward_top]
    forward, backward = [], []
    for i, row in enumerate(forward_top):
        scored = [(margin(kind, cos, mean_x[i], mean_y[j]), j) for cos, j in row]
        score, j = min(scored, key=lambda pair: (-pair[0], pair[1]))
        forward.append((score, i, j))
    for j, row in enumerate(backward_top):
        scored = [(margin(kind, cos, mean_x[i], mean_y[j]), i) for cos, i in row]
        score, i = min(scored, key=lambda pair: (-pair[0], pair[1]))
        backward.append((score, i, j))
    order = lambda pair: (-pair[0], pair[1], pair[2])  # noqa: E731
    if direction == "forward":
        return sorted(forward, key=order)
    if direction == "backward":
        return sorted(backward, key=order)
    if direction == "intersection":
        known = {(i, j) for _, i, j in forward}
        return sorted([pair for pair in backward if pair[1:] in known], key=order)
    kept, sources, targets = [], set(), set()
    for score, i, j in sorted(forward + backward, key=order):
        if i not in sources and j not in targets:
            kept.append((score, i, j))
            sources.add(i)
            targets.add(j)
    return kept


def f1(kept, gold):
    right = sum(pair in gold for pair in kept)
    precision, recall = right / len(kept) if kept else 0.0, right / len(gold)
    return 2 * precision * recall / (precision + recall) if right else 0.0


def best_f1(scores, pairs, gold):
    """Best F1 over every threshold that can be told from the others: each score, and above all of them."""
    cuts = [float("inf"), *scores]
    return max(f1([pair for score, pair in zip(scores, pairs, strict=True) if score >= cut], gold) for cut in cuts)
