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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isoglot.data.sets.normal import Rows
from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Detail, Encode, Metric, Score, averages, item_set_of
from isoglot.evaluation.sets import Source, among, needs, sources, words
from isoglot.evaluation.tasks.linear import Floats, Ids, Layer, apply, best_layers
from isoglot.evaluation.vectors import embed

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


def classes_of(train: Rows, *, where: str) -> tuple[Label, ...]:
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


@dataclass(frozen=True, slots=True)
class Labelled:
    """Sets of labelled texts in several languages, the first that is there being read.

    `classes` are the labels where the set fixes them; `pivot` is its code of English; `averages` are means that the
    papers report, with the languages they are over; `copies` are published copies of the sets with all that the probe
    needs.
    """

    sets: tuple[str, ...]
    pivot: str
    averages: tuple[tuple[str, tuple[str, ...]], ...] = ()
    classes: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()

    @property
    def published(self) -> tuple[str, ...]:
        """What is downloaded, the first by preference."""
        return self.copies + self.sets

    def find(self, task: str, data: Path) -> dict[tuple[str, str], Source]:
        """(split, language) -> source, of the parts that have labels."""
        return {key: source for key, source in sources(task, self.sets, data).items() if source.part.labelled}

    def means(self, scores: Sequence[Score]) -> list[Score]:
        """The averages all of whose languages are there."""
        return [mean for name, codes in self.averages for mean in averages(scores, name, over=codes)]


MTOP = Labelled(("MTOPDomainClassification",), "en", (("mtop-6", ("de", "en", "es", "fr", "hi", "th")),))
SIB_200 = Labelled(("sib-200", "sib200"), "eng_Latn")
MLDOC = Labelled(("mldoc",), "eng", (("mldoc-7", ("deu", "fra", "ita", "jpn", "rus", "spa", "zho")),))
XNLI = Labelled(
    ("xtreme-xnli",),
    "en",
    (("xtreme-15", words("ar bg de el en es fr hi ru sw th tr ur vi zh")),),
    ("contradiction", "entailment", "neutral"),
)
PAWS_X = Labelled(
    ("pawsx",), "en", (("xtreme-7", words("de en es fr ja ko zh")),), ("0", "1"), copies=("xtreme-pawsx",)
)


def tested(
    found: Mapping[tuple[str, str], Source], split: str, languages: Sequence[str], *, learnt: Sequence[tuple[str, str]]
) -> tuple[str, ...]:
    """The wanted languages that have the split; none unless all parts to learn from are there."""
    if not found.keys() >= set(learnt):
        return ()
    return tuple(code for part, code in found if part == split and among(code, languages))


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
class FewShot:
    """A set of topics, each language on its own: the tasks `mtop` and `sib-200`. Subsets are the set's codes.

    `split` is the part that is scored: `test`, or `dev` to choose by.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str
    topics: Labelled
    split: str = "test"

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that it can be downloaded as."""
        return self.topics.published

    @property
    def needs(self) -> str:
        """The files of the set."""
        return needs(*self.topics.sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with the split that is scored; none where nothing has one to learn from."""
        found = self.topics.find(self.name, data)
        return tested(
            found, self.split, languages, learnt=[key for key in found if key[0] == "train"][:1] or [("", "")]
        )

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy and macro F1 of each language, then the averages all of whose languages are there, and `mean`."""
        scores: list[Score] = []
        found = self.topics.find(self.name, data)
        for code in self.subsets(data, languages=languages):
            scores += self._language(encode, found, code)
        return [*scores, *self.topics.means(scores), *averages(scores, "mean")]

    def _language(self, encode: Encode, found: Mapping[tuple[str, str], Source], code: str) -> list[Score]:
        train, test = (_read(self.name, found, split, code) for split in ("train", self.split))
        at = {split: f"{self.name} {code}, split {split}" for split in ("train", self.split)}
        classes = classes_of(train, where=at["train"])
        gold, expected = (gold_of(part, classes, where=at[self.split]) for part in (train, test))
        draws = undersample(train.labels)
        union = sorted(set().union(*draws))  # only texts of some experiment are encoded
        sampled = Rows(train[row] for row in union)
        vectors = embed(encode, sampled.texts(), where=at["train"], place=sampled.place())
        table = embed(encode, test.texts(), where=at[self.split], place=test.place())
        place = {row: number for number, row in enumerate(union)}
        answers = [logistic(vectors[[place[row] for row in draw]], gold[draw])(table) for draw in draws]
        outcome = combined(classes, expected, answers)
        score = accuracy(self.name, code, outcome, details=mistakes(test, outcome))
        return [score, macro_f1(self.name, code, outcome)]


def _read(task: str, found: Mapping[tuple[str, str], Source], split: str, code: str) -> Rows:
    where = f"{task} {code}, split {split}"
    if (split, code) not in found:
        raise EvaluationError(f"{where}: the data folder has no {split} split for {code}; add that file")
    return found[split, code].read(where)


def clean(text: str) -> str:
    """A text as EASE's code prepares it: no Reuters line, single spaces, lower case, no accents, composed again (NFC).

    Accents go with everything that Unicode takes for a mark: Japanese が becomes か, Russian й becomes и. Any run of
    white space becomes one space, the one around a Reuters line too, and so does the full-width space of Japanese.
    """
    bare = _REUTERS.sub("", _REPEATED.sub(r"\1", text.rstrip()))
    plain = unicodedata.normalize("NFD", _BLANKS.sub(" ", bare.lower()))
    return unicodedata.normalize("NFC", "".join(sign for sign in plain if unicodedata.category(sign) != "Mn"))


@dataclass(frozen=True, slots=True)
class ZeroShot:
    """A set of topics learnt in English: the tasks `mldoc`, `mldoc/raw` and `sib-200/zero-shot`.

    `prepare` is done to each text before it is encoded; without it the text is encoded unchanged. Subsets are the
    set's codes, English among them; the averages leave it out.
    """

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY, MACRO_F1)
    name: str
    topics: Labelled
    prepare: Callable[[str], str] | None = clean

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that it can be downloaded as."""
        return self.topics.published

    @property
    def needs(self) -> str:
        """The files of the set."""
        return needs(*self.topics.sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a test split; none where English cannot be learnt from."""
        learnt = [(split, self.topics.pivot) for split in ("train", "dev")]
        return tested(self.topics.find(self.name, data), "test", languages, learnt=learnt)

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy and macro F1 of each language, mean over three seeds; then averages over those not learnt from."""
        codes = self.subsets(data, languages=languages)
        if not codes:
            return []
        found = self.topics.find(self.name, data)
        classes, layers = self._learn(encode, found)
        scores: list[Score] = []
        for code in codes:
            vectors, gold, test = self._table(encode, found, code, "test", classes)
            outcome = combined(classes, gold, [apply(layer, vectors) for layer in layers])
            scores.append(accuracy(self.name, code, outcome, details=mistakes(test, outcome)))
            scores.append(macro_f1(self.name, code, outcome))
        others = [code for code in codes if code != self.topics.pivot]
        return [*scores, *self.topics.means(scores), *averages(scores, "mean", over=others)]

    def _learn(
        self, encode: Encode, found: Mapping[tuple[str, str], Source]
    ) -> tuple[tuple[Label, ...], tuple[Layer, ...]]:
        pivot = self.topics.pivot
        classes = classes_of(_read(self.name, found, "train", pivot), where=f"{self.name} {pivot}, split train")
        train, dev = (self._table(encode, found, pivot, split, classes)[:2] for split in ("train", "dev"))
        return classes, best_layers(train, dev, classes=len(classes))

    def _table(
        self,
        encode: Encode,
        found: Mapping[tuple[str, str], Source],
        code: str,
        split: str,
        classes: Sequence[Label],
    ) -> tuple[Floats, Ids, Rows]:
        """Vectors and classes of a part, and its rows."""
        where = f"{self.name} {code}, split {split}"
        rows = _read(self.name, found, split, code)
        gold = gold_of(rows, classes, where=where)
        texts = rows.texts() if self.prepare is None else [self.prepare(text) for text in rows.texts()]
        return embed(encode, texts, where=where, place=rows.place()), gold, rows


def features(first: Floats, second: Floats) -> Floats:
    """u, v, |u - v| and u * v of N pairs of vectors (N, D): (N, 4 D)."""
    return np.concatenate([first, second, np.abs(first - second), first * second], axis=1)


@dataclass(frozen=True, slots=True)
class PairProbe:
    """A set of pairs: the tasks `xnli` and `paws-x`. Subsets are the codes of the languages with labels."""

    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    name: str
    pairs: Labelled

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets that it can be downloaded as."""
        return self.pairs.published

    @property
    def needs(self) -> str:
        """The files of the set."""
        return needs(*self.pairs.sets)

    def subsets(self, data: Path, *, languages: Sequence[str] = ()) -> tuple[str, ...]:
        """The languages with a labelled test split; none where the English dev split is missing."""
        return tested(self.pairs.find(self.name, data), "test", languages, learnt=[("dev", "en")])

    def run(self, encode: Encode, data: Path, *, languages: Sequence[str] = ()) -> list[Score]:
        """Accuracy of each language, then the averages all of whose languages are there, and `mean`."""
        codes = self.subsets(data, languages=languages)
        if not codes:
            return []
        found = self.pairs.find(self.name, data)
        classify = self._learn(encode, _read(self.name, found, "dev", "en"))
        scores: list[Score] = []
        for code in codes:
            test = _read(self.name, found, "test", code)
            answer = classify(self._features(encode, test, code, "test"))
            outcome = combined(self.pairs.classes, pair_classes(test, self.pairs), [answer])
            details = wrong_answers({"sentence 1": test.texts(0), "sentence 2": test.texts(1)}, outcome)
            score = accuracy(self.name, code, outcome, details=details)
            # Pairs are translated row by row, but a few labels of PAWS-X differ between languages.
            scores.append(replace(score, item_set=item_set_of(range(score.n))))
        return [*scores, *self.pairs.means(scores), *averages(scores, "mean")]

    def _learn(self, encode: Encode, train: Rows) -> Classifier:
        if lacking := set(self.pairs.classes) - set(train.labels):
            raise EvaluationError(f"{self.name} en, split dev: no pair has the label {min(lacking)!r}; get it again")
        gold, known = pair_classes(train, self.pairs), self._features(encode, train, "en", "dev")
        strength = chosen_strength(known, gold, train.texts(0), iterations=ITERATIONS)
        return logistic(known, gold, strength=strength, iterations=ITERATIONS)

    def _features(self, encode: Encode, part: Rows, code: str, split: str) -> Floats:
        where = f"{self.name} {code}, split {split}"
        first, second = (embed(encode, part.texts(side), where=where, place=part.place()) for side in (0, 1))
        with np.errstate(over="ignore"):
            found = features(first, second)
        if len(bad := np.flatnonzero(~np.isfinite(found).all(axis=1))):
            raise EvaluationError(
                f"{where}: {part.place()(int(bad[0]))}: the product of the pair's vectors does not fit float32; scale "
                "the vectors down"
            )
        return found


def pair_classes(part: Rows, pairs: Labelled) -> Ids:
    """The number (N,) of each label among the classes of the set."""
    return np.array([pairs.classes.index(label) for label in part.labels], np.int64)
