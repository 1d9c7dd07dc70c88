"""One self-contained HTML page of results; it loads no other files.

The functions below turn scores into plain data (`Grid`-like tables, bars, figures); `templates/page.html` is the only
place that writes HTML, and it escapes every text, because names and sentences of results may contain anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isoglot.core import __version__
from isoglot.core.errors import EvaluationError, naming_extras
from isoglot.core.score import Detail, Results, Score, main_metrics
from isoglot.data.files import atomic_write
from isoglot.data.languages import among, canonical_list, english_name, is_language, tag
from isoglot.report import charts
from isoglot.report.charts import Sentence
from isoglot.report.comparable import alike
from isoglot.report.html import ENVIRONMENT, Tables, facts, languages_in, shorten
from isoglot.report.tables import MANY, Grid, by_language, list_names, scale, side_by_side, spell, to_label

_CONFIDENCE = 1.96  # standard errors on either side of a normal variable that contain 95 % of it
# A task with at most `_FEW_SUBSETS` is shown completely in the summary, of others the first `_FIRST`.
_FEW_SUBSETS, _FIRST = 8, 5
_NAMED = 3  # models and tasks up to which the title names them
_OPEN = 30  # rows up to which a table is open at first
_WIDE = 24  # languages from which a heat map takes the whole width, its rows reordered
_WORST, _SENTENCE_ROWS = 10, 2500  # maximum rows of a table of sentences, and of all of them together


# A macro of `templates/macros.html` and its arguments, which are explained there.
Block = tuple[Any, ...]


class Bar(NamedTuple):
    """A bar: text, start, end and interval in the unit of the score, and whether its languages were trained on."""

    label: str
    value: float
    text: str
    seen: bool | None = None
    margin: float | None = None


Rows = dict[str, list[Score | None]]
Models = Mapping[str, Results]  # by the name that the page shows


@dataclass(frozen=True, slots=True)
class Measure:
    """One task and metric over all models: `rows[subset][place of the model]`, None where a model lacks it."""

    task: str
    metric: str
    rows: Rows

    @property
    def any(self) -> Score:
        """One of the scores: all have the same unit and direction."""
        return next(score for row in self.rows.values() for score in row if score)

    @property
    def large(self) -> bool:
        """Whether there are too many subsets to show all of them."""
        return len(self.rows) > MANY

    def part(self, *, averages: bool) -> Rows:
        """Only the averages, or only the subsets they are over."""
        return {name: row for name, row in self.rows.items() if any(score and score.over for score in row) == averages}

    def tops(self) -> Rows:
        """The averages that no other average is over, without those that repeat one over the same subsets."""
        inner, averages, overs = self._inner(), {}, set()
        for subset, row in self.part(averages=True).items():
            over = tuple(frozenset(score.over) if score else None for score in row)
            if subset not in inner and over not in overs:
                averages[subset] = row
                overs |= {over} if all(over) else set()
        return averages

    def by_language(self) -> Rows:
        """The rows shown as bars: averages that are part of other averages (`xx-kor`, from all languages), else the
        subsets; if there is an average, only its subsets, because a subset of all languages is not comparable with
        pairs.
        """
        inner = self._inner()
        averages = {subset: row for subset, row in self.part(averages=True).items() if subset in inner}
        subsets = {} if self.large else self.part(averages=False)
        return averages or {subset: row for subset, row in subsets.items() if subset in inner} or subsets

    def _inner(self) -> set[str]:
        return {name for subset, row in self.rows.items() for s in row if s for name in s.over if name != subset}


@naming_extras()
def page(
    results: Sequence[Results],
    *,
    seen: Collection[str] = (),
    title: str | None = None,
    comparison: Tables | None = None,
) -> str:
    """The page, an HTML document. The same results give the same bytes, by the same command on the same day.

    results     one model gives a report card; of several, the first is the base the others are compared with
    seen        languages of the training data, which the page shows apart. In any code system: a subset is
                seen when all its languages are, English counting as seen
    title       title of the page. None: the names of the models and the tasks
    comparison  tables of intervals and p-values that are on the page too

    Sections without data are left out. Raises `EvaluationError` when there is nothing to show, and `CorpusError` for an
    unknown language.
    """
    if not any(result for result in results):
        raise EvaluationError("no scores to show; pass results written by `isoglot evaluate`")
    models = dict(zip(_labels(results), results, strict=True))
    sections = {name: content for name, content in _sections(models, canonical_list(seen)).items() if content}
    lines = []
    for name, result in models.items():
        version = result.settings.get("version", __version__)
        parts = name, result.model, "" if version == __version__ else f"scores of isoglot {version}"
        lines.append(" · ".join(dict.fromkeys(filter(None, parts))))
    tasks = list(dict.fromkeys(score.task for result in results for score in result))
    about = {"title": title or make_title([*models], tasks), "facts": facts(lines, list_names(tasks))}
    template, several = ENVIRONMENT.get_template("page.html"), len(models) > 1
    return charts.plain(template.render(about, sections=sections, comparison=comparison, several=several))


def make_title(models: Sequence[str], tasks: Sequence[str]) -> str:
    """What a page shows: its models and tasks, or how many there are."""
    names = " and ".join(models) if len(models) <= _NAMED else f"{len(models)} models"
    what = ", ".join(tasks) if len(tasks) <= _NAMED else f"{len(tasks)} tasks"
    return f"{names}{' compared' if len(models) > 1 else ''} on {what}"


def write_page(path: str | Path, results: Sequence[Results], **settings: Any) -> None:
    """Write a `page` with its settings to a file, atomically."""
    content = page(results, **settings)
    with atomic_write(path) as stream:
        stream.write(content)


def _sections(models: Models, seen: Collection[str]) -> dict[str, list[Block]]:
    """The content of each section, by its identifier; the template has headings and captions."""
    scores = [score for result in models.values() for score in result]
    kinds = dict.fromkeys(detail.kind for score in scores for detail in score.details)
    others = [kind for kind in kinds if kind not in ("mistakes", "similarity", "map", "hits")]
    measures, main = _measures(models), main_metrics(scores)
    mains = [one for one in measures if one.metric in main[one.task]]
    return {
        "summary": [_summary(mains, models)],
        "languages": list(_languages(mains, [*models], seen)),
        "alignment": list(_alignment(measures, [*models])),
        "similarity": list(_similarity(models)),
        "maps": list(_maps(models)),
        "mistakes": list(_details(models, "mistakes")),
        "hits": list(_details(models, "hits")),
        "tables": list(_details(models, *others)),
        "scores": list(_all_scores(measures, models)),
        "settings": [("settings", models)] if any(result.settings for result in models.values()) else [],
    }


def _measures(models: Models) -> list[Measure]:
    """Every task and metric, task by task in the order of the results."""
    tasks: dict[str, dict[str, Rows]] = {}
    for place, result in enumerate(models.values()):
        for score in result:
            rows = tasks.setdefault(score.task, {}).setdefault(score.metric, {})
            rows.setdefault(score.subset, [None] * len(models))[place] = score
    return [Measure(task, metric, rows) for task, metrics in tasks.items() for metric, rows in metrics.items()]


def _labels(results: Sequence[Results]) -> list[str]:
    """A short unique name for each model: common parent folders are removed, equal names are numbered."""
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


# --- tables of scores ---


def _summary(mains: Sequence[Measure], models: Models) -> Block:
    """A few rows for each task's main metric: the averages that no other is over, or else the first subsets."""
    rows, bold = list[tuple[str, ...]](), set[tuple[int, int]]()
    for measure in mains:
        grid = side_by_side(models, task=measure.task, metric=measure.metric, changes=True)
        shown_rows = measure.tops() or measure.rows
        limit = len(shown_rows) if len(shown_rows) <= _FEW_SUBSETS else _FIRST
        for number, subset in enumerate(list(shown_rows)[:limit]):
            place = [row[0] for row in grid.rows].index(subset)
            overs = {score.over for score in shown_rows[subset] if score}
            over = f" over {list_names(overs.pop(), most=3)}" if len(overs) == 1 and () not in overs else ""
            task = measure.task if number else f"{measure.task} {to_label(measure.any)}"
            bold |= {(len(rows), at + 1) for row, at in grid.bold if row == place}
            rows.append((task, shorten(subset) + over, *grid.rows[place][1:]))
        if more := len(shown_rows) - limit:
            rows.append((measure.task, f"{more:,} more, below", *[""] * (len(models) + 1)))
    grid = Grid("Summary", ("task", "subset", *models, "n"), tuple(rows), frozenset(bold))
    return "table", grid, [False, False, *[True] * (len(models) + 1)]


def _all_scores(measures: Sequence[Measure], models: Models) -> Iterator[Block]:
    """Every number: of one model a table for each task, of several one for each metric; folded when it is long.

    Of a task with too many subsets only the averages.
    """
    for task, group in groupby(measures, lambda measure: measure.task):
        if len(models) == 1:
            grids = [by_language(*models.values(), task=task)]
        else:
            metrics = [measure.metric for measure in group]
            grids = [side_by_side(models, task=task, metric=name, changes=True, most=MANY) for name in metrics]
        yield "heading", task
        for grid in grids:
            rows = len(grid.rows)
            summary = f"{grid.title.removeprefix(task).strip() or 'All metrics'}, {rows} row{'s' if rows > 1 else ''}"
            yield "fold", summary, [(grid, None, (), True)], rows <= _OPEN


# --- bars and figures ---


def _languages(mains: Sequence[Measure], names: Sequence[str], seen: Collection[str]) -> Iterator[Block]:
    """Bars by language for each task: changes from the first model, or, for one model alone, its scores."""
    shown_tasks = set[str]()
    if seen and any(len(measure.by_language()) > 1 for measure in mains):
        trained = ", ".join(f"{code} {english_name(code)}" for code in seen if code.partition("_")[0] != "eng")
        yield "paragraph", f"Solid: seen in training ({trained}, English). Striped: unseen."
    without = {measure.task for measure in mains if measure.metric == "uniformity"}  # they have their own section
    for measure in mains:
        rows = measure.by_language()
        if measure.task in shown_tasks | without or len(rows) < 2:
            continue
        shown_tasks.add(measure.task)
        for place in range(1, len(names)) if len(names) > 1 else (0,):
            if bars := list(_bars(measure, rows, place, seen)):
                title = f"{measure.task}, {to_label(measure.any)}" + (f": {names[place]} − {names[0]}" if place else "")
                yield _draw_bars(title, _describe(measure, bars, changes=place > 0), bars)


def _draw_bars(title: str, note: str, bars: Sequence[Bar]) -> Block:
    """Bars on one scale, which contains 0 and every interval; positions are in percent of it."""
    ends = [bar.value + way * (bar.margin or 0) for bar in bars for way in (-1, 1)]
    low, high = min(0.0, *ends), max(0.0, *ends)
    high = high if high > low else low + 1

    def share(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    width = 1 + min(26, max(len(f"{shorten(bar.label)} {languages_in(bar.label)}") for bar in bars))
    return "bars", title, note, bars, width, share


def _bars(measure: Measure, rows: Rows, place: int, seen: Collection[str]) -> Iterator[Bar]:
    """Seen languages first, the best first."""
    pairs = {name: (a, b) for name, row in measure.rows.items() if (a := row[0]) and (b := row[place])}
    same, unit = alike(pairs) if place else set(pairs), measure.any.unit
    bars = []
    for subset in (name for name in rows if name in same):
        base, other = pairs[subset]
        value = round(other.value - base.value, 12) if place else base.value  # means may differ by rounding
        margin = estimate_margin(base, other) if place else estimate_margin(base)
        margin = None if margin is None else scale(unit) * margin
        text = spell(value, unit, sign=place > 0)
        bars.append(Bar(subset, scale(unit) * value, text, is_seen(subset, seen), margin))
    turn = 1 if measure.any.lower_is_better else -1
    yield from sorted(bars, key=lambda bar: (bar.seen is False, turn * bar.value))


def _describe(measure: Measure, bars: Sequence[Bar], *, changes: bool) -> str:
    kind = "average" if bars[0].label in measure.part(averages=True) else "subset"
    parts = []
    for seen, word in ((None, ""), (True, "seen "), (False, "unseen ")):
        if values := [bar.value for bar in bars if bar.seen is seen]:
            mean = spell(float(np.mean(values)) / scale(measure.any.unit), measure.any.unit, sign=changes)
            noun = f"{word}{kind}{'s' if len(values) > 1 else ''}"
            parts.append(f"{len(values)} {noun}, mean {'change ' if changes else ''}{mean}")
    if changes:
        good = sum(1 for bar in bars if (bar.value < 0 if measure.any.lower_is_better else bar.value > 0))
        same = sum(1 for bar in bars if bar.value == 0)
        parts.append(f"{good} better, {len(bars) - good - same} worse, {same} equal")
    if kind == "average":
        sizes = {len(score.over) for bar in bars for score in measure.rows[bar.label] if score}
        parts[0] += f", each over {'/'.join(map(str, sorted(sizes)))} subsets (xx: every other language)"
    intervals = " Thin lines: 95 % intervals over test items." if any(bar.margin is not None for bar in bars) else ""
    return "; ".join(parts) + "." + intervals


def estimate_margin(*scores: Score) -> float | None:
    """Half the 95 % interval of a mean, or of the difference of two over the same items; None if they are not means."""
    items = [score.items.astype(float) for score in scores if score.items is not None and score.statistic == "mean"]
    if len(items) < len(scores) or items[0].ndim != 1 or len(items[0]) < 2 or len({part.shape for part in items}) > 1:
        return None
    outcomes = items[0] if len(items) == 1 else items[1] - items[0]
    return _CONFIDENCE * float(outcomes.std(ddof=1)) / float(np.sqrt(len(outcomes)))


def is_seen(subset: str, seen: Collection[str]) -> bool | None:
    """Whether all languages of a subset were trained on; English counts as seen.

    None when nothing is `seen`, and for a subset that is not named by languages. Of `eng-agnews` and `spa-eng-4b`,
    only those parts count that are languages.
    """
    parts = [part for part in subset.split("-") if is_language(part)]
    return all(among(part, ["eng", *seen]) for part in parts) if seen and parts else None


def _alignment(measures: Sequence[Measure], models: Sequence[str]) -> Iterator[Block]:
    """A figure for each task that has both metrics: a point for each model and subset."""
    names = [name if len(name) <= 24 else f"{name[:12]}…{name[-11:]}" for name in models]
    by_name = {(one.task, one.metric): one for one in measures}
    for task in dict.fromkeys(one.task for one in measures):
        first, second = by_name.get((task, "alignment")), by_name.get((task, "uniformity"))
        if first is None or second is None:
            continue
        averages = first.tops()
        subsets = ({} if first.large else first.part(averages=False)) | averages
        spots = [
            charts.Spot(name, subset, u.value, a.value, average=subset in averages)
            for subset, row in subsets.items()
            for name, a, u in zip(names, row, second.rows.get(subset, []), strict=False)
            if a and u
        ]
        if len(spots) > 1:
            shown_subsets = dict.fromkeys(spot.subset for spot in spots)
            caption = f"{task}, {spots[0].subset}" if len(shown_subsets) == 1 else task
            words = (f"{spot.subset} {spot.model} {spot.alignment:.3f}, {spot.uniformity:.3f}" for spot in spots)
            alt = f"{task}: {'; '.join(words)}"
            yield "figure", charts.alignment_uniformity(spots), caption, alt, False, None, (), [*shown_subsets]


def _similarity(models: Models) -> Iterator[Block]:
    """Heat maps, those of several models on one scale."""
    for title, entries in _group_details(models, "similarity").items():
        tables = [charts.matrix(detail, title) for _, _, detail in entries]
        values_of_all = np.concatenate([values.ravel() for values in tables])
        limits = (float(np.nanmin(values_of_all)), float(np.nanmax(values_of_all)))
        _, score, first = entries[0]
        caption = title
        if [row[0] for row in first.rows] != list(first.columns[1:]):  # rows are the sentences of one group
            metric = score.metric.partition("/")[0]
            caption = f"{score.task}, {shorten(score.subset)}: {metric} within one group of translations"
        for (name, _, detail), values in zip(entries, tables, strict=True):
            codes, rows = list(detail.columns[1:]), [str(row[0]) for row in detail.rows]
            if len(codes) > _WIDE:  # in the order of the first model, if it has the same languages
                order = charts.similar_adjacent(tables[0] if first.columns == detail.columns else values)
                codes, rows = [codes[place] for place in order], [rows[place] for place in order]
                values = values[np.ix_(order, order)]
            alt = f"{caption}, {name}: heat map of {len(codes)} languages, from {limits[0]:.2f} to {limits[1]:.2f}"
            # A code before the sentence would determine its direction.
            pairs = [(code, row.removeprefix(f"{code}: ")) for code, row in zip(codes, rows, strict=True)]
            sentences = _sentences(("language", "sentence"), pairs) if rows != codes else None
            words = f"{caption} · {name}" if len(models) > 1 else caption
            source = charts.heat_map(codes, values, limits=limits)
            yield "figure", source, words, alt, len(codes) > _WIDE, sentences, (), codes


def _maps(models: Models) -> Iterator[Block]:
    """A map for each model and subset, with its sentences below; it shows vectors, so the metric is left out."""
    for title, entries in _group_details(models, "map").items():
        for name, score, detail in entries:
            if absent := [name for name in ("group", "language", "x", "y", "text") if name not in detail.columns]:
                raise EvaluationError(f"{title}: the map has no column {absent[0]!r}; evaluate again")
            rows = [dict(zip(detail.columns, row, strict=True)) for row in detail.rows]
            points = [Sentence(*(str(row[key]) for key in ("text", "language", "group", "language"))) for row in rows]
            try:
                places = np.array([[float(row["x"]), float(row["y"])] for row in rows])
            except ValueError as error:
                raise EvaluationError(f"{title}: the map has a place that is not a number; evaluate again") from error
            with charts.draw(points, charts.frame(places), side=charts.WIDTH) as (figure, shares):
                source = charts.data_uri(figure)
            joined = charts.find_groups(points)
            caption = f"{score.task}, {shorten(score.subset)}: {len(points)} sentences, {len(joined)} groups joined"
            codes = dict.fromkeys(point.language for point in points)
            alt = f"{caption}, {name}; languages: {', '.join(codes)}"
            listed = [(point.group, point.language, point.text) for point in points if point.group in joined]
            sentences = _sentences(("group", "language", "sentence"), listed) if listed else None
            spots = [
                (f"{100 * x:.1f}%", f"{100 * (1 - y):.1f}%", f"{point.language}: {point.text}")
                for (x, y), point in zip(shares, points, strict=True)
            ]
            wide = len(codes) > len(charts.MARKERS)
            words = f"{caption} · {name}" if len(models) > 1 else caption
            yield "figure", source, words, alt, wide, sentences, spots, codes


def _sentences(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Block:
    """The sentences of a figure; the last column is text in the language before it."""
    grid = Grid("", tuple(header), tuple(map(tuple, rows)))
    return "Sentences", [(grid, [False] * len(header), [tag(row[-2]) for row in rows])]


# --- tables of sentences ---


def _group_details(models: Models, kind: str) -> dict[str, list[tuple[str, Score, Detail]]]:
    """Details of a kind by the title that models share, each with its model's name and its score."""
    titles: dict[str, list[tuple[str, Score, Detail]]] = {}
    for name, result in models.items():
        for score in result:
            details = [detail for detail in score.details if detail.kind == kind and detail.rows]
            for place, detail in enumerate(details, 1):
                more = f", {place}" if len(details) > 1 else ""
                title = f"{score.task}, {shorten(score.subset)}, {to_label(score)}{more}"
                titles.setdefault(title, []).append((name, score, detail))
    return titles


def _details(models: Models, *kinds: str) -> Iterator[Block]:
    """The details of these kinds as folded tables, subset by subset; a heading for each task."""
    tasks: dict[str, dict[str, list[tuple[str, Score, Detail]]]] = {}
    for name, result in models.items():
        for score in result:
            for detail in score.details:
                if detail.kind in kinds and detail.rows:
                    entries = tasks.setdefault(score.task, {}).setdefault(score.subset, [])
                    entries.append((f"{name} · " if len(models) > 1 else "", score, detail))
    total = sum(len(entries) for subsets in tasks.values() for entries in subsets.values())
    most = max(3, min(_WORST, _SENTENCE_ROWS // max(1, total)))
    for task, subsets in tasks.items():
        yield "heading", task
        for subset, entries in subsets.items():
            yield "fold", shorten(subset), [_detail(*entry, most) for entry in entries], False, subset


def _detail(model: str, score: Score, detail: Detail, most: int) -> Block:
    """The arguments of the table."""
    shown = list(detail.rows[:most])
    if detail.kind == "hits":  # all rows of this many queries
        queries = (rows for _, rows in groupby(detail.rows, lambda row: row[0]))
        shown = list(chain.from_iterable(map(list, islice(queries, most))))
    columns = list(zip(*detail.rows, strict=True))
    numeric = [all(isinstance(cell, int | float) for cell in column) for column in columns]
    digits = [  # at most three decimals
        max(len(f"{cell:.3f}".rstrip("0").partition(".")[2]) for cell in column) if number else 0
        for column, number in zip(columns, numeric, strict=True)
    ]
    rows = tuple(
        tuple(f"{cell:.{digits[at]}f}" if numeric[at] else str(cell) for at, cell in enumerate(row)) for row in shown
    )
    language = score.subset if "-" not in score.subset else None  # unknown for a pair
    where = detail.columns.index("language") if "language" in detail.columns else None
    languages = [tag(language if where is None else row[where]) for row in rows]
    cut = f", {len(shown)} of {len(detail.rows)} shown" if len(shown) < len(detail.rows) else ""
    return Grid(f"{model}{score.metric}{cut}", detail.columns, rows), numeric, languages
