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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import BaseTask, Detail, Encode, Metric, Score, item_set_of
from isoglot.evaluation.sets import Source, among, sources, words
from isoglot.evaluation.tasks.linear import Floats, Ids, apply, best_layers
from isoglot.evaluation.vectors import embed, embed_rows

Label = str | int
# Vectors (N, D) to predictions (N,), numbers of classes, and probabilities (N, K).
Classifier = Callable[[Floats], tuple[Ids, Floats]]

STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)  # C of scikit-learn: unit vectors need more than raw ones
KEPT_APART = 0.2  # the part of the training data by which a strength is chosen
SEED = 0
ITERATIONS = 200  # of the probes of pairs and languages
MISTAKES = 10
ACCURACY = Metric("accuracy", main=True)
MACRO_F1 = Metric("f1/macro")

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


def classes_of(train: Rows, where: str) -> tuple[Label, ...]:
    """The labels of the training data, sorted. Raises `EvaluationError` for fewer than two."""
    classes = tuple(sorted(set(train.labels)))
    if len(classes) < 2:
        raise EvaluationError(f"{where}: the training data have the labels {list(classes)}; two or more are needed")
    return classes


def gold_of(test: Rows, classes: Sequence[Label], *, where: str) -> Ids:
    """The place (N,) of each label among the classes. Raises `EvaluationError` with file and line for one not there."""
    place = {label: number for number, label in enumerate(classes)}
    for label, row in zip(test.labels, test, strict=True):
        if label not in place:
            raise EvaluationError(
                f"{where}: {row.places[0]}: the label {label!r} does not occur in training, which has "
                f"{', '.join(map(str, classes))}; correct the label"
            )
    return np.array([place[label] for label in test.labels], np.int64)


def combined(classes: tuple[Label, ...], gold: Ids, answers: Sequence[tuple[Ids, Floats]]) -> Outcome:
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


def chosen_strength(train: Floats, gold: Ids, groups: Sequence[str | int], *, iterations: int = 200) -> float:
    """The strength of `STRENGTHS` best on a fifth of the training data kept apart, the smallest of equals.

    Rows of one group, such as pairs with the same first sentence, are never parted. The draw is by `SEED`.
    """
    from sklearn.model_selection import GroupShuffleSplit

    if len(set(groups)) < 2:
        return 1.0  # too few rows to hold out
    draw = GroupShuffleSplit(1, test_size=KEPT_APART, random_state=SEED)
    learnt, apart = next(draw.split(train, gold, groups))
    if len(np.unique(gold[learnt])) < len(np.unique(gold)):
        return 1.0  # too few rows to part: a class would have none left
    outcomes = [
        logistic(train[learnt], gold[learnt], strength=strength, iterations=iterations)(train[apart])[0] == gold[apart]
        for strength in STRENGTHS
    ]
    return STRENGTHS[int(np.argmax([right.mean() for right in outcomes]))]


def accuracy(
    task: str, subset: str, outcome: Outcome, *, metric: Metric = ACCURACY, details: tuple[Detail, ...] = ()
) -> Score:
    """The share of right answers, mean over the classifiers; the items are the share of classifiers that were right."""
    right = outcome.predicted == outcome.gold
    items = right.mean(axis=0, dtype=np.float64).astype(np.float32)
    value = float(right.mean(axis=1, dtype=np.float64).mean())
    item_set = item_set_of(outcome.gold)
    return metric.score(task, subset, value, len(items), items=items, item_set=item_set, details=details)


def macro_f1(task: str, subset: str, outcome: Outcome) -> Score:
    """Macro F1: the mean over the classes present, then over the classifiers; without items."""
    from sklearn.metrics import f1_score

    runs = [f1_score(outcome.gold, run, average="macro", zero_division=0.0) for run in outcome.predicted]
    return MACRO_F1.score(task, subset, float(np.mean(runs)), len(outcome.gold))


def mistakes(test: Rows, outcome: Outcome) -> tuple[Detail, ...]:
    """The worst mistakes of texts with labels, see `wrong_answers`."""
    names: dict[Label, str] = {}
    for row in test:
        names.setdefault(row.label, row.name or str(row.label))  # type: ignore[arg-type]
    return wrong_answers({"text": test.texts()}, outcome, names=names)


def wrong_answers(
    texts: Mapping[str, Sequence[str]],
    outcome: Outcome,
    *,
    names: Mapping[Label, str] | None = None,
    labels: tuple[str, str] = ("gold", "predicted"),
) -> tuple[Detail, ...]:
    """The most confident wrong answers of the mean probability, at most ten, the worst first; nothing without any.

    `texts` are the columns that show the N examples, `labels` the names of the columns of gold and predicted labels;
    `names` maps labels to the names to show instead.
    """
    best = outcome.probability.argmax(axis=1)
    # Rounded before sorting: values that differ only by rounding stay in the order of the data.
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


def find_labelled(
    task: str,
    sets: Sequence[str],
    data: Path,
    languages: Sequence[str],
    *,
    split: str = "test",
    train: Sequence[tuple[str, str]] = (),
) -> dict[str, tuple[Source, ...]]:
    """For each wanted language the parts `train` (split, language), then its split that is scored.

    Of the first set that is there; parts without labels count as absent. None unless all parts to learn from are there.
    """
    parts = {key: source for key, source in sources(task, sets, data).items() if source.part.labelled}
    if not parts.keys() >= set(train):
        return {}
    learnt = tuple(parts[key] for key in train)
    chosen = {code: source for (part, code), source in parts.items() if part == split and among(code, languages)}
    return {code: (*learnt, source) for code, source in chosen.items()}


def read_part(task: str, source: Source) -> tuple[Rows, str]:
    """The rows of a part, and how messages name it."""
    where = f"{task} {source.part.subset}, split {source.part.split}"
    return source.read(where), where


def undersample(
    labels: Sequence[Label], *, experiments: int = 10, per_label: int = 8, seed: int = 42
) -> list[list[int]]:
    """The training rows of each experiment, sampled as in version 2 of MTEB.

    The generator restarts from `seed` in every experiment, but the order it shuffles is that which the experiment
    before has left, so the experiments differ. A label with fewer rows than `per_label` gives all it has.
    """
    order = list(range(len(labels)))
    draws: list[list[int]] = []
    for _ in range(experiments):
        np.random.RandomState(seed).shuffle(order)
        taken: Counter[Label] = Counter()
        draws.append([])
        for row in order:
            if taken[labels[row]] < per_label:
                taken[labels[row]] += 1
                draws[-1].append(row)
    return draws


@dataclass(frozen=True, slots=True)
class FewShot(BaseTask):
    """A set of topics, each language on its own: the tasks `mtop` and `sib-200`. Subsets are the set's codes.

    `split` is the part that is scored: `test`, or `dev` to choose by.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str
    reads: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    split: str = "test"

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source | None, Source]]:
        """The languages with the split that is scored, and their training split; none where nothing has that."""
        tests = find_labelled(self.name, self.reads, data, languages, split=self.split)
        trains = find_labelled(self.name, self.reads, data, (), split="train")
        return {code: (trains.get(code, (None,))[0], test) for code, (test,) in tests.items()} if trains else {}

    def score(self, encode: Encode, subsets: dict[str, tuple[Source | None, Source]]) -> Iterator[Score]:
        """Accuracy and macro F1 of each language."""
        for code, (source, tested) in subsets.items():
            if source is None:
                raise EvaluationError(
                    f"{self.name} {code}, split train: the data folder has no train split for {code}; add that file"
                )
            (train, at_train), (test, at_test) = read_part(self.name, source), read_part(self.name, tested)
            classes = classes_of(train, at_train)
            gold, expected = (gold_of(part, classes, where=at_test) for part in (train, test))
            draws = undersample(train.labels)
            union = sorted(set().union(*draws))  # only texts of some experiment are encoded
            sampled = Rows(train[row] for row in union)
            vectors = embed_rows(encode, sampled, where=at_train)
            table = embed_rows(encode, test, where=at_test)
            answers = [logistic(vectors[np.searchsorted(union, draw)], gold[draw])(table) for draw in draws]
            outcome = combined(classes, expected, answers)
            yield accuracy(self.name, code, outcome, details=mistakes(test, outcome))
            yield macro_f1(self.name, code, outcome)


def clean(text: str) -> str:
    """A text as EASE's code prepares it: no Reuters line, single spaces, lower case, no accents, composed again (NFC).

    Accents go with everything that Unicode takes for a mark: Japanese が becomes か, Russian й becomes и. Any run of
    white space becomes one space, the one around a Reuters line too, and so does the full-width space of Japanese.
    """
    bare = _REUTERS.sub("", _REPEATED.sub(r"\1", text.rstrip()))
    plain = unicodedata.normalize("NFD", _BLANKS.sub(" ", bare.lower()))
    return unicodedata.normalize("NFC", "".join(sign for sign in plain if unicodedata.category(sign) != "Mn"))


@dataclass(frozen=True, slots=True)
class ZeroShot(BaseTask):
    """A set of topics learnt in English: the tasks `mldoc`, `mldoc/raw` and `sib-200/zero-shot`.

    `prepare` is done to each text before it is encoded; without it the text is encoded unchanged. Subsets are the
    set's codes, English among them; the averages leave it out.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str
    reads: tuple[str, ...]
    pivot: str
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prepare: Callable[[str], str] | None = None

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, ...]]:
        """The languages with a test split; none where English cannot be learnt from."""
        train = [(split, self.pivot) for split in ("train", "dev")]
        return find_labelled(self.name, self.reads, data, languages, train=train)

    def averaged(self, subsets: Iterable[str]) -> Iterable[str]:
        """Those not learnt from."""
        return [code for code in subsets if code != self.pivot]

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """Accuracy and macro F1 of each language, mean over three seeds."""
        train, dev, _ = next(iter(subsets.values()))
        classes = classes_of(*read_part(self.name, train))
        learnt = [self._embed(encode, source, classes)[:2] for source in (train, dev)]
        layers = best_layers(*learnt, classes=len(classes))
        for code, (_, _, source) in subsets.items():
            vectors, gold, test = self._embed(encode, source, classes)
            outcome = combined(classes, gold, [apply(layer, vectors) for layer in layers])
            yield accuracy(self.name, code, outcome, details=mistakes(test, outcome))
            yield macro_f1(self.name, code, outcome)

    def _embed(self, encode: Encode, source: Source, classes: Sequence[Label]) -> tuple[Floats, Ids, Rows]:
        """Vectors and classes of a part, and its rows."""
        rows, where = read_part(self.name, source)
        gold = gold_of(rows, classes, where=where)
        texts = rows.texts() if self.prepare is None else [self.prepare(text) for text in rows.texts()]
        return embed(encode, texts, where=where, place=rows.place()), gold, rows


def features(first: Floats, second: Floats) -> Floats:
    """u, v, |u - v| and u * v of N pairs of vectors (N, D): (N, 4 D)."""
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


@dataclass(frozen=True, slots=True)
class PairProbe(BaseTask):
    """A set of pairs: the tasks `xnli` and `paws-x`. Subsets are the codes of the languages with labels."""

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    name: str
    reads: tuple[str, ...]
    classes: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    copies: tuple[str, ...] = ()  # published copies of the set with all that the probe needs

    @property
    def sets(self) -> tuple[str, ...]:
        """What is downloaded, the first by preference."""
        return self.copies + self.reads

    def find(self, data: Path, languages: Sequence[str] = ()) -> dict[str, tuple[Source, ...]]:
        """The languages with a labelled test split; none where the English dev split is missing."""
        return find_labelled(self.name, self.reads, data, languages, train=[("dev", "en")])

    def score(self, encode: Encode, subsets: dict[str, tuple[Source, ...]]) -> Iterator[Score]:
        """Accuracy of each language."""
        (train, _), *_ = subsets.values()
        rows, where = read_part(self.name, train)
        if lacking := set(self.classes) - set(rows.labels):
            raise EvaluationError(f"{where}: no pair has the label {min(lacking)!r}; get it again")
        gold, vectors = number_labels(rows, self.classes), self._features(encode, rows, where)
        strength = chosen_strength(vectors, gold, rows.texts(0), iterations=ITERATIONS)
        classify = logistic(vectors, gold, strength=strength, iterations=ITERATIONS)
        for code, (_, source) in subsets.items():
            test, where = read_part(self.name, source)
            answer = classify(self._features(encode, test, where))
            outcome = combined(self.classes, number_labels(test, self.classes), [answer])
            details = wrong_answers({"sentence 1": test.texts(0), "sentence 2": test.texts(1)}, outcome)
            # Pairs are translated row by row, but a few labels of PAWS-X differ between languages.
            item_set = item_set_of(range(len(test)))
            yield replace(accuracy(self.name, code, outcome, details=details), item_set=item_set)

    def _features(self, encode: Encode, part: Rows, where: str) -> Floats:
        first, second = (embed_rows(encode, part, where=where, side=side) for side in (0, 1))
        with np.errstate(over="ignore"):
            table = features(first, second)
        if len(bad := np.flatnonzero(~np.isfinite(table).all(axis=1))):
            raise EvaluationError(
                f"{where}: {part.place()(int(bad[0]))}: the product of the pair's vectors does not fit float32; scale "
                "the vectors down"
            )
        return table


def number_labels(part: Rows, classes: Sequence[str]) -> Ids:
    """The number (N,) of each label among the classes of the set."""
    return np.array([classes.index(label) for label in part.labels], np.int64)


_SIB_200 = ("sib-200", "sib200")
_MTOP = ("MTOPDomainClassification",), {"mtop-6": ("de", "en", "es", "fr", "hi", "th")}
_MLDOC = ("mldoc",), "eng", {"mldoc-7": ("deu", "fra", "ita", "jpn", "rus", "spa", "zho")}
PAWS_X = PairProbe(
    "paws-x", ("pawsx",), ("0", "1"), {"xtreme-7": words("de en es fr ja ko zh")}, copies=("xtreme-pawsx",)
)
CLASSIFICATION: dict[str, FewShot | ZeroShot | PairProbe] = {
    task.name: task
    for task in (
        FewShot("mtop", *_MTOP),
        FewShot("mtop/dev", *_MTOP, split="dev"),
        FewShot("sib-200", _SIB_200),
        ZeroShot("sib-200/zero-shot", _SIB_200, "eng_Latn"),
        ZeroShot("mldoc", *_MLDOC, prepare=clean),
        ZeroShot("mldoc/raw", *_MLDOC),
        PairProbe(
            "xnli",
            ("xtreme-xnli",),
            ("contradiction", "entailment", "neutral"),
            {"xtreme-15": words("ar bg de el en es fr hi ru sw th tr ur vi zh")},
        ),
        PAWS_X,
    )
}
