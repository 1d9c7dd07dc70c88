"""The tables of the page: summary, all scores, settings, and what went wrong, sentence by sentence."""

from __future__ import annotations

from collections.abc import Sequence

from isoglot.evaluation.base import Detail, Score
from isoglot.report.page.facts import Table, labels, tables
from isoglot.report.page.markup import Html, element, folded, join, number, sentence, table, text
from isoglot.report.scores import Results

_WITHOUT_AVERAGE = 8  # subsets that the summary shows of a task that has no averages
_WORST = 10  # rows of a table of sentences
_ROWS = 2500  # of all these tables together, so that the page opens at once
_FEW = 30  # rows up to which a table is open at first


def summary(results: Sequence[Results]) -> Html:
    """A row for each average of each task's main metric, the best in bold, the change against the first model."""
    rows = []
    for found in tables(results):
        averages = found.part(averages=True)
        for subset, scores in (averages or dict(list(found.scores.items())[:_WITHOUT_AVERAGE])).items():
            rows.append(element("tr", _head(found), _name(subset), *_values(found, scores)))
        if not averages and len(found.scores) > _WITHOUT_AVERAGE:
            more = _name(f"{len(found.scores) - _WITHOUT_AVERAGE} more")
            rows.append(element("tr", _head(found), more, *[element("td")] * (len(results) + 1)))
    header = [("task", False), ("subset", False), *((name, True) for name in labels(results))]
    return table([*header, ("n", True)], [rows], label="Summary")


def all_scores(results: Sequence[Results]) -> Html:
    """Every number: for each task a table for each metric, folded when it is long."""
    parts: dict[str, list[Html]] = {}
    for found in tables(results, main=False):
        parts.setdefault(found.task, []).append(_scores(found, results))
    return join(join([element("h3", text(task)), *content]) for task, content in parts.items())


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


def sentences(results: Sequence[Results], kind: str) -> Html:
    """The details of a kind as tables: a fold for each subset, within a fold for each task and model."""
    chosen = [
        (place, score, detail)
        for place, result in enumerate(results)
        for score in result.scores
        for detail in score.details
        if detail.kind == kind and detail.rows
    ]
    most = max(3, min(_WORST, _ROWS // max(1, len(chosen))))
    parts: dict[tuple[str, int], dict[str, list[Html]]] = {}
    for place, score, detail in chosen:
        parts.setdefault((score.task, place), {}).setdefault(score.subset, []).append(_detail(score, detail, most))
    names = labels(results)
    found = []
    for (task, place), subsets in parts.items():
        folds = [folded(text(subset), *shown, subset=subset) for subset, shown in subsets.items()]
        title = task + (f" · {names[place]}" if len(names) > 1 else "")
        found += [element("h3", text(title)), element("div", join(folds), class_="folds")]
    return join(found)


def _head(found: Table) -> Html:
    return element("th", text(found.task), element("small", text(found.name)), scope="row")


def _name(subset: str) -> Html:
    return element("td", text(subset), class_="name")


def _values(found: Table, scores: Sequence[Score | None]) -> list[Html]:
    """Cells of a row: values, the change against the first model, and the number of items."""
    sizes = {score.n for score in scores if score}
    comparable = len(sizes) == 1
    known = [score.value for score in scores if score]
    best = found.shown((min if found.lower else max)(known))
    cells = []
    for place, score in enumerate(scores):
        value = None if score is None else score.value
        bold = comparable and len(known) > 1 and found.shown(value) == best
        note = "" if score is None or comparable else f"n {score.n:,}"
        if place and comparable and score is not None and scores[0] is not None:
            note = found.shown(score.value - scores[0].value, sign=True)
        cells.append(number(found.shown(value), bold=bold, note=note))
    return [*cells, number(f"{sizes.pop():,}" if comparable else "differs")]


def _scores(found: Table, results: Sequence[Results]) -> Html:
    rows = {averages: found.part(averages=averages) for averages in (False, True)}
    bodies = [
        [_row(found, subset, scores, filtered=not averages) for subset, scores in part.items()]
        for averages, part in rows.items()
    ]
    header = [("subset", False), *((name, True) for name in labels(results)), ("n", True)]
    label = f"{found.task}, {found.name}"
    shown = table(header, bodies, label=label)
    count = element("small", text(f" {len(found.scores)} rows"))
    return folded(Html(text(found.name) + count), shown, opened=len(found.scores) <= _FEW)


def _row(found: Table, subset: str, scores: Sequence[Score | None], *, filtered: bool) -> Html:
    head = element("th", text(subset), scope="row")
    return element("tr", head, *_values(found, scores), data_subset=subset if filtered else None)


def _detail(score: Score, detail: Detail, most: int) -> Html:
    numeric = [all(isinstance(row[at], int | float) for row in detail.rows) for at in range(len(detail.columns))]
    language = score.subset if "-" not in score.subset else None  # of a pair, it is not known which
    rows = []
    for row in detail.rows[:most]:
        own = str(row[detail.columns.index("language")]) if "language" in detail.columns else language
        rows.append(element("tr", *(_cell(cell, numbers, own) for cell, numbers in zip(row, numeric, strict=True))))
    shown = table(list(zip(detail.columns, numeric, strict=True)), [rows], label=f"{score.task}, {score.subset}")
    cut = f", {most} of {len(detail.rows)} shown" if len(detail.rows) > most else ""
    return join([element("small", text(score.metric + cut)), shown])


def _cell(cell: str | float, numeric: bool, language: str | None) -> Html:
    if not numeric:
        return sentence(str(cell), language=language)
    return number(f"{cell}" if isinstance(cell, int) else f"{cell:.3f}".rstrip("0").rstrip(".").replace("-", "−"))
