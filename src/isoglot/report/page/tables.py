"""The tables of the page that are made of scores: summary, all scores, settings."""

from __future__ import annotations

from collections.abc import Sequence

from isoglot.data.languages import is_language
from isoglot.evaluation.base import Score
from isoglot.report.page.averages import beside, listed
from isoglot.report.page.facts import Table, called, labels, tables
from isoglot.report.page.markup import Html, element, folded, join, number, sentence, table, text
from isoglot.report.page.words import search_words
from isoglot.report.scores import Results

_FEW_SUBSETS = 8  # rows of a task up to which the summary has them all
_FIRST = 5  # and how many of them where there are more
_FEW = 30  # rows up to which a table is open at first


def summary(results: Sequence[Results]) -> Html:
    """A few rows for each task's main metric, the best in bold, the change against the first model.

    They are the averages that no other is over; of a task without any, its subsets, or the first of them. Below, what
    all averages are over.
    """
    rows = []
    for found in tables(results):
        subsets = found.tops() or found.scores
        most = len(subsets) if len(subsets) <= _FEW_SUBSETS else _FIRST
        for place, (subset, scores) in enumerate(list(subsets.items())[:most]):
            head = _head(found, again=place > 0), _name(subset, scores)
            rows.append(element("tr", *head, *_values(found, subset)))
        if more := len(subsets) - most:
            empty = [element("td")] * (len(results) + 1)
            rows.append(element("tr", _head(found, again=True), _name(f"{more:,} more", []), *empty))
    header = [("task", False), ("subset", False), *((name, True) for name in labels(results))]
    return join([table([*header, ("n", True)], [rows], label="Summary"), listed(results)])


def all_scores(results: Sequence[Results]) -> Html:
    """Every number: of one model a table for each task, of several one for each metric; folded when it is long.

    Of a task with very many subsets only the averages, and words that say so.
    """
    parts: dict[str, list[Table]] = {}
    for found in tables(results, main=False):
        parts.setdefault(found.task, []).append(found)
    shown = []
    for task, every in parts.items():
        shown += [element("h3", text(task)), _left_out(every)]
        shown += [_metrics(every)] if len(results) == 1 else [_scores(found, results) for found in every]
    return join(shown)


def _left_out(every: Sequence[Table]) -> Html:
    large = [found for found in every if found.large]
    if not large:
        return Html("")
    total = sum(1 for found in every for row in found.scores.values() for score in row if score)
    kept = "averages" if all(found.part(averages=True) for found in large) else "averages and first subsets"
    words = f"{len(large[0].part(averages=False)):,} subsets: only their {kept} are shown here; "
    return element("p", text(f"{words}results.json has all {total:,} scores of this task."), class_="quiet")


def settings(results: Sequence[Results]) -> Html:
    """How each model was run, as far as the results say."""
    found = [dict(result.settings) for result in results]
    keys = dict.fromkeys(key for setting in found for key in setting)
    rows = [
        element(
            "tr",
            element("th", text(key), scope="row"),
            *(sentence(str(setting.get(key, "–"))) for setting in found),
        )
        for key in keys
    ]
    return table([("setting", False), *((name, False) for name in labels(results))], [rows], label="Settings")


def _head(found: Table, *, again: bool) -> Html:
    if again:
        return element("th", text(found.task), class_="again", scope="row")
    return element("th", text(found.task), Html(" "), element("small", text(found.name)), scope="row")


def _name(subset: str, scores: Sequence[Score | None]) -> Html:
    return element("td", _subset(subset, scores), class_="name")


def _subset(subset: str, scores: Sequence[Score | None]) -> Html:
    """The name of a subset or of an average, with what this is over."""
    over = beside(scores)
    return Html(f"{text(called(subset))} {element('small', text(over))}") if over else text(called(subset))


def _values(found: Table, subset: str) -> list[Html]:
    """Cells of a row: values, the change against the first model, and the number of items."""
    scores = found.scores[subset]
    sizes = {score.n for score in scores if score}
    comparable = subset in found.alike
    known = [score.value for score in scores if score]
    best = found.shown((min if found.lower else max)(known))
    cells = []
    for place, score in enumerate(scores):
        value = None if score is None else score.value
        bold = comparable and len(known) > 1 and found.shown(value) == best
        note = "" if score is None or len(sizes) == 1 else f"n {score.n:,}"
        if place and comparable and score is not None and scores[0] is not None:
            note = found.shown(score.value - scores[0].value, sign=True)
        cells.append(number(found.shown(value), bold=bold, note=note))
    total = f"{sizes.pop():,}" if len(sizes) == 1 else "differs"
    return [*cells, number(total, note="" if comparable or total == "differs" else "other data")]


def _scores(found: Table, results: Sequence[Results]) -> Html:
    header = [("subset", False), *((name, True) for name in labels(results)), ("n", True)]
    bodies = [
        [_row(subset, scores, _values(found, subset)) for subset, scores in part.items()] for part in _parts(found)
    ]
    return _fold(found.name, f"{found.task}, {found.name}", header, bodies)


def _metrics(every: Sequence[Table]) -> Html:
    """One model on a task: a row for each subset, a column for each metric."""
    rows: tuple[dict[str, list[Score | None]], ...] = ({}, {})
    for place, found in enumerate(every):
        for known, part in zip(rows, _parts(found), strict=True):
            for subset, scores in part.items():
                known.setdefault(subset, [None] * len(every))[place] = scores[0]
    bodies = []
    for part in rows:
        body = []
        for subset, scores in part.items():
            pairs = zip(every, scores, strict=True)
            cells = [number(found.shown(score.value) if score else "") for found, score in pairs]
            sizes = dict.fromkeys(score.n for score in scores if score)
            cells.append(number(" / ".join(f"{size:,}" for size in sizes)))
            body.append(_row(subset, scores, cells))
        bodies.append(body)
    header = [("subset", False), *((found.name, True) for found in every), ("n", True)]
    words = f"{len(every)} metrics" if len(every) > 1 else every[0].name
    return _fold(words, every[0].task, header, bodies)


def _parts(found: Table) -> list[dict[str, list[Score | None]]]:
    """The rows to show: subsets, then averages."""
    told, averages = found.told(), found.part(averages=True)
    return [{name: row for name, row in told.items() if (name in averages) is wanted} for wanted in (False, True)]


def _fold(words: str, label: str, header: Sequence[tuple[str, bool]], bodies: Sequence[Sequence[Html]]) -> Html:
    rows = sum(map(len, bodies))
    count = element("small", text(f" {rows} row{'s' if rows > 1 else ''}"))
    shown = table(header, bodies, label=label)
    return folded(Html(text(words) + count), shown, opened=rows <= _FEW)


def _row(subset: str, scores: Sequence[Score | None], cells: Sequence[Html]) -> Html:
    """A row, which the box that chooses languages hides; averages such as `xx-kor` too, but not the mean of all."""
    average = any(score is not None and score.over for score in scores)
    chosen = not average or any(map(is_language, subset.split("-")))
    head = element("th", _subset(subset, scores), scope="row")
    return element("tr", head, *cells, data_words=search_words(subset) if chosen else None)
