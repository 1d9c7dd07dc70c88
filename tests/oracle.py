"""The papers' equations in plain loops: the readable specification against which the fast code is checked.

Rows are dictionaries with `vector` (list of floats), `group`, `key` and `slot`; no tensors, no tricks, no masks.
"""

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


# Contrastive Tension, and the softmax over pairs


def contrastive_tension(rows: list[Row], negatives: int) -> float:
    """Carlsson et al. 2021: binary cross-entropy of f1(a) . f2(b), true if b is a; a vector is f1, then f2.

    Sentences by slot and group are cut into blocks of an anchor and its negatives; what is left over is in no pair.
    """
    sentences = sorted((row for row in rows if row["slot"] >= 0), key=lambda row: (row["slot"], row["group"]))
    losses = []
    for start in range(0, len(sentences) - negatives, negatives + 1):
        anchor = sentences[start]
        for other in sentences[start : start + negatives + 1]:
            half = len(anchor["vector"]) // 2
            score = sum(a * b for a, b in zip(anchor["vector"][:half], other["vector"][half:], strict=True))
            if other is anchor:
                losses.append(math.log(1 + math.exp(-score)))
            elif other["group"] != anchor["group"] and other["key"] != anchor["key"]:
                losses.append(math.log(1 + math.exp(score)))
    return sum(losses) / len(losses) if losses else 0.0


def pair_softmax(rows: list[Row], layers: list[tuple[list[list[float]], list[float]]], length_one: bool) -> float:
    """SBERT section 3 and MoCo-BERT appendix B: cross-entropy of a network over (u, v, |u - v|), without dropout.

    `layers` are weights, a list for each output, and biases; all but the last are followed by a ReLU.
    """
    losses = []
    for premise in (row for row in rows if row["slot"] == 0 and row["label"] >= 0):
        for hypothesis in (row for row in rows if row["slot"] == 1 and row["group"] == premise["group"]):
            u, v = premise["vector"], hypothesis["vector"]
            if length_one:
                u, v = ([x / math.sqrt(sum(y * y for y in w)) for x in w] for w in (u, v))
            state = [*u, *v, *(abs(a - b) for a, b in zip(u, v, strict=True))]
            for number, (weights, biases) in enumerate(layers):
                state = [
                    sum(w * x for w, x in zip(row, state, strict=True)) + b
                    for row, b in zip(weights, biases, strict=True)
                ]
                if number + 1 < len(layers):
                    state = [max(0.0, x) for x in state]
            total = sum(math.exp(x) for x in state)
            losses.append(math.log(total) - state[premise["label"]])
    return sum(losses) / len(losses) if losses else 0.0


# Soft contrastive alignment, and its controls


def softmax_of(cells: list[float]) -> list[float]:
    total = sum(math.exp(x) for x in cells)
    return [math.exp(x) / total for x in cells]


def soft_pairs(rows: list[Row]) -> list[tuple[Row, Row]]:
    """Slots 0 and 1 of the groups that have both."""
    return [
        (s, t) for s in rows for t in rows if s["group"] == t["group"] and (s["slot"], t["slot"]) == (0, 1)
    ]  # fmt: skip


def soft_similarities(pairs: list[tuple[Row, Row]], labels: str, ranks: list[int]) -> list[list[float]]:
    """What eq. 4 and 5 of Park et al. 2024 exponentiate, before the temperature; rows have `teacher`, `lang`."""

    def trusted(pair: tuple[Row, Row]) -> list[float]:
        s, t = pair
        found: list[float] = (s if ranks[s["lang"]] <= ranks[t["lang"]] else t)["teacher"]
        return found

    if labels == "priority":
        return [[cosine(trusted(a), trusted(b)) for b in pairs] for a in pairs]
    return [
        [(cosine(a[0]["teacher"], b[0]["teacher"]) + cosine(a[1]["teacher"], b[1]["teacher"])) / 2 for b in pairs]
        for a in pairs
    ]


def soft_cross_entropies(
    left: list[list[float]], right: list[list[float]], raw: list[list[float]] | None, temperature: float, cold: float
) -> tuple[float, float]:
    """L_row and L_col of eq. 2 for one matrix: each row's, and each column's, raw similarities have a softmax.

    Without raw similarities the labels are hard (eq. 3).
    """
    n = len(left)
    row_loss = column_loss = 0.0
    for i in range(n):
        of_row = softmax_of([cosine(left[i], right[j]) / temperature for j in range(n)])
        of_column = softmax_of([cosine(left[j], right[i]) / temperature for j in range(n)])
        if raw is None:
            w_row = w_column = [float(i == j) for j in range(n)]
        else:
            w_row = softmax_of([raw[i][j] / cold for j in range(n)])
            w_column = softmax_of([raw[j][i] / cold for j in range(n)])
        row_loss -= sum(w * math.log(p) for w, p in zip(w_row, of_row, strict=True)) / n
        column_loss -= sum(w * math.log(p) for w, p in zip(w_column, of_column, strict=True)) / n
    return row_loss, column_loss


def soft_contrastive(
    rows: list[Row], labels: str, ranks: list[int], temperature: float, cold: float, tcm: str, tcm_lambda: float
) -> tuple[float, float]:
    """Park et al. 2024: the weighted L_cross (eq. 2) and L_mono (eq. 6). `code` adds both of s-s and t-t."""
    pairs = soft_pairs(rows)
    if not pairs:
        return 0.0, 0.0
    s, t = [a["vector"] for a, _ in pairs], [b["vector"] for _, b in pairs]
    raw = None if labels == "hard" else soft_similarities(pairs, labels, ranks)
    cross = sum(soft_cross_entropies(s, t, raw, temperature, cold))
    of_s, of_t = (soft_cross_entropies(x, x, raw, temperature, cold) for x in (s, t))
    if tcm == "off":
        return cross, 0.0
    if tcm == "paper":
        return tcm_lambda * cross, of_s[1] + of_t[1]  # eq. 6 has the sum over n in the first place: columns
    return cross, sum(of_s) + sum(of_t)


def distillation(rows: list[Row], length_one: bool, places: list[int] | None = None, smallest: int = 2) -> float:
    """Reimers and Gurevych 2020: mean over the sentences of a group of |f(x) - g(s)|^2; g is unit.

    s is slot 0, or the sentence whose language (`lang`) has the least of `places`, the first of several.
    """

    def unit(v: list[float]) -> list[float]:
        length = math.sqrt(sum(x * x for x in v))
        return [x / length for x in v]

    squares = []
    for number in {row["group"] for row in rows}:
        group = [row for row in rows if row["group"] == number and row["slot"] >= 0]
        source = min(group, key=lambda row: (places[row["lang"]] if places else 0, row["slot"]))
        for row in group if len(group) >= smallest else []:
            student = unit(row["vector"]) if length_one else row["vector"]
            squares.append(sum((f - g) ** 2 for f, g in zip(student, unit(source["teacher"]), strict=True)))
    return sum(squares) / len(squares) if squares else 0.0


def additive_margin(rows: list[Row], margin: float, temperature: float, *, back: bool) -> float:
    """LaBSE eq. 1 and 2: the margin is taken off the positive's cosine in numerator and denominator."""
    losses = []
    for anchor in (row for row in rows if (row["slot"] > 0 if back else row["slot"] == 0)):
        others = [row for row in rows if (row["slot"] == 0) == back and not same_meaning_elsewhere(anchor, row)]
        logits = []
        for row in others:
            positive = row["group"] == anchor["group"] and row["slot"] >= 0
            logits.append((cosine(anchor["vector"], row["vector"]) - margin * positive) / temperature)
        own = [x for x, row in zip(logits, others, strict=True) if row["group"] == anchor["group"] and row["slot"] >= 0]
        if own:
            losses.append(math.log(sum(math.exp(x) for x in logits)) - sum(own) / len(own))
    return sum(losses) / len(losses) if losses else 0.0


# Wikipedia sentences (EASE)


def hard_negatives_allowed(entity, types, linked):
    """EASE (Nishikawa et al. 2022), section 3.2: for each type of the entity, all that may be its hard negatives on a
    page that links `linked`. A draw is a subset of one of them."""
    allowed = []
    for kind in types.get(entity, []):
        found = set()
        for other in types:
            if kind in types[other] and other != entity and other not in linked:
                found.add(other)
        allowed.append(found)
    return allowed or [set()]


def sample_of_instances(instances, size, share):
    """The sampling of EASE's data: at most `share` of an entity, then `size`, in the order of the random numbers.
    `instances` are pairs (random number, entity)."""
    kept, used = [], {}
    for number, entity in sorted(set(instances)):
        used[entity] = used.get(entity, 0) + 1
        if used[entity] <= share and len(kept) < size:
            kept.append(number)
    return kept


# Dual momentum contrast


def dual_momentum(
    rows: list[Row], queue: list[list[float]], known: list[int], temperature: float, *, slot: int, in_batch: bool
) -> float:
    """Wang, Zhao and Liu 2021, eq. 2: queries of a slot (0 or 1) against the keys (`key_vector`) of the other slot.

    `queue` holds earlier keys of the other slot and `known` the meaning of each; equal meanings are no negatives.
    """
    losses = []
    for query in (row for row in rows if row["slot"] == slot):
        pairs = [row for row in rows if row["slot"] == 1 - slot]
        pairs = [row for row in pairs if any(r["slot"] == slot and r["group"] == row["group"] for r in rows)]
        positive = [row for row in pairs if row["group"] == query["group"]]
        if not positive:
            continue
        others = [vector for vector, key in zip(queue, known, strict=True) if key != query["key"]]
        others += [row["key_vector"] for row in pairs if in_batch and row["key"] != query["key"]]
        pull = math.exp(cosine(query["vector"], positive[0]["key_vector"]) / temperature)
        push = sum(math.exp(cosine(query["vector"], other) / temperature) for other in others)
        losses.append(-math.log(pull / (pull + push)))
    return sum(losses) / len(losses) if losses else 0.0


# EASE, the entity term


def entity_contrast(
    rows: list[Row], projected: list[list[float]], temperature: float, own_hard_weight: float, duplicates: str
) -> float:
    """EASE eq. 2: -log exp(s(i, e_i)/T) / sum_j [exp(s(i, e_j)/T) + exp(s(i, e_j-)/T)], mean over i.

    A row has `entity` and `hard_entities`, places in `projected` or -1. The code adds a weight to own hard entities.
    """
    queries = [row for row in rows if row["slot"] == 0 and row["entity"] >= 0]
    losses = []
    for anchor in queries:
        positive = cosine(anchor["vector"], projected[anchor["entity"]]) / temperature
        total = math.exp(positive)
        for other in queries:
            elsewhere = [] if other is anchor else [other["entity"]]
            for entity in [*elsewhere, *other["hard_entities"]]:
                if entity < 0 or (duplicates == "dropped" and entity == anchor["entity"]):
                    continue
                logit = cosine(anchor["vector"], projected[entity]) / temperature
                total += math.exp(logit + (own_hard_weight if other is anchor else 0.0))
        losses.append(math.log(total) - positive)
    return sum(losses) / len(losses) if losses else 0.0


# Transforms: whitening and flow


def mean_and_covariance(rows: list[list[float]]) -> tuple[list[float], list[list[float]]]:
    """Su et al. 2021: mu_d = sum_i x_id / N; Sigma_de = sum_i (x_id - mu_d)(x_ie - mu_e) / (N - 1)."""
    count, dim = len(rows), len(rows[0])
    mean = [sum(row[d] for row in rows) / count for d in range(dim)]
    covariance = [
        [sum((row[d] - mean[d]) * (row[e] - mean[e]) for row in rows) / (count - 1) for e in range(dim)]
        for d in range(dim)
    ]
    return mean, covariance


def normal_log_density(z: list[float]) -> float:
    """log N(z; 0, I)."""
    return sum(-(value**2) / 2 - math.log(2 * math.pi) / 2 for value in z)


def glow_log_likelihood(x: list[float], weights: dict[str, Any], levels: int, depth: int) -> float:
    """Li et al. 2020, eq. 2: log N(f(x); 0, I) + log |det df/dx|, f of `levels` of `depth` steps, weights by name."""

    def norm(values: list[float], name: str) -> list[float]:
        shift, scale = weights[f"{name}.shift"], weights[f"{name}.log_scale"]
        return [(v + b) * math.exp(3 * s) for v, b, s in zip(values, shift, scale, strict=True)]

    def times(matrix: list[list[float]], values: list[float]) -> list[float]:
        return [sum(m * v for m, v in zip(row, values, strict=True)) for row in matrix]

    total, done = 0.0, []
    for level in range(levels):
        for step in range(depth):
            name = f"levels.{level}.{step}"
            x = norm(x, f"{name}.norm")
            total += sum(3 * s for s in weights[f"{name}.norm.log_scale"])
            x = [x[place] for place in weights[f"{name}.order"]]
            a, b = x[: (len(x) + 1) // 2], x[(len(x) + 1) // 2 :]
            hidden = a
            for layer in (0, 3):
                hidden = norm(times(weights[f"{name}.net.{layer}.weight"], hidden), f"{name}.net.{layer + 1}")
                hidden = [max(0.0, h) for h in hidden]
            last = times(weights[f"{name}.net.6.weight"], hidden)
            biased = [m + bias for m, bias in zip(last, weights[f"{name}.net.6.bias"], strict=True)]
            scale = weights[f"{name}.log_scale"]
            x = a + [v + m * math.exp(3 * s) for v, m, s in zip(b, biased, scale, strict=True)]
        if level < levels - 1:
            done += x[(len(x) + 1) // 2 :]
            x = x[: (len(x) + 1) // 2]
    return total + normal_log_density(done + x)
