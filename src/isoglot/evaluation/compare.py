"""Systems compared score by score: differences from the first, their intervals and p-values, wins and losses.

Each bootstrap sample is used for everything that a test item is part of. In an average each subset is resampled within
itself (stratified), but subsets of the same sentences in several languages are resampled together, sentence by
sentence: resampled separately, the errors of forty languages would cancel in their average, although they are
correlated: a hard sentence is hard in most languages. Of hundreds of subsets, such as the directions of `xsim`, only
the averages are compared.

A system trained with several seeds is the mean over them, in every bootstrap sample too. Resampling items does not
cover the variance between training runs, so the standard deviation over the seeds is shown too, and a t-test over the
seeds in addition to the test over the items. Scores that cannot be compared are skipped and reported.

Columns of a suite, each a mean over scores of one or several tasks, are compared as rows of one table.
"""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from isoglot.core.arguments import NonNegativeInt, Range, check_arguments
from isoglot.core.errors import EvaluationError, naming_extras
from isoglot.core.score import Score, Unit
from isoglot.data.files import atomic_write
from isoglot.evaluation.resampling import bootstrap, holm, interval, p_value, permutation
from isoglot.evaluation.scores import Scores, data_frame, read_results
from isoglot.evaluation.statistics import Doubles
from isoglot.evaluation.suites import SUITES, Column, by_key
from isoglot.report.comparable import Key, Runs, list_keys, list_parts, problem, select
from isoglot.report.html import Tables, tables_html
from isoglot.report.tables import MANY, NOTHING, Grid, latex_document, save_tables, spell, spell_n, to_document, to_text

if TYPE_CHECKING:
    import pandas

LEVEL = 0.05
# What tables show instead of a p-value, and what it means.
REASONS = {
    "no items": "the metric has no outcomes of single items, or their file items.npz is missing",
    "one seed": "neither system has several seeds",
    "no spread": "the difference is the same for all seeds",
}
_WAYS = {"better": True, "worse": False}

Interval = tuple[float, float]
System = str | Path | Scores | Iterable[Score]
Group = list[list[Score]]  # of one key, the scores of the seeds of each system
Draws = tuple[int, int]  # bootstrap samples, permutations


@dataclass(frozen=True, slots=True)
class Value:
    """A system's score: the mean over its seeds, their sample standard deviation, and its 95 % interval over items.

    The deviation is None for a single seed, the interval for a score without items.
    """

    mean: float
    deviation: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of a system from the first one. `p` is of a two-sided paired permutation test; `corrected`, by
    Holm over all subsets.

    An average is one hypothesis of its own and is not corrected: `corrected` is then `p`. `better` is whether the
    change is an improvement, None for no change. `p_seeds` is of a two-sided t-test over the seeds with `degrees` of
    freedom, see `seeds_test`. In a sweep `corrected` is by Holm over the arms, of the larger of `p` and `p_seeds`.
    """

    value: float
    interval: Interval | None
    p: float | None
    corrected: float | None
    better: bool | None
    p_seeds: float | None = None
    degrees: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most 0.05."""
        return self.corrected is not None and self.corrected <= LEVEL

    @property
    def mark(self) -> str:
        """How tables mark the direction of a significant difference, after a blank."""
        return {True: " ▲", False: " ▼", None: ""}[self.better]

    def words(self, unit: Unit) -> str:
        """The value and its interval as tables show them."""
        return spell(self.value, unit, sign=True) + _interval(self.interval, unit, sign=True)


@dataclass(frozen=True, slots=True)
class Row:
    """A subset of `n` test items, or an average `over` subsets: a value per system, a difference for all but the first.

    Averages that replace too many subsets (see `MANY`) count as subsets: `average` is then False. A column of
    a suite is a row with its label as `subset`, and the scores that it is over. `untested` is the reason, one of
    `REASONS`, why there are no intervals and no p-values over items; empty if there are.
    """

    subset: str
    n: int
    over: tuple[str, ...]
    average: bool
    values: tuple[Value, ...]
    differences: tuple[Difference, ...]
    unit: Unit = "fraction"
    lower_is_better: bool = False
    untested: str = ""

    def p_over_seeds(self, place: int) -> str:
        """The p-value over seeds of the difference at `place` as tables show it, or why there is none."""
        ends = (self.values[0].deviation, self.values[place + 1].deviation)
        return p_shown(self.differences[place].p_seeds, "one seed" if ends == (None, None) else "no spread")


@dataclass(frozen=True, slots=True)
class Table:
    """One task and metric. `rows` are subsets, then averages; `permutations` is the number used in each test.

    Or the columns of a suite: `task` is then the name of the suite, `metric` is empty, and `rows` are columns.
    """

    task: str
    metric: str
    permutations: int
    rows: tuple[Row, ...]

    @property
    def of_columns(self) -> bool:
        """Whether the rows are columns of a suite, means over scores of several metrics."""
        return not self.metric

    def tally(self, place: int) -> dict[str, int]:
        """The numbers of subsets in which the system at `place` (0 is the second system) is better, worse or equal."""
        differences = [row.differences[place] for row in self.rows if not row.average]
        counts = {name: sum(one.better is way for one in differences) for name, way in _WAYS.items()}
        counts["equal"] = sum(one.better is None for one in differences)
        for name, way in _WAYS.items():
            counts[f"{name}, significantly"] = sum(one.better is way and one.significant for one in differences)
        return counts

    def grid(self, systems: Sequence[str]) -> Grid:
        """The table for people: of each system its value, its difference from the first and the p-value of that.

        One system alone has its values and their intervals.
        """
        header = ["subset", "n", systems[0], *(["95 % interval"] if len(systems) == 1 else [])]
        seeds = any(difference.p_seeds is not None for row in self.rows for difference in row.differences)
        for name in systems[1:]:
            header += [name, "difference", "p", *(["p (seeds)"] if seeds else [])]
        lower = {row.lower_is_better for row in self.rows}
        rows = []
        for row in self.rows:
            name = row.subset + " ↓" * (row.lower_is_better and len(lower) > 1)
            cells = [name, spell_n(row.n, row.over), spread(row.values[0], row.unit)]
            if not row.differences:
                cells.append(_interval(row.values[0].interval, row.unit).strip() or row.untested)
            for place, (value, difference) in enumerate(zip(row.values[1:], row.differences, strict=True)):
                change = difference.words(row.unit) + difference.mark * difference.significant
                cells += [spread(value, row.unit), change, p_shown(difference.corrected, row.untested)]
                if seeds:
                    cells.append(row.p_over_seeds(place))
            rows.append(tuple(cells))
        first = next((place for place, row in enumerate(self.rows) if row.average and not self.of_columns), None)
        direction = " (lower is better)" if lower == {True} else ""
        title = f"{self.task} {self.metric}".rstrip()
        notes = []
        for place, name in enumerate(() if self.of_columns else systems[1:]):
            counts = self.tally(place)
            ways = (f"{way} in {counts[way]} ({counts[f'{way}, significantly']} significantly)" for way in _WAYS)
            notes.append(f"{name} against {systems[0]}: {', '.join(ways)}, equal in {counts['equal']}")
        return Grid(f"{title}{direction}", tuple(header), tuple(rows), first_average=first, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class Comparison:
    """Tables of several systems, the first being the base. Printing it shows all of them.

    `seeds` is the number of results of each system; `left_out` are lines on what could not be compared and why;
    `runs` are the results of each system, one for each of its seeds.
    """

    systems: tuple[str, ...]
    seeds: tuple[int, ...]
    resamples: int
    seed: int
    tables: tuple[Table, ...]
    left_out: tuple[str, ...]
    runs: tuple[tuple[Scores, ...], ...] = field(default=(), repr=False, compare=False)

    def grids(self) -> list[Grid]:
        """A table for each task and metric, its notes being the counts of wins and losses."""
        return [table.grid(self.systems) for table in self.tables]

    @property
    def method(self) -> str:
        """How the numbers were computed, in a few sentences."""
        one = len(self.systems) == 1
        counts = sorted({table.permutations for table in self.tables})
        tests = " to ".join(f"{count:,}" for count in dict.fromkeys((counts[0], counts[-1])))
        parts = [
            f"Brackets: 95 % percentile intervals of a {'' if one else 'paired '}bootstrap over test items "
            f"({self.resamples:,} resamples, seed {self.seed}); averages are resampled within each subset, subsets of "
            "the same sentences together."
        ]
        if not one:
            parts.insert(0, f"Differences are from {self.systems[0]}.")
            parts.append(
                f"p: two-sided paired permutation test ({tests} permutations), corrected over the subsets of a task "
                "by Holm's method; averages are not corrected. ▲ better, ▼ worse at p ≤ 0.05."
            )
        if max(self.seeds) > 1:
            parts.append(
                "Values of a system with several seeds are means over them and ± is their sample standard deviation; "
                "intervals and p are over test items only and do not cover another training. p (seeds): two-sided "
                "t-test over the seeds, paired in their order where both systems have as many, else Welch's."
            )
        cells = {cell for grid in self.grids() for row in grid.rows for cell in row}
        parts += [f"{name}: {meaning}." for name, meaning in REASONS.items() if name in cells]
        return " ".join(parts)

    def __str__(self) -> str:
        """All tables as text, then the method and what was left out."""
        return to_text(self.grids(), self.method, *(f"skipped: {line}" for line in self.left_out))

    def _repr_html_(self) -> str:
        """All tables for a notebook."""
        return tables_html(Tables(self.grids(), self.method, self.left_out))

    def to_markdown(self) -> str:
        """All tables as a Markdown document."""
        return to_document(self.grids(), title=" and ".join(self.systems), method=self.method, skipped=self.left_out)

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with one row for each task, metric, subset and system; scores are not scaled.

        Columns of the difference are empty for the first system. Raises `MissingExtraError` without pandas.
        """
        columns = "task metric subset n average system value deviation low high difference difference_low"
        columns += " difference_high p p_corrected p_seeds better significant"
        none = Difference(np.nan, None, None, None, None)
        records = []
        for table in self.tables:
            for row in table.rows:
                for name, value, change in zip(self.systems, row.values, (none, *row.differences), strict=True):
                    first = table.task, table.metric, row.subset, row.n, row.average, name, value.mean, value.deviation
                    ends = *(value.interval or (None, None)), change.value, *(change.interval or (None, None))
                    tests = change.p, change.corrected, change.p_seeds, change.better
                    records.append((*first, *ends, *tests, None if change is none else change.significant))
        return data_frame(records, columns.split())

    def to_dict(self) -> dict[str, Any]:
        """The content of `compare.json`."""
        names = "systems", "seeds", "resamples", "seed", "left_out"
        record: dict[str, Any] = {name: getattr(self, name) for name in names}
        record["tables"] = [asdict(table) for table in self.tables]
        for entry, table in zip(record["tables"], self.tables, strict=True):
            entry["tallies"] = {name: table.tally(place) for place, name in enumerate(self.systems[1:])}
            for line, row in zip(entry["rows"], table.rows, strict=True):
                for difference, computed in zip(line["differences"], row.differences, strict=True):
                    difference["significant"] = computed.significant
        return record

    def to_latex(self) -> str:
        """All tables in LaTeX, for the packages booktabs and amssymb."""
        return latex_document(self.grids(), self.method)

    @check_arguments()
    def save(self, folder: str | Path) -> None:
        """Write `compare.md`, `compare.tex` and, with every digit, `compare.json`.

        The same comparison gives the same bytes.
        """
        save_tables(Path(folder) / "compare", self.grids(), markdown=self.to_markdown(), comment=self.method)
        with atomic_write(Path(folder) / "compare.json") as file:
            file.write(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")

    @check_arguments()
    def page(self, path: str | Path, *, seen: Sequence[str] = (), title: str | None = None) -> None:
        """Write the HTML page of the systems (of several seeds, the first) with these tables on it; see `page`."""
        from isoglot.report.page import make_title, write_page

        title = title or make_title(self.systems, [*dict.fromkeys(table.task for table in self.tables)])
        runs = [Scores(run, name, run.settings) for name, (run, *_) in zip(self.systems, self.runs, strict=True)]
        more = " The other sections show the first seed of each system." if max(self.seeds) > 1 else ""
        tables = Tables(self.grids(), self.method + more, self.left_out)
        write_page(path, runs, seen=seen, comparison=tables, title=title)


@check_arguments()
@naming_extras()
def compare(
    *systems: str | Path | Scores | Iterable[Score],
    names: Sequence[str | None] | None = None,
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    columns: Sequence[Column] = (),
    resamples: Annotated[int, Range(1, 10**7)] = 2000,  # they are kept in memory
    seed: NonNegativeInt = 0,
) -> Comparison:
    """Compare systems on the same test items; the first is the base. One alone has its intervals.

    systems    scores as `isoglot.evaluate` returns them, `Scores`, or folders of results or their `results.json`.
               `FOLDER+FOLDER` joins results of different tasks, such as those of checkpoints chosen for each task.
               The folders of results in a folder without any of its own are seeds of one system
    names      a name for each, None for the default: the folder, the model, or `system 1` and so on for bare scores.
               Equal names mean seeds of one system
    tasks      tasks to compare, and suites to compare by column; default: all tasks of every system
    metrics    metrics to compare; default: the main one of each task
    columns    compare these means over scores instead of tasks
    resamples  number of bootstrap samples; minimum number of permutations
    seed       random seed of the bootstrap. The same seed gives the same numbers

    Raises `EvaluationError` for no system, an unknown task or metric, two systems with the same default name, results
    that cannot be read, and when nothing can be compared; `ValueError` unless there is a name for each; `TypeError` for
    a system of another type.
    """
    runs = _name_systems(systems, names if names is None else [*names])
    labels = list(runs)
    work = _Work([[by_key(run) for run in seeds] for seeds in runs.values()], labels)
    joint = {name: SUITES[name].columns for name in tasks if name in SUITES} | ({"columns": columns} if columns else {})
    alone = [task for task in tasks if task not in SUITES]
    if metrics and joint and not alone:
        raise EvaluationError("metrics choose among those of tasks, and suites have their own; leave metrics out")
    measures = select(work.scores, alone, metrics) if alone or not joint else []
    all_tables = [work.compare_columns(name, entries, resamples, seed) for name, entries in joint.items()]
    all_tables += [work.compare_task(task, metric, resamples, seed) for task, metric in measures]
    tables, left_out = tuple(table for table in all_tables if table.rows), work.left_out
    if not tables:
        why = f": {left_out[0]}" + (f" (and {len(left_out) - 1} more)" if left_out[1:] else "") if left_out else ""
        raise EvaluationError(f"{' and '.join(labels)} have no score in common that can be compared{why}")
    seeds, every_run = tuple(map(len, runs.values())), tuple(map(tuple, runs.values()))
    return Comparison(tuple(labels), seeds, resamples, seed, tables, tuple(left_out), every_run)


def _name_systems(systems: Sequence[System], names: Sequence[str | None] | None) -> dict[str, list[Scores]]:
    """The results of each system by name, in the order of the arguments; of an equal name, all of its seeds."""
    if not systems:
        raise EvaluationError("nothing to compare; pass at least one result")
    given_names = names if names is not None else [None] * len(systems)
    if len(given_names) != len(systems):
        raise ValueError(f"{len(given_names)} names for {len(systems)} systems; pass one for each")
    defaults = [_default_name(place, system) for place, system in enumerate(systems, 1)]
    unnamed = Counter(label for name, label in zip(given_names, defaults, strict=True) if not name)
    # Two folders with the same name may be different systems, so they are named by their paths.
    labels = [
        name or (str(system) if isinstance(system, str | Path) and unnamed[label] > 1 else label)
        for name, label, system in zip(given_names, defaults, systems, strict=True)
    ]
    runs: dict[str, list[Scores]] = {}
    for name, label, system in zip(given_names, labels, systems, strict=True):
        if not name and labels.count(label) > 1:
            hint = f"; write NAME={system}" if isinstance(system, str | Path) else ""
            raise EvaluationError(f"{label!r} is the name of two systems; pass a name for each{hint}")
        seeds = list_seeds(system) if isinstance(system, str | Path) else [system]
        runs.setdefault(label, []).extend(_results(label, one) for one in seeds)
    return runs


def _default_name(number: int, system: System) -> str:
    if isinstance(system, str | Path):
        paths = [Path(os.path.realpath(part)).as_posix().removesuffix("/results.json") for part in split_parts(system)]
        return "+".join(path.rpartition("/")[2] for path in paths)
    return system.model if isinstance(system, Scores) else f"system {number}"


def _results(label: str, system: System) -> Scores:
    if isinstance(system, Scores):
        return system
    if isinstance(system, str | Path):
        parts = [read_results(part) for part in split_parts(system)]
        tasks = Counter(task for part in parts for task in dict.fromkeys(score.task for score in part))
        if twice := [task for task, count in tasks.items() if count > 1]:
            raise EvaluationError(f"{label}: {twice[0]} is in two of the joined results; join those of different tasks")
        joined = Scores((score for part in parts for score in part), label, parts[0].settings)
        return parts[0] if len(parts) == 1 else joined
    scores = tuple(system) if isinstance(system, Iterable) else (system,)
    if wrong := [entry for entry in scores if not isinstance(entry, Score)]:
        expected = "a result of isoglot.evaluate or a folder of results"
        raise TypeError(f"{label}: expected {expected}, not {type(wrong[0]).__name__}")
    return Scores(scores, label)


def list_seeds(system: str | Path) -> list[str | Path]:
    """The results of one system: this path or, if it only has folders of results, as an arm of a sweep has, those.

    They are in the order of their names, `seed-2` before `seed-10`.
    """
    if (Path(system) / "results.json").exists():
        return [system]
    folders = [file.parent for file in Path(system).glob("*/results.json")]
    return [*sorted(folders, key=lambda folder: (len(folder.name), folder.name))] or [system]


def split_parts(system: str | Path) -> list[Path]:
    """The folders or files of `FOLDER+FOLDER`; of an existing path, itself."""
    return [Path(part) for part in ([system] if Path(system).exists() else str(system).split("+"))]


@dataclass(frozen=True, slots=True)
class _Work:
    """The scores of the systems and their names; `left_out` are the lines on scores that cannot be compared."""

    scores: Runs
    names: list[str]
    left_out: list[str] = field(default_factory=list)

    def groups(self, task: str, metric: str) -> tuple[dict[Key, Group], dict[Key, str]]:
        """The scores that all systems have, of the same data, and the reasons against the others."""
        groups: dict[Key, Group] = {}
        reasons: dict[Key, str] = {}
        for name in list_keys(task, metric, self.scores):
            group = [[run[name] for run in runs if name in run] for runs in self.scores]
            if reason := problem(group, [len(runs) for runs in self.scores], self.names, groups.keys()):
                reasons[name] = reason
            else:
                groups[name] = group
        return groups, reasons

    def compare_columns(self, name: str, columns: Sequence[Column], resamples: int, seed: int) -> Table:
        """A row for each column of which all systems have all scores, of the same data."""
        keys = dict.fromkeys(key for column in columns for key in column.keys)
        groups: dict[Key, Group] = {}
        reasons: dict[Key, str] = {}
        for task, metric in dict.fromkeys((task, metric) for task, _, metric in keys):
            groups_of_task, reasons_of_task = self.groups(task, metric)
            groups |= groups_of_task
            reasons |= reasons_of_task
        present = [name for name in keys if name in groups]
        # Metrics of one task are outcomes of the same items.
        counts = (Counter(task for task, _ in {(task, metric) for task, _, metric in one.keys}) for one in columns)
        several = {task for count in counts for task in count if count[task] > 1}
        samples = resample(groups, present, (resamples, resamples), seed=seed, joint_tasks=several)
        rows = []
        for column in columns:
            first_scores = [groups[key][0][0] for key in column.keys if key in groups]
            kinds = {(score.unit == "plain", score.lower_is_better) for score in first_scores}
            if (missing := column.lacking(groups)) or len(kinds) > 1:
                reason = "its scores differ in scale or in whether lower is better"
                if missing:
                    reason = f"{' '.join(missing[0])}: {reasons.get(missing[0], 'no system has it')}"
                self.left_out.append(f"{name} {column.label}: {reason}")
                continue
            # `Column.mean` is linear, so it works on samples and on arrays of the seeds' values as on single values.
            values = [
                column.mean({key: np.array([score.value for score in groups[key][place]]) for key in column.keys})
                for place in range(len(self.names))
            ]
            joint = column.mean(samples) if samples.keys() >= {*column.keys} else None
            score, count = first_scores[0], len(first_scores)
            if count > 1 or score.over:
                score = replace(score, n=count if count > 1 else score.n, over=tuple(map(" ".join, column.keys)))
            rows.append(_row(column.label, score, [seeds.tolist() for seeds in values], joint, average=True))
        return Table(name, "", resamples, tuple(rows))

    def compare_task(self, task: str, metric: str, resamples: int, seed: int) -> Table:
        """Rows of the scores that all systems have on the same data."""
        groups, reasons = self.groups(task, metric)
        lines = [f"{' '.join(name)}: {reason}" for name, reason in reasons.items()]
        if len(lines) > 1 and not groups and len(set(reasons.values())) == 1:  # such as a system that lacks the task
            lines = [f"{task} {metric}: {next(iter(reasons.values()))}"]
        self.left_out.extend(lines)
        shown, family = _choose(groups)
        if len(shown) < len(groups):
            count = len(groups) - len(shown)
            self.left_out.append(f"{task} {metric}: only averages of its {count} subsets are compared")
        # Of m permutations the smallest p-value is 1 / (m + 1); corrected for the family it must still reach the level.
        permutations = max(resamples, round(5 * len(family) / LEVEL))
        samples = resample(groups, shown, (resamples, permutations), seed=seed)
        rows = []
        for name in shown:
            values = [[score.value for score in runs] for runs in groups[name]]
            rows.append(_row(name[1], groups[name][0][0], values, samples.get(name), average=name not in family))
        differences = zip(*(row.differences for row in rows if not row.average), strict=True)
        by_system = [iter(apply_holm(changes, [change.p for change in changes])) for changes in differences]
        rows = [row if row.average else replace(row, differences=tuple(map(next, by_system))) for row in rows]
        return Table(task, metric, permutations, tuple(rows))


def _row(subset: str, score: Score, seeds: Sequence[Sequence[float]], samples: Samples | None, *, average: bool) -> Row:
    """A row whose p-values are not corrected: the values of each system's `seeds`; `score` describes them."""
    values = tuple(
        Value(fmean(runs), stdev(runs) if len(runs) > 1 else None, interval(samples.values[at]) if samples else None)
        for at, runs in enumerate(seeds)
    )
    differences = []
    for at, value in enumerate(values[1:], 1):
        change, seeds_p, bounds, p = value.mean - values[0].mean, seeds_test(seeds[0], seeds[at]), None, None
        if samples:
            bounds = interval(samples.values[at] - samples.values[0])
            p = p_value(change, samples.null[at - 1])
        # Means of the same scores may differ by rounding.
        better = None if abs(change) < 1e-12 else (change < 0) == score.lower_is_better
        differences.append(Difference(change, bounds, p, p, better, *seeds_p))
    return Row(
        subset, score.n, score.over, average, values, tuple(differences), score.unit, score.lower_is_better,
        untested="" if samples else "no items",
    )  # fmt: skip


def apply_holm(changes: Sequence[Difference], p_values: Sequence[float | None]) -> tuple[Difference, ...]:
    """The differences, corrected by Holm for the number of these p-values of theirs."""
    return tuple(replace(change, corrected=p) for change, p in zip(changes, holm(p_values), strict=True))


def _choose(groups: Mapping[Key, Group]) -> tuple[list[Key], set[Key]]:
    """The subsets and averages that have a row, and those that form the family of hypotheses for the correction.

    Of too many subsets only the averages have rows, and those that are over subsets, if several, are the family.
    """
    plain = {name for name, group in groups.items() if not group[0][0].over}
    averages = [name for name in groups if name not in plain]
    if len(plain) <= MANY or not averages:
        return list(groups), plain
    lowest = {name for name in averages if plain.issuperset(list_parts(groups[name][0][0]))}
    return averages, lowest if len(lowest) > 1 else set()


def seeds_test(base: Sequence[float], other: Sequence[float]) -> tuple[float | None, float | None]:
    """The p-value and the degrees of freedom of a two-sided t-test over seeds; None if neither system has several.

    Equal numbers of seeds are paired in their order: run i of both had the same seed, so the same batches. A system
    with one run, such as an untrained encoder, is a constant. Other numbers are compared by Welch's test. Equal
    differences in all seeds give 1 if they are zero; else the p-value is 0 only in floating point, and None is given.
    """
    from scipy import stats

    if max(len(base), len(other)) < 2:
        return None, None
    is_paired = len(base) == len(other) or min(len(base), len(other)) == 1
    changes = np.subtract(other, base) if is_paired else np.subtract.outer(other, base).ravel()
    if np.ptp(changes) < 1e-12:
        return (1.0, max(len(base), len(other)) - 1.0) if abs(float(changes[0])) < 1e-12 else (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # equal seeds of one system
        test = stats.ttest_1samp(changes, 0.0) if is_paired else stats.ttest_ind(base, other, equal_var=False)
    return float(test.pvalue), float(test.df)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one subset or average: `values` (systems, resamples) and `null` (systems - 1, permutations).

    `null` are differences from the first system when the two are swapped at random.
    """

    values: Doubles
    null: Doubles

    def __add__(self, other: Samples) -> Samples:
        return Samples(self.values + other.values, self.null + other.null)

    def __truediv__(self, count: int) -> Samples:
        return Samples(self.values / count, self.null / count)


def resample(
    groups: Mapping[Key, Group], names: Sequence[Key], draws: Draws, *, seed: int, joint_tasks: Collection[str] = ()
) -> dict[Key, Samples]:
    """Samples of each named score that has items, and of each average over such scores.

    In `groups` an average follows its subsets, and all systems with an item set of a subset have the same.
    Samples depend on the seed, on the task and on the name of the subset or the id of its item set; those of
    `joint_tasks` are the same for all metrics of a task.
    """
    complete: dict[Key, Group] = {}
    for name, group in groups.items():
        complete[name] = _join_items(group, complete) if group[0][0].over else group

    @cache
    def draw(name: Key) -> Samples | None:
        if _has_items(complete[name]):
            shared = name[0] in joint_tasks or bool(_item_set(complete[name]))
            return _sample_items(complete[name], draws, seed=seed, shared=shared)
        parts = [draw(part) for part in list_parts(groups[name][0][0])]
        sampled = [part for part in parts if part is not None]
        return sum(sampled[1:], sampled[0]) / len(sampled) if sampled and len(sampled) == len(parts) else None

    return {name: samples for name in names if (samples := draw(name)) is not None}


def _has_items(group: Group) -> bool:
    return bool(group[0][0].n) and all(score.items is not None for runs in group for score in runs)


def _join_items(group: Group, complete: Mapping[Key, Group]) -> Group:
    """An average with items, where it is over means of one item set: the mean outcome of each item."""
    parts = [complete[name] for name in list_parts(group[0][0])]
    statistics = {score.statistic for part in parts for runs in part for score in runs if score.items is not None}
    item_sets = {_item_set(part) for part in parts}
    if statistics != {"mean"} or len(item_sets) != 1 or "" in item_sets or not all(map(_has_items, parts)):
        return group
    (item_set,) = item_sets

    def fill(score: Score, place: int, at: int) -> Score:
        outcomes = [items for part in parts if (items := part[place][at].items) is not None]
        mean = np.asarray(np.mean(outcomes, axis=0, dtype=np.float64), np.float32)
        return replace(score, items=mean, item_set=item_set)

    return [[fill(score, place, at) for at, score in enumerate(runs)] for place, runs in enumerate(group)]


def _item_set(group: Group) -> str:
    """The id of a subset's item set, empty if no system has one: scores made in Python need none."""
    return max(score.item_set for runs in group for score in runs)


def _sample_items(group: Group, draws: Draws, *, seed: int, shared: bool) -> Samples:
    (resamples, permutations), first, item_set = draws, group[0][0], _item_set(group)
    stream = [seed, zlib.crc32(f"{first.task}\n{item_set or first.subset}".encode())]
    tables = [[score.items for score in runs if score.items is not None] for runs in group]
    all_tables, ends = [table for side in tables for table in side], np.cumsum([len(side) for side in tables])[:-1]
    options: dict[str, Any] = {"statistic": first.statistic, "seed": stream, "shared": shared}
    values = bootstrap(all_tables, resamples=resamples, **options)
    null = [permutation(tables[0], other, permutations=permutations, **options) for other in tables[1:]]
    means = np.stack([part.mean(axis=0) for part in np.split(values, ends)])
    return Samples(means, np.stack(null) if null else np.empty((0, permutations)))


def spread(value: Value, unit: Unit) -> str:
    """Mean ± standard deviation over seeds as tables show them; the mean alone of one seed."""
    deviation = "" if value.deviation is None else f" ± {spell(value.deviation, unit)}"
    return spell(value.mean, unit) + deviation


def p_shown(p: float | None, otherwise: str = NOTHING) -> str:
    """A p-value with three digits, rounded up where it is just above the level: unmarked, it is not 0.050."""
    return otherwise if p is None else "<0.001" if p < 0.001 else f"{0.051 if LEVEL < p < 0.051 else p:.3f}"


def _interval(bounds: Interval | None, unit: Unit, *, sign: bool = False) -> str:
    """An interval in brackets, after a space; nothing without one."""
    return "" if bounds is None else f" [{', '.join(spell(end, unit, sign=sign) for end in bounds)}]"
