"""Classifiers on frozen vectors: texts with labels, logistic regression, and the scores of what it says.

What is special here: nothing is fitted to a test set. Where a strength of regularisation must be chosen, it is chosen
on a part of the training data that is kept apart by a stated seed. Vectors are used as the encoder gives them, since
the protocols do so; their length therefore matters to a probe.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Metric, Score, units_of

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]
Label = str | int
# Vectors (N, D) to predictions (N,), numbers of classes, and probabilities (N, K).
Classifier = Callable[[Floats], tuple[Ids, Floats]]

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)  # C of scikit-learn: unit vectors need more than raw ones
KEPT_APART = 0.2  # the part of the training data by which a strength is chosen
SEED = 0
MISTAKES = 10
ACCURACY = Metric("accuracy", main=True)
MACRO_F1 = Metric("f1/macro")


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """N texts and the label of each; `places` says where each was read (`file:line`).

    `names` tells how a label is shown to people, where that is not the label itself.
    """

    texts: tuple[str, ...]
    labels: tuple[Label, ...]
    places: tuple[str, ...]
    names: Mapping[Label, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What R classifiers said of N texts: `predicted` (R, N) is a place in the K `classes`, as `gold` (N,) is.

    `probability` (N, K) is the mean over the classifiers.
    """

    classes: tuple[Label, ...]
    gold: Ids
    predicted: Ids
    probability: Floats


def classes_of(train: Examples, *, where: str) -> tuple[Label, ...]:
    """The labels of the training data, sorted. Raises `EvaluationError` for fewer than two."""
    classes = tuple(sorted(set(train.labels)))
    if len(classes) < 2:
        raise EvaluationError(f"{where}: the training data have the labels {list(classes)}; two or more are needed")
    return classes


def gold_of(test: Examples, classes: Sequence[Label], *, where: str) -> Ids:
    """The place (N,) of each label among the classes. Raises `EvaluationError` with file and line for one not there."""
    place = {label: number for number, label in enumerate(classes)}
    for label, line in zip(test.labels, test.places, strict=True):
        if label not in place:
            raise EvaluationError(
                f"{where}: {line}: the label {label!r} does not occur in training, which has "
                f"{', '.join(map(str, classes))}; mend the label"
            )
    return np.array([place[label] for label in test.labels], np.int64)


def combined(classes: tuple[Label, ...], gold: Ids, answers: Sequence[tuple[Ids, Floats]]) -> Outcome:
    """The outcome of several classifiers, each with its predictions (N,) and probabilities (N, K)."""
    mean: NDArray[np.float64] = np.mean([probability for _, probability in answers], axis=0, dtype=np.float64)
    return Outcome(classes, gold, np.stack([predicted for predicted, _ in answers]), mean.astype(np.float32))


def logistic(train: Floats, gold: Ids, *, strength: float = 1.0, iterations: int = 100) -> Classifier:
    """Logistic regression of scikit-learn with its defaults, learnt from vectors (N, D).

    `gold` (N,) holds the numbers 0 to K-1, all of them. Fitting ends after `iterations` of L-BFGS even where more
    would change something: the published protocols do that and keep the numbers.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1):  # several threads add up in another order
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(C=strength, max_iter=iterations).fit(train, gold)

    def answer(test: Floats) -> tuple[Ids, Floats]:
        with threadpool_limits(1):
            return fitted.predict(test).astype(np.int64), fitted.predict_proba(test).astype(np.float32)

    return answer


def chosen_strength(train: Floats, gold: Ids, groups: Sequence[str | int], *, iterations: int = 200) -> float:
    """The strength of `STRENGTHS` best on a fifth of the training data kept apart, the smallest of equals.

    Rows of one group, such as pairs with the same first sentence, are never parted. The draw is by `SEED`.
    """
    from sklearn.model_selection import GroupShuffleSplit

    if len(set(groups)) < 2:
        return 1.0  # nothing can be kept apart
    draw = GroupShuffleSplit(1, test_size=KEPT_APART, random_state=SEED)
    kept, apart = next(draw.split(train, gold, groups))
    if len(np.unique(gold[kept])) < len(np.unique(gold)):
        return 1.0  # too few rows to part: a class would have none left
    found = [
        logistic(train[kept], gold[kept], strength=strength, iterations=iterations)(train[apart])[0] == gold[apart]
        for strength in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax([right.mean() for right in found]))]


def accuracy(
    task: str, subset: str, outcome: Outcome, *, metric: Metric = ACCURACY, details: tuple[Detail, ...] = ()
) -> Score:
    """The share of right answers, mean over the classifiers; the items are the share of classifiers that were right."""
    right = outcome.predicted == outcome.gold
    items = right.mean(axis=0, dtype=np.float64).astype(np.float32)
    value = float(right.mean(axis=1, dtype=np.float64).mean())
    units = units_of(outcome.gold)
    return metric.score(task, subset, value, len(items), items=items, units=units, details=details)


def macro_f1(task: str, subset: str, outcome: Outcome) -> Score:
    """The F1 of each class, plain mean over the classes met, then over the classifiers; there are no items."""
    from sklearn.metrics import f1_score

    runs = [f1_score(outcome.gold, run, average="macro", zero_division=0.0) for run in outcome.predicted]
    return MACRO_F1.score(task, subset, float(np.mean(runs)), len(outcome.gold))


def mistakes(test: Examples, outcome: Outcome) -> tuple[Detail, ...]:
    """The worst mistakes of texts with labels, see `wrong_answers`."""
    return wrong_answers({"text": test.texts}, outcome, names=test.names)


def wrong_answers(
    texts: Mapping[str, Sequence[str]],
    outcome: Outcome,
    *,
    names: Mapping[Label, str] | None = None,
    labels: tuple[str, str] = ("gold", "predicted"),
) -> tuple[Detail, ...]:
    """The most confident wrong answers of the mean probability, at most ten, the worst first; nothing without any.

    `texts` are the columns that show the N examples, `labels` what the columns of gold and of the answer are called;
    `names` tell how a label is shown, where that is not the label itself.
    """
    best = outcome.probability.argmax(axis=1)
    # Rounded before they are sorted: those that differ by rounding alone stay in the order of the data.
    certainty = outcome.probability[np.arange(len(best)), best].astype(np.float64).round(4)
    wrong = np.flatnonzero(best != outcome.gold)
    worst = wrong[np.argsort(-certainty[wrong], kind="stable")][:MISTAKES]

    def named(number: int) -> str:
        label = outcome.classes[number]
        return (names or {}).get(label, str(label))

    rows = tuple(
        (*(side[i] for side in texts.values()), named(outcome.gold[i]), named(best[i]), float(certainty[i]))
        for i in worst
    )
    return (Detail("mistakes", (*texts, *labels, "probability"), rows),) if rows else ()
