"""What the page shows, found in the scores: which rows of a table, names, seen languages, changes, margins."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from isoglot.data.languages import is_language
from isoglot.evaluation.base import Detail, Score
from isoglot.evaluation.codes import among
from isoglot.report.comparable import alike
from isoglot.report.metrics import MANY, is_average, main_metrics, scale, shown
from isoglot.report.page.figures import Bar
from isoglot.report.scores import Results

_PARTS = 4  # languages up to which a subset's name holds them all
_CONFIDENCE = 1.96  # standard errors on either side of a normal variable that hold 95 % of it
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Table:
    """One task and metric over all models: `scores[subset][place of the model]`, None where a model lacks it.

    `alike` are the subsets that all were evaluated on the same data of, as far as their scores tell.
    """

    task: str
    metric: str
    scores: dict[str, list[Score | None]]
    alike: frozenset[str] = frozenset()

    @property
    def _any(self) -> Score:
        """One of its scores: all have one unit and one direction."""
        return next(score for row in self.scores.values() for score in row if score)

    @property
    def lower(self) -> bool:
        """Whether lower is better."""
        return self._any.lower_is_better

    @property
    def name(self) -> str:
        """The metric, with an arrow when lower is better."""
        return f"{self.metric} ↓" if self.lower else self.metric

    @property
    def unit(self) -> float:
        """What values are multiplied with to be drawn, as tables show them: 100, or 1 for distances."""
        return scale(self._any.unit)

    def shown(self, value: float | None, *, sign: bool = False) -> str:
        """A value as tables show it, with a true minus."""
        return shown(value, self._any.unit, sign=sign).replace("-", "−")

    def part(self, *, averages: bool) -> dict[str, list[Score | None]]:
        """Only the averages, or only the subsets they are of."""
        return {
            subset: row
            for subset, row in self.scores.items()
            if any(score is not None and is_average(score) for score in row) == averages
        }

    @property
    def large(self) -> bool:
        """Whether there are too many subsets to show each of them."""
        return len(self.scores) > MANY

    def told(self) -> dict[str, list[Score | None]]:
        """The rows that the page has room for: all; of many, the averages, or the first ones where there are none."""
        if not self.large:
            return self.scores
        return self.part(averages=True) or dict(list(self.scores.items())[:MANY])

    def tops(self) -> dict[str, list[Score | None]]:
        """The averages that no other average is over, without those that repeat one over the same subsets."""
        inner, kept, known = self._inner(), {}, set()
        for subset, row in self.part(averages=True).items():
            over = tuple(frozenset(score.over) if score else None for score in row)
            if subset not in inner and over not in known:
                kept[subset] = row
                known |= {over} if all(over) else set()
        return kept

    def by_language(self) -> dict[str, list[Score | None]]:
        """What bars are drawn of: averages that others are over (`xx-kor`, from all languages), else the subsets.

        Of these, only what an average is over, where there is one: all languages at once do not compare with pairs.
        """
        inner = self._inner()
        found = {subset: row for subset, row in self.part(averages=True).items() if subset in inner}
        plain = {} if self.large else self.part(averages=False)
        return found or {subset: row for subset, row in plain.items() if subset in inner} or plain

    def _inner(self) -> set[str]:
        return {name for subset, row in self.scores.items() for s in row if s for name in s.over if name != subset}


def clean(results: Sequence[Results]) -> list[Results]:
    """The same with the replacement character for all that JSON can hold and a page cannot, such as control codes."""
    return [
        Results(
            plain(result.model),
            {plain(key): plain(value) if isinstance(value, str) else value for key, value in result.settings.items()},
            tuple(_clean(score) for score in result.scores),
        )
        for result in results
    ]


def plain(words: str) -> str:
    """Words without characters that no page may hold."""
    return _UNPRINTABLE.sub("\ufffd", words)


def tables(results: Sequence[Results], *, main: bool = True) -> list[Table]:
    """A table for each task's main metric, or for every metric, task by task in the order of the results."""
    places: dict[tuple[str, str], dict[str, list[Score | None]]] = {}
    for place, result in enumerate(results):
        for score in result.scores:
            rows = places.setdefault((score.task, score.metric), {})
            rows.setdefault(score.subset, [None] * len(results))[place] = score
    metrics: dict[str, list[str]] = {}
    for task, metric in places:
        metrics.setdefault(task, []).append(metric)
    chosen = main_metrics(score for result in results for score in result.scores) if main else metrics
    return [
        Table(task, metric, rows, frozenset(alike(rows)))
        for task, names in chosen.items()
        for metric in names
        if (rows := places[task, metric])
    ]


def labels(results: Sequence[Results]) -> list[str]:
    """A name for each model, as short as keeps them apart: common folders are cut off, equal names are numbered."""
    parts = [result.model.rstrip("/").split("/") for result in results]
    if len(results) > 1:
        while all(len(path) > 1 for path in parts) and len({path[0] for path in parts}) == 1:
            parts = [path[1:] for path in parts]
        while all(len(path) > 1 for path in parts) and len({path[-1] for path in parts}) == 1:
            parts = [path[:-1] for path in parts]
    names = ["/".join(path) or "model" for path in parts]
    return [
        f"{name} ({names[: place + 1].count(name)})" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def is_seen(subset: str, seen: Collection[str]) -> bool | None:
    """Whether all languages of a subset were trained on; English counts as seen.

    None when nothing is `seen`, and for a subset that is not named by languages. Of `eng-agnews` and `spa-eng-4b`,
    only those parts count that are languages.
    """
    parts = [part for part in subset.split("-") if is_language(part)]
    return all(among(part, ["eng", *seen]) for part in parts) if seen and parts else None


def called(subset: str) -> str:
    """A subset's name, shortened when it names many languages."""
    parts = subset.split("-")
    return subset if len(parts) <= _PARTS else f"{len(parts)} languages ({parts[0]} … {parts[-1]})"


def change(table: Table, pair: tuple[Score, Score], *, seen: bool | None) -> Bar:
    """The second model's score less the first's, as a bar."""
    value = pair[1].value - pair[0].value
    return Bar(pair[0].subset, value * table.unit, table.shown(value, sign=True), seen, _drawn(table, _margin(*pair)))


def bar(table: Table, score: Score, *, seen: bool | None) -> Bar:
    """A model's score as a bar."""
    margin = _drawn(table, _margin(score))
    return Bar(score.subset, score.value * table.unit, table.shown(score.value), seen, margin)


def _drawn(table: Table, margin: float | None) -> float | None:
    return None if margin is None else margin * table.unit


def _clean(score: Score) -> Score:
    details = tuple(
        Detail(
            plain(detail.kind),
            tuple(map(plain, detail.columns)),
            tuple(tuple(plain(cell) if isinstance(cell, str) else cell for cell in row) for row in detail.rows),
        )
        for detail in score.details
    )
    names = plain(score.task), plain(score.subset), plain(score.metric)
    over = tuple(map(plain, score.over))
    return replace(score, task=names[0], subset=names[1], metric=names[2], over=over, details=details)


def _margin(*scores: Score) -> float | None:
    """Half the 95 % interval of a mean, or of the difference of two, from the items."""
    items = [
        score.items.astype(np.float64) for score in scores if score.items is not None and score.statistic == "mean"
    ]
    if len(items) < len(scores) or items[0].ndim != 1 or len(items[0]) < 2 or len({part.shape for part in items}) > 1:
        return None
    outcomes = items[0] if len(items) == 1 else items[1] - items[0]
    return _CONFIDENCE * float(outcomes.std(ddof=1)) / float(np.sqrt(len(outcomes)))
