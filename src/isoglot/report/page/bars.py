"""The section of bars: what each language has of a task's main metric, or how it changed against the first model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

import numpy as np

from isoglot.evaluation.base import Score
from isoglot.report.comparable import alike
from isoglot.report.page import figures
from isoglot.report.page.facts import Table, bar, change, is_seen, labels, tables
from isoglot.report.page.figures import Bar
from isoglot.report.page.markup import Html, element, text
from isoglot.report.scores import Results

_PANEL = 38  # bars in one panel, at most


def languages(results: Sequence[Results], *, seen: Collection[str]) -> Html:
    """Bars by language for each task: changes against the first model, or, for one model alone, its values."""
    numbers, names, parts = count(1), labels(results), []
    every = tables(results)
    plotted = {found.task for found in every if found.metric == "uniformity"}  # in the next section
    firsts = {found.task: found for found in reversed(every) if found.task not in plotted}
    for found in reversed(firsts.values()):
        rows = found.by_language()
        if len(rows) < 2:
            continue
        for place in range(1, len(results)) if len(results) > 1 else (0,):
            bars = list(_bars(found, rows, place, seen))
            if bars:
                title = f"{found.task}, {found.name}" + (f": {names[place]} − {names[0]}" if place else "")
                parts.append(_panels(found, bars, title, numbers, changes=place > 0))
    return element("div", *_key(seen), *parts, class_="figures") if parts else Html("")


def _key(seen: Collection[str]) -> list[Html]:
    """What the two kinds of bars mean."""
    if not seen:
        return []
    codes = ", ".join(code for code in seen if code.partition("_")[0] != "eng")
    known = [element("span", class_="key"), text(f"seen in training: {codes}, and English")]
    return [element("p", *known, element("span", class_="key unseen"), text("unseen"), class_="wide quiet")]


def _bars(found: Table, rows: dict[str, list[Score | None]], place: int, seen: Collection[str]) -> Iterator[Bar]:
    pairs = {name: (a, b) for name, row in found.scores.items() if (a := row[0]) and (b := row[place])}
    same = alike(pairs) if place else set(pairs)
    for subset in rows:
        if subset in same:
            base, other = pairs[subset]
            told = is_seen(subset, seen)
            yield change(found, (base, other), seen=told) if place else bar(found, base, seen=told)


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
    kind = "average" if bars[0].label in found.part(averages=True) else "subset"
    parts = []
    for told, word in ((None, ""), (True, "seen "), (False, "unseen ")):
        values = [bar.value for bar in bars if bar.seen is told]
        if values:
            noun = kind if len(values) == 1 else f"{kind}s"
            mean = found.shown(float(np.mean(values)) / found.unit, sign=changes)
            parts.append(f"{len(values)} {word}{noun}, {'mean change' if changes else 'mean'} {mean}")
    if changes:
        good = sum(1 for bar in bars if (bar.value < 0 if found.lower else bar.value > 0))
        same = sum(1 for bar in bars if bar.value == 0)
        parts.append(f"{good} better, {len(bars) - good - same} worse, {same} the same")
    margin = any(bar.margin is not None for bar in bars)
    if kind == "average":
        sizes = {len(score.over) for bar in bars for score in found.scores[bar.label] if score}
        parts[0] += f", each of {'/'.join(map(str, sorted(sizes)))} subsets (xx: every other language)"
    return "; ".join(parts) + (". Thin lines: 95 % intervals over the items." if margin else ".")


def _limits(bars: Sequence[Bar]) -> tuple[float, float]:
    low = min(0.0, *(bar.value - (bar.margin or 0) for bar in bars))
    high = max(0.0, *(bar.value + (bar.margin or 0) for bar in bars))
    room = 0.17 * (high - low) or 1.0  # for the numbers
    return (low - room if low < 0 else 0.0, high + room if high > 0 or high == low else 0.0)
