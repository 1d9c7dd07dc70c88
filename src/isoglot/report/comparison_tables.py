"""A comparison for people and programs: tables for a terminal and for Markdown, and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from isoglot.data.files import atomic_write
from isoglot.evaluation.base import Unit
from isoglot.report.comparison import Comparison, Difference, Row, Table, Value
from isoglot.report.draws import Interval
from isoglot.report.metrics import shown
from isoglot.report.tables import Grid, to_markdown

_MARKS = {True: " ▲", False: " ▼", None: ""}


def grid(table: Table, systems: Sequence[str]) -> Grid:
    """One task and metric: a row for each subset, then averages; of each system its value, difference and p-value.

    A system alone has its value and the interval of that.
    """
    header = ["subset", "n", systems[0], *(["95 % interval"] if len(systems) == 1 else [])]
    for name in systems[1:]:
        header += [name, "difference", "p"]
    rows = [_cells(row, table.unit) for row in table.rows]
    first = next((place for place, row in enumerate(table.rows) if row.average), None)
    arrow = " (lower is better)" if table.lower_is_better else ""
    return Grid(f"{table.task} {table.metric}{arrow}", tuple(header), tuple(rows), first_average=first)


def tallies(table: Table, systems: Sequence[str]) -> list[str]:
    """A line for each system but the base: over how many subsets it is better, worse and equal."""
    lines = []
    for place, name in enumerate(systems[1:]):
        counts = table.tally(place)
        better, worse = (f"{way} in {counts[way]} ({counts[f'{way}, significantly']} significantly)" for way in _WAYS)
        lines.append(f"{name} against {systems[0]}: {better}, {worse}, equal in {counts['equal']}")
    return lines


def method(comparison: Comparison) -> str:
    """What the numbers are, in a few sentences."""
    one = len(comparison.systems) == 1
    several = any(count > 1 for count in comparison.seeds)
    seeds = (
        " Of a system with several seeds, values are means over them and ± is their sample standard deviation; the "
        "intervals are over items only and say nothing about another training."
        if several
        else ""
    )
    tests = sorted({table.permutations for table in comparison.tables})
    drawn = (
        f"Brackets hold 95 % percentile intervals of a {'' if one else 'paired '}bootstrap over items "
        f"({comparison.resamples} resamples, seed {comparison.seed}); averages are resampled within each of their "
        "subsets, those of the same sentences all at once."
    )
    if one:
        return drawn + seeds
    return (
        f"Differences are from {comparison.systems[0]}. {drawn} p is of a two-sided paired permutation test "
        f"({' or '.join(map(str, tests))} permutations), corrected over the subsets of a task by Holm's method; "
        f"averages are not corrected. ▲ is better and ▼ worse at p ≤ 0.05.{seeds}"
    )


def markdown(comparison: Comparison) -> str:
    """The whole comparison as a page."""
    parts = [f"# {' and '.join(comparison.systems)}", method(comparison)]
    for table in comparison.tables:
        shown_table = grid(table, comparison.systems)
        lines = "\n".join(f"- {line}" for line in tallies(table, comparison.systems))
        parts += [f"## {shown_table.title}", to_markdown(shown_table).rstrip("\n"), lines]
    if comparison.left_out:
        parts += ["## Left out", "\n".join(f"- {line}" for line in comparison.left_out)]
    return "\n\n".join(filter(None, parts)) + "\n"


def write_comparison(folder: Path, comparison: Comparison) -> None:
    """Write `compare.md` and `compare.json` into a folder; the same comparison gives the same bytes."""
    with atomic_write(folder / "compare.md") as file:
        file.write(markdown(comparison))
    with atomic_write(folder / "compare.json") as file:
        file.write(json.dumps(_record(comparison), ensure_ascii=False, allow_nan=False, indent=1) + "\n")


_WAYS = ("better", "worse")


def _cells(row: Row, unit: Unit) -> tuple[str, ...]:
    cells = [row.subset, str(row.n), _value(row.values[0], unit)]
    if not row.differences:
        cells.append(_interval(row.values[0].interval, unit, sign=False).strip() or "–")
    for value, difference in zip(row.values[1:], row.differences, strict=True):
        mark = _MARKS[difference.better] if difference.significant else ""
        change = shown(difference.value, unit, sign=True) + _interval(difference.interval, unit)
        cells += [_value(value, unit), change + mark, _p(difference)]
    return tuple(cells)


def _value(value: Value, unit: Unit) -> str:
    deviation = "" if value.deviation is None else f" ± {shown(value.deviation, unit)}"
    return shown(value.mean, unit) + deviation


def _interval(interval: Interval | None, unit: Unit, *, sign: bool = True) -> str:
    return "" if interval is None else f" [{', '.join(shown(end, unit, sign=sign) for end in interval)}]"


def _p(difference: Difference) -> str:
    if difference.corrected is None:
        return "–"
    return "<0.001" if difference.corrected < 0.001 else f"{difference.corrected:.3f}"


def _record(comparison: Comparison) -> dict[str, Any]:
    record = asdict(comparison)
    for table, found in zip(record["tables"], comparison.tables, strict=True):
        table["tallies"] = {name: found.tally(place) for place, name in enumerate(comparison.systems[1:])}
        for row, entry in zip(table["rows"], found.rows, strict=True):
            for difference, full in zip(row["differences"], entry.differences, strict=True):
                difference["significant"] = full.significant
    return record
