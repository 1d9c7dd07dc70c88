"""Classifiers on frozen vectors: few examples, zero-shot across languages, and pairs of sentences.

Nothing is fitted to a test set. Where a strength of regularisation must be chosen, it is chosen on a part of the
training data that is kept apart by a stated seed. Vectors are used as the encoder returns them, as in the protocols;
their length therefore matters to a probe.

**Few-shot** (`mtop`, `sib-200`), as MTEB does it in MTOPDomainClassification and SIB200Classification: ten experiments,
each a logistic regression of at most 100 iterations on eight examples of each label, tested on the whole test split;
the mean over the experiments. Each language trains on its own examples: not zero-shot.
Deviation: version 1 of the library, used for the published numbers, has the same protocol with other examples. It uses
one random generator for all experiments and languages, so a sample depends on everything evaluated before. The
examples here are those of version 2.

**Zero-shot** (`mldoc`, `sib-200/zero-shot`), the MLDoc test of EASE (Nishikawa et al. 2022) and the same on SIB-200,
which is free: one linear layer (`linear.py`) learnt on English vectors, tested on the others.
Deviation: the encoder's dropout is off while the layer learns, in EASE's code it is on. Every text is encoded once, so
the vectors are the same whichever batch and learning rate are tried. Deviation: the layer after the last step may be
chosen too, where EASE looks every ten steps only.

**Pairs** (`xnli`, `paws-x`): each pair is described by u, v, the absolute difference and the product of the two
vectors, as InferSent does (Conneau et al. 2017), and a logistic regression is learnt from the English *dev* split,
since the free copies of XNLI and PAWS-X come without their training data. It is a probe of the information in the
vectors, and scores far below models that read both sentences together.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import EvaluationError
from isoglot.data.sets.normal import Rows
from isoglot.evaluation.base import Cells, Details, Encode, Metric, Score, item_set_of, worst
from isoglot.evaluation.sets import SetTask, Source, among, sources, words
from isoglot.evaluation.tasks.linear import apply, best_layers
from isoglot.evaluation.vectors import embed, embed_rows
from isoglot.search.best import Floats, Ids

Label = str | int
# Vectors (N, D) to predictions (N,), numbers of classes, and probabilities (N, K).
Classifier = Callable[[Floats], tuple[Ids, Floats]]

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)  # C of scikit-learn: unit vectors need more than raw ones
KEPT_APART = 0.2  # the part of the training data by which a strength is chosen
SEED = 0
ITERATIONS = 200  # of a probe, whose strength is chosen
ACCURACY = Metric("accuracy", main=True)

_REUTERS = re.compile(r"\(c\) Reuters Limited \d{4}")
_REPEATED = re.compile(r"([ \u3000])\1+")  # would hide the line of Reuters
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Predictions of R classifiers for N texts: `predicted` (R, N) indexes the K `classes`, as `gold` (N,) does.

    `probability` (N, K) is the mean over the classifiers.
    """

    classes: tuple[Label, ...]
    gold: Ids
    predicted: Ids
    probability: Floats


def list_classes(train: Rows, where: str) -> tuple[Label, ...]:
    """The labels of the training data, sorted. Raises `EvaluationError` for fewer than two."""
    classes = tuple(sorted(set(train.labels)))
    if len(classes) < 2:
        raise EvaluationError(f"{where}: the training data have the labels {list(classes)}; two or more are needed")
    return classes


def number_labels(test: Rows, classes: Sequence[Label], *, where: str) -> Ids:
    """The place (N,) of each label among the classes. Raises `EvaluationError` with file and line for one not there."""
    place = {label: number for number, label in enumerate(classes)}
    for label, row in zip(test.labels, test, strict=True):
        if label not in place:
            labels = ", ".join(map(str, classes))
            raise EvaluationError(f"{where}: {row.places[0]}: training has {labels}, not label {label!r}; correct it")
    return np.array([place[label] for label in test.labels], np.int64)


def combine(classes: tuple[Label, ...], gold: Ids, answers: Sequence[tuple[Ids, Floats]]) -> Outcome:
    """The outcome of several classifiers, each with its predictions (N,) and probabilities (N, K)."""
    mean: NDArray[np.float64] = np.mean([probability for _, probability in answers], axis=0, dtype=np.float64)
    return Outcome(classes, gold, np.stack([predicted for predicted, _ in answers]), mean.astype(np.float32))


def logistic(train: Floats, gold: Ids, *, strength: float = 1.0, iterations: int = 100) -> Classifier:
    """Logistic regression of scikit-learn with its defaults, learnt from vectors (N, D).

    `gold` (N,) contains all numbers from 0 to K-1. Fitting ends after `iterations` of L-BFGS even where more
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


def choose_strength(train: Floats, gold: Ids, groups: Sequence[str | int]) -> float:
    """The strength of `STRENGTHS` best on a fifth of the training data kept apart, the smallest of equals.

    Rows of one group, such as pairs with the same first sentence, are never parted. The draw is by `SEED`.
    """
    from sklearn.model_selection import GroupShuffleSplit

    if len(set(groups)) < 2:
        return 1.0  # too few rows to hold out
    draw = GroupShuffleSplit(1, test_size=KEPT_APART, random_state=SEED)
    rows, held_out = next(draw.split(train, gold, groups))
    if len(np.unique(gold[rows])) < len(np.unique(gold)):
        return 1.0  # too few rows to hold out: a class would have none left
    classifiers = (logistic(train[rows], gold[rows], strength=one, iterations=ITERATIONS) for one in STRENGTHS)
    accuracies = [(classify(train[held_out])[0] == gold[held_out]).mean() for classify in classifiers]
    return STRENGTHS[int(np.argmax(accuracies))]


def probe(train: Floats, gold: Ids, groups: Sequence[str | int]) -> Classifier:
    """Logistic regression of the strength that `choose_strength` chooses."""
    return logistic(train, gold, strength=choose_strength(train, gold, groups), iterations=ITERATIONS)


def accuracy(task: str, subset: str, outcome: Outcome, *, metric: Metric = ACCURACY, **more: Any) -> Score:
    """The share of right answers, mean over the classifiers; the items are the share of classifiers that were right.

    `more` are further fields of the score. The items are identified by their gold labels, or by another `item_set`.
    """
    right = outcome.predicted == outcome.gold
    items = right.mean(axis=0, dtype=np.float64).astype(np.float32)
    value = float(right.mean(axis=1, dtype=np.float64).mean())
    return metric.score(task, subset, value, len(items), items=items, **{"item_set": item_set_of(outcome.gold), **more})


def _macro_f1(gold: Ids, predicted: Ids) -> float:
    """The mean F1 over the classes present."""
    from sklearn.metrics import f1_score

    return float(f1_score(gold, predicted, average="macro", zero_division=0.0))


# Of a topic task besides the accuracy: metric -> its value from gold labels and one classifier's predictions, (N,).
MEASURES: dict[Metric, Callable[[Ids, Ids], float]] = {Metric("f1/macro"): _macro_f1}


def score_topics(task: str, subset: str, outcome: Outcome, test: Rows) -> Iterator[Score]:
    """The accuracy with its mistakes, then each of `MEASURES`, mean over the classifiers and without items."""
    names = {row.label: row.name or str(row.label) for row in reversed(test)}  # of a label the first name
    details = wrong_answers({"text": test.texts()}, outcome, names=names)
    yield accuracy(task, subset, outcome, details=details)
    for metric, measure in MEASURES.items():
        mean = float(np.mean([measure(outcome.gold, run) for run in outcome.predicted]))
        yield metric.score(task, subset, mean, len(outcome.gold))


def wrong_answers(
    texts: Mapping[str, Sequence[str]],
    outcome: Outcome,
    *,
    names: Mapping[Any, str] | None = None,
    labels: tuple[str, str] = ("gold", "predicted"),
) -> Details:
    """The most confident wrong answers of the mean probability, at most ten, the worst first; nothing without any.

    `texts` are the columns that show the N examples, `labels` the names of the columns of gold and predicted labels;
    `names` maps labels to the names to show instead.
    """
    best = outcome.probability.argmax(axis=1)
    wrong = np.flatnonzero(best != outcome.gold)
    # Rounded before sorting: values that differ only by rounding stay in the order of the data.
    certainty = outcome.probability[wrong, best[wrong]].astype(np.float64).round(4)

    def name_class(number: int) -> str:
        label = outcome.classes[number]
        return (names or {}).get(label, str(label))

    def row(place: int) -> Cells:
        text = wrong[place]
        sides = (side[text] for side in texts.values())
        return *sides, name_class(outcome.gold[text]), name_class(best[text]), float(certainty[place])

    return worst((*texts, *labels, "probability"), certainty, row)


@dataclass(frozen=True, slots=True)
class Labelled(SetTask):
    """A task that learns labels. `learns` are the parts (split, language) that all languages have in common."""

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, *MEASURES)
    learns: tuple[tuple[str, str], ...] = ()

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, ...]]:
        """For each requested language the parts to learn from, then the split that is scored; see `sources`.

        Parts without labels count as absent. None unless all parts to learn from are there.
        """
        parts = {key: source for key, source in sources(self.name, self.reads, data).items() if source.part.labelled}
        if not parts.keys() >= {*self.learns}:
            return {}
        tests = {code: source for (part, code), source in parts.items() if part == self.split}
        learnt = tuple(parts[key] for key in self.learns)
        return {code: (*learnt, source) for code, source in tests.items() if among(code, languages)}

    def read(self, source: Source) -> tuple[Rows, str]:
        """The rows of a part, and how messages name it."""
        where = f"{self.name} {source.part.subset}, split {source.part.split}"
        return source.read(where), where


def undersample(labels: Sequence[Label]) -> list[list[int]]:
    """The training rows of each of ten experiments, eight of each label, sampled as in version 2 of MTEB.

    The generator restarts from its seed in every experiment, but the order it shuffles is that which the experiment
    before has left, so the experiments differ. A label with fewer rows gives all it has.
    """
    order = list(range(len(labels)))
    draws: list[list[int]] = []
    for _ in range(10):
        np.random.RandomState(42).shuffle(order)
        counts: Counter[Label] = Counter()
        draws.append([])
        for row in order:
            if counts[labels[row]] < 8:
                counts[labels[row]] += 1
                draws[-1].append(row)
    return draws


class FewShot(Labelled):
    """A set of topics, each language on its own: the tasks `mtop` and `sib-200`. Subsets are the set's codes."""

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, ...]]:
        """The languages with their training split, if they have one, and the split that is scored.

        None where nothing has a training split.
        """
        tests, trains = super().find(data, languages), Labelled.find(replace(self, split="train"), data)
        return {code: (*trains.get(code, ()), *test) for code, test in tests.items()} if trains else {}

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """The scores of each language."""
        for code, parts in subsets.items():
            if len(parts) < 2:
                raise EvaluationError(f"{self.name} {code}, split train: data has no train split for {code}; add it")
            (train, at_train), (test, at_test) = map(self.read, parts)
            classes = list_classes(train, at_train)
            gold, expected = (number_labels(part, classes, where=at_test) for part in (train, test))
            draws = undersample(train.labels)
            union = sorted(set().union(*draws))  # only texts of some experiment are encoded
            vectors = embed_rows(encode, Rows(train[row] for row in union), where=at_train)
            table = embed_rows(encode, test, where=at_test)
            answers = [logistic(vectors[np.searchsorted(union, draw)], gold[draw])(table) for draw in draws]
            outcome = combine(classes, expected, answers)
            yield from score_topics(self.name, code, outcome, test)


def clean(text: str) -> str:
    """A text as EASE's code prepares it: no Reuters line, single spaces, lower case, no accents, composed again (NFC).

    Accents go with everything that Unicode takes for a mark: Japanese が becomes か, Russian й becomes и. Any run of
    white space becomes one space, the one around a Reuters line too, and so does the full-width space of Japanese.
    """
    bare = _REUTERS.sub("", _REPEATED.sub(r"\1", text.rstrip()))
    plain = unicodedata.normalize("NFD", _BLANKS.sub(" ", bare.lower()))
    return unicodedata.normalize("NFC", "".join(sign for sign in plain if unicodedata.category(sign) != "Mn"))


@dataclass(frozen=True, slots=True)
class ZeroShot(Labelled):
    """A set of topics learnt in English: the tasks `mldoc`, `mldoc/raw` and `sib-200/zero-shot`.

    `prepare` is done to each text before it is encoded; without it the text is encoded unchanged. Subsets are the
    set's codes, English among them; the averages leave it out.
    """

    prepare: Callable[[str], str] | None = None

    def mean_subsets(self, subsets: Iterable[str]) -> Iterable[str]:
        """Those not learnt from."""
        return [code for code in subsets if code != self.learns[0][1]]

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """The scores of each language, mean over three seeds."""
        train, dev, _ = next(iter(subsets.values()))
        classes = list_classes(*self.read(train))
        learnt = [self._embed(encode, source, classes)[:2] for source in (train, dev)]
        layers = best_layers(*learnt, classes=len(classes))
        for code, (_, _, source) in subsets.items():
            vectors, gold, test = self._embed(encode, source, classes)
            outcome = combine(classes, gold, [apply(layer, vectors) for layer in layers])
            yield from score_topics(self.name, code, outcome, test)

    def _embed(self, encode: Encode, source: Source, classes: Sequence[Label]) -> tuple[Floats, Ids, Rows]:
        """Vectors and classes of a part, and its rows."""
        rows, where = self.read(source)
        gold = number_labels(rows, classes, where=where)
        texts = rows.texts() if self.prepare is None else [self.prepare(text) for text in rows.texts()]
        return embed(encode, texts, where=where, place=rows.place()), gold, rows


def features(first: Floats, second: Floats) -> Floats:
    """u, v, |u - v| and u * v of N pairs of vectors (N, D): (N, 4 D)."""
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


@dataclass(frozen=True, slots=True)
class PairProbe(Labelled):
    """A set of pairs: the tasks `xnli` and `paws-x`. Subsets are the codes of the languages with labels."""

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    learns: tuple[tuple[str, str], ...] = (("dev", "en"),)
    classes: tuple[str, ...] = ()

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """Accuracy of each language."""
        (train, _), *_ = subsets.values()
        rows, where = self.read(train)
        if lacking := set(self.classes) - set(rows.labels):
            raise EvaluationError(f"{where}: no pair has the label {min(lacking)!r}; get it again")
        gold, vectors = number_labels(rows, self.classes, where=where), self._features(encode, rows, where)
        classify = probe(vectors, gold, rows.texts(0))
        for code, (_, source) in subsets.items():
            test, where = self.read(source)
            answer = classify(self._features(encode, test, where))
            outcome = combine(self.classes, number_labels(test, self.classes, where=where), [answer])
            details = wrong_answers({"sentence 1": test.texts(0), "sentence 2": test.texts(1)}, outcome)
            # Pairs are translated row by row, but a few labels of PAWS-X differ between languages.
            yield accuracy(self.name, code, outcome, item_set=item_set_of(range(len(test))), details=details)

    def _features(self, encode: Encode, part: Rows, where: str) -> Floats:
        first, second = (embed_rows(encode, part, where=where, side=side) for side in (0, 1))
        with np.errstate(over="ignore"):
            table = features(first, second)
        if len(bad := np.flatnonzero(~np.isfinite(table).all(axis=1))):
            place = part.place()(int(bad[0]))
            raise EvaluationError(f"{where}: {place}: the product of the pair's vectors exceeds float32; scale down")
        return table


_SIB_200 = ("sib-200", "sib200")
_MTOP = ("MTOPDomainClassification",), {"mtop-6": ("de", "en", "es", "fr", "hi", "th")}
_MLDOC = ("mldoc",), {"mldoc-7": ("deu", "fra", "ita", "jpn", "rus", "spa", "zho")}
_MLDOC_ENGLISH = ("train", "eng"), ("dev", "eng")
_XTREME_15 = words("ar bg de el en es fr hi ru sw th tr ur vi zh")


_XTREME_7 = words("de en es fr ja ko zh")
# XTREME's copy has all that the probe needs.
PAWS_X = PairProbe("paws-x", ("pawsx",), {"xtreme-7": _XTREME_7}, classes=("0", "1"), sets=("xtreme-pawsx", "pawsx"))
CLASSIFICATION: tuple[Labelled, ...] = (
    FewShot("mtop", *_MTOP),
    FewShot("mtop/dev", *_MTOP, split="dev"),
    FewShot("sib-200", _SIB_200),
    ZeroShot("sib-200/zero-shot", _SIB_200, learns=(("train", "eng_Latn"), ("dev", "eng_Latn"))),
    ZeroShot("mldoc", *_MLDOC, learns=_MLDOC_ENGLISH, prepare=clean),
    ZeroShot("mldoc/raw", *_MLDOC, learns=_MLDOC_ENGLISH),
    PairProbe("xnli", ("xtreme-xnli",), {"xtreme-15": _XTREME_15}, classes=("contradiction", "entailment", "neutral")),
    PAWS_X,
)
