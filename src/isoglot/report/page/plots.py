"""The sections of the page that are drawn: which figures there are, at which scale, and the words below them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

import numpy as np

from isoglot.evaluation.base import Detail, Score
from isoglot.report.page import figures
from isoglot.report.page.facts import Table, change, column, details, is_seen, labels, matrix, tables
from isoglot.report.page.figures import Bar, Point
from isoglot.report.page.markup import Html, element, folded, sentence, table, text
from isoglot.report.scores import Results

_PANEL = 38  # bars in one panel, at most
_WIDE = 24  # languages from which a heat map takes the whole width
_NAME = 24  # letters of a model's name in a figure


def languages(results: Sequence[Results], *, seen: Collection[str]) -> Html:
    """Bars by language for each task: changes against the first model, or, for one model alone, its values."""
    numbers, names, parts = count(1), labels(results), []
    firsts = {found.task: found for found in reversed(tables(results))}
    for found in reversed(firsts.values()):
        rows = found.part(averages=False)
        if len(rows) < 2:
            continue
        for place in range(1, len(results)) if len(results) > 1 else (0,):
            bars = list(_bars(found, rows, place, seen))
            if bars:
                title = f"{found.task}, {found.name}" + (f": {names[place]} − {names[0]}" if place else "")
                parts.append(_panels(found, bars, title, numbers, changes=place > 0))
    return element("div", *_key(seen), *parts, class_="figures") if parts else Html("")


def alignment(results: Sequence[Results]) -> Html:
    """A figure for each task and subset that has both metrics, a point for each model."""
    numbers, names, drawn = count(1), labels(results), []
    found = {(one.task, one.metric): one for one in tables(results, main=False)}
    for task in dict.fromkeys(task for task, metric in found if (task, "uniformity") in found):
        both = [found[task, metric].scores for metric in ("alignment", "uniformity") if (task, metric) in found]
        for subset in both[0] if len(both) == 2 else ():
            rows = zip(names, both[0][subset], both[1].get(subset, []), strict=False)
            points = [(_short(name), a.value, u.value) for name, a, u in rows if a and u]
            if points:
                label = f"{task}, {subset}: " + "; ".join(f"{m}: {a:.3f}, {u:.3f}" for m, a, u in points)
                picture = figures.alignment_uniformity(points, name=f"alignment-{next(numbers)}", label=label)
                drawn.append(_figure(picture, f"{task}, {subset}"))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def similarity(results: Sequence[Results]) -> Html:
    """Heat maps, those of several models on one scale."""
    numbers, drawn = count(1), []
    for title, found in details(results, "similarity").items():
        tables_ = [(name, detail, matrix(detail, title)) for name, detail in found]
        finite = np.concatenate([values.ravel() for _, _, values in tables_])
        limits = (float(finite.min()), float(finite.max()))
        for name, detail, values in tables_:
            codes = [code[:14] for code in detail.columns[1:]]
            label = f"{title}, {name}: heat map of {len(codes)} languages, from {limits[0]:.2f} to {limits[1]:.2f}"
            picture = figures.heat_map(codes, values, name=f"heat-{next(numbers)}", label=label, limits=limits)
            caption = f"{title} · {name}" if len(results) > 1 else title
            drawn.append(_figure(picture, caption, _names(detail), wide=len(codes) > _WIDE))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def maps(results: Sequence[Results]) -> Html:
    """A map for each model and subset, with the sentences that are joined in it."""
    numbers, drawn = count(1), []
    for title, found in details(results, "map").items():
        for name, detail in found:
            at = [column(detail, wanted, title) for wanted in ("group", "language", "x", "y", "text")]
            points = [
                Point(str(row[at[0]]), str(row[at[1]]), float(row[at[2]]), float(row[at[3]])) for row in detail.rows
            ]
            joined = figures.groups(points)
            codes = dict.fromkeys(point.language for point in points)
            label = f"{title}, {name}: {len(points)} sentences in {', '.join(codes)}; {len(joined)} groups joined"
            picture = figures.sentence_map(points, name=f"map-{next(numbers)}", label=label)
            rows = [[str(row[place]) for place in (at[0], at[1], at[4])] for row in detail.rows]
            texts = _texts([row for row in rows if row[0] in joined])
            drawn.append(_figure(picture, f"{title} · {name}" if len(results) > 1 else title, texts))
    return element("div", *drawn, class_="figures large") if drawn else Html("")


def _key(seen: Collection[str]) -> list[Html]:
    """What the two kinds of bars mean."""
    if not seen:
        return []
    known = [element("span", class_="key"), text(f"seen in training: {', '.join(seen)}, and English")]
    return [element("p", *known, element("span", class_="key unseen"), text("unseen"), class_="wide quiet")]


def _bars(found: Table, rows: dict[str, list[Score | None]], place: int, seen: Collection[str]) -> Iterator[Bar]:
    for subset, scores in rows.items():
        base, other = scores[0], scores[place]
        if base is None or other is None:
            continue
        told = is_seen(subset, seen)
        if place == 0:
            yield Bar(subset, base.value * found.unit, found.shown(base.value), told)
        elif base.n == other.n:
            yield change(found, (base, other), seen=told)


def _panels(found: Table, bars: list[Bar], title: str, numbers: Iterator[int], *, changes: bool) -> Html:
    """As many figures as keep the bars readable, on one scale: seen languages first, the best first."""
    turn = 1 if found.lower else -1
    bars = sorted(bars, key=lambda bar: (bar.seen is False, turn * bar.value))
    share = -(-len(bars) // -(-len(bars) // _PANEL))
    limits = _limits(bars)
    axis = ("change" if changes else "value") + (" in points" if found.unit == 100 and changes else "")
    axis += " (percent)" if found.unit == 100 and not changes else ""
    words = _in_words(found, bars, changes=changes)
    drawn = []
    for start in range(0, len(bars), share):
        part = bars[start : start + share]
        label = f"{title}, " + ", ".join(f"{bar.label} {bar.text}" for bar in part)
        name = f"bars-{next(numbers)}"
        picture = figures.bars(part, name=name, label=label, axis=axis, limits=limits)
        drawn.append(element("figure", Html(picture)))
    heading = [element("h3", text(title)), element("p", text(words), class_="quiet")]
    if len(drawn) == 1:
        return element("div", *heading, *drawn)
    return element("div", *heading, element("div", *drawn, class_="figures"), class_="wide")


def _in_words(found: Table, bars: list[Bar], *, changes: bool) -> str:
    parts = []
    for told, word in ((None, ""), (True, "seen "), (False, "unseen ")):
        values = [bar.value for bar in bars if bar.seen is told]
        if values:
            noun = "subset" if len(values) == 1 else "subsets"
            mean = found.shown(float(np.mean(values)) / found.unit, sign=changes)
            parts.append(f"{len(values)} {word}{noun}, {'mean change' if changes else 'mean'} {mean}")
    if changes:
        good = sum(1 for bar in bars if (bar.value < 0 if found.lower else bar.value > 0))
        same = sum(1 for bar in bars if bar.value == 0)
        parts.append(f"{good} better, {len(bars) - good - same} worse, {same} the same")
    margin = any(bar.margin is not None for bar in bars)
    return "; ".join(parts) + (". Thin lines: 95 % intervals over the items." if margin else ".")


def _limits(bars: Sequence[Bar]) -> tuple[float, float]:
    low = min(0.0, *(bar.value - (bar.margin or 0) for bar in bars))
    high = max(0.0, *(bar.value + (bar.margin or 0) for bar in bars))
    room = 0.17 * (high - low) or 1.0  # for the numbers
    return (low - room if low < 0 else 0.0, high + room if high > 0 or high == low else 0.0)


def _names(detail: Detail) -> Html:
    """The rows' names in full, where they are more than the columns' (a sentence, for instance)."""
    names = [str(row[0]) for row in detail.rows]
    if names == list(detail.columns[1:]):
        return Html("")
    rows = [
        [str(place), code, name] for place, (code, name) in enumerate(zip(detail.columns[1:], names, strict=True), 1)
    ]
    return _texts(rows)


def _texts(rows: Sequence[Sequence[str]]) -> Html:
    if not rows:
        return Html("")
    lines = [
        element("tr", element("td", text(group)), element("td", text(code)), sentence(words, language=code))
        for group, code, words in rows
    ]
    header = [("group", False), ("language", False), ("sentence", False)]
    return folded(text("The sentences"), table(header, [lines], label="The sentences of the figure"))


def _figure(picture: str, caption: str, *below: Html, wide: bool = False) -> Html:
    # The picture comes from our own drawing, whose writer escapes.
    box = element("div", Html(picture), class_="scroll")
    return element("figure", box, element("figcaption", text(caption)), *below, class_="wide" if wide else None)


def _short(name: str) -> str:
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[-_NAME // 2 + 1 :]}"
