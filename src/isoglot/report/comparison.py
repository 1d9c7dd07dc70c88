"""Systems compared score by score: differences from the first, how sure they are, wins and losses over languages.

What is special here: resamples are drawn once and used for everything that an item is part of. In an average each
subset is resampled within itself (stratified), but subsets of the same sentences in other languages all at once. Of
hundreds of subsets, such as the directions of `xsim`, only the averages are compared. A system that was trained with
several seeds is the mean over them, in every resample too; their standard deviation is given beside it, because
resampled items tell nothing about how another training would have ended. Whatever cannot be compared is left out with a
line that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Score, Unit
from isoglot.evaluation.resampling import holm
from isoglot.report.comparable import Runs, key, problem, subsets, wanted, whole_tasks_lacking
from isoglot.report.draws import Draws, Interval, draw
from isoglot.report.metrics import MANY, is_average
from isoglot.report.scores import Results

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Value:
    """A system's score: the mean over its seeds, their sample standard deviation, and its 95 % interval over items.

    The deviation is None for a single seed, the interval where the items are not there.
    """

    mean: float
    deviation: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A system less the base. `p` is of a two-sided paired permutation test; `corrected`, by Holm over all subsets.

    An average is one hypothesis of its own and is not corrected: `corrected` is then `p`. `better` says whether the
    change is one for the better; None for no change at all.
    """

    value: float
    interval: Interval | None
    p: float | None
    corrected: float | None
    better: bool | None

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most 0.05."""
        return self.corrected is not None and self.corrected <= LEVEL


@dataclass(frozen=True, slots=True)
class Row:
    """A subset of `n` items, or an average `over` subsets: a value of each system, a difference of all but the base.

    Averages that take the place of too many subsets (see `MANY`) count as subsets: `average` is then False.
    """

    subset: str
    n: int
    over: tuple[str, ...]
    average: bool
    values: tuple[Value, ...]
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One task and metric. `rows` are subsets, then averages; `permutations` is the number of each test."""

    task: str
    metric: str
    unit: Unit
    lower_is_better: bool
    permutations: int
    rows: tuple[Row, ...]

    def tally(self, place: int) -> dict[str, int]:
        """Over how many subsets the system at `place` (0 is the first after the base) is better, worse or equal."""
        found = [row.differences[place] for row in self.rows if not row.average]
        ways = {"better": True, "worse": False, "equal": None}
        counts = {name: sum(entry.better is way for entry in found) for name, way in ways.items()}
        sure = {f"{name}, significantly": ways[name] for name in ("better", "worse")}
        return counts | {name: sum(e.better is way and e.significant for e in found) for name, way in sure.items()}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Tables of several systems, the first being the base; `left_out` says line by line what could not be compared."""

    systems: tuple[str, ...]
    seeds: tuple[int, ...]
    resamples: int
    seed: int
    tables: tuple[Table, ...]
    left_out: tuple[str, ...]


def compare(
    systems: Mapping[str, Sequence[Results]],
    *,
    tasks: Sequence[str] = (),
    metrics: Sequence[str] = (),
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """Compare systems, each given by the results of one or more seeds; the first is the base.

    One alone has its intervals. Without `metrics`, the main one of each task. Raises `EvaluationError` for no system,
    an unknown task or metric, and when nothing can be compared.
    """
    if not systems:
        raise EvaluationError("nothing was given to compare; name at least one result")
    scores: Runs = [[{key(score): score for score in run.scores} for run in runs] for runs in systems.values()]
    chosen = wanted(scores, tasks, metrics)
    lacking = whole_tasks_lacking(dict.fromkeys(task for task, _ in chosen), scores, list(systems))
    left_out = [f"{task}: {reason}" for task, reason in lacking.items()]
    tables = [
        _table(task, metric, scores, list(systems), left_out, resamples=resamples, seed=seed)
        for task, metric in chosen
        if task not in lacking
    ]
    full = tuple(table for table in tables if table.rows)
    if not full:
        raise EvaluationError(f"{' and '.join(systems)} have no score in common that can be compared{_why(left_out)}")
    return Comparison(tuple(systems), tuple(map(len, systems.values())), resamples, seed, full, tuple(left_out))


def _why(left_out: Sequence[str]) -> str:
    return f": {left_out[0]}" + (f" (and {len(left_out) - 1} more)" if left_out[1:] else "") if left_out else ""


def _table(
    task: str, metric: str, scores: Runs, names: list[str], left_out: list[str], *, resamples: int, seed: int
) -> Table:
    """Rows of what all systems have, of the same data; the rest is told in `left_out`."""
    groups: dict[str, list[list[Score]]] = {}
    for subset in subsets(task, metric, scores):
        found = [[run[name] for run in runs if (name := (task, metric, subset)) in run] for runs in scores]
        if reason := problem(found, [len(runs) for runs in scores], names, groups):
            left_out.append(f"{task} {subset} {metric}: {reason}")
        else:
            groups[subset] = found
    chosen, family = _chosen(groups)
    if len(chosen) < len(groups):
        left_out.append(f"{task} {metric}: only averages of its {len(groups) - len(chosen)} subsets are compared")
    # Of m permutations the smallest p-value is 1 / (m + 1); corrected for the family it must still reach the level.
    permutations = max(resamples, round(5 * len(family) / LEVEL))
    drawn = draw(groups, chosen, resamples=resamples, permutations=permutations, seed=seed)
    kind = next((group[0][0] for group in groups.values()), Score(task, "", metric, 0.0, 0))
    lower = kind.lower_is_better
    rows = [_row(groups[name], drawn.get(name), average=name not in family, lower=lower) for name in chosen]
    return Table(task, metric, kind.unit, lower, permutations, _corrected(rows))


def _chosen(groups: Mapping[str, list[list[Score]]]) -> tuple[list[str], set[str]]:
    """The subsets and averages that have a row, and which of them are the family that is corrected for its number.

    Of too many subsets only the averages have rows, and those that are over subsets, if several, are the family.
    """
    plain = {name for name, group in groups.items() if not is_average(group[0][0])}
    averages = [name for name in groups if name not in plain]
    if len(plain) <= MANY or not averages:
        return list(groups), plain
    lowest = {name for name in averages if plain.issuperset(groups[name][0][0].over)}
    return averages, lowest if len(lowest) > 1 else set()


def _row(group: list[list[Score]], draws: Draws | None, *, average: bool, lower: bool) -> Row:
    first = group[0][0]
    values, differences = [], []
    for place, runs in enumerate(group):
        each = [score.value for score in runs]
        deviation = stdev(each) if len(each) > 1 else None
        values.append(Value(fmean(each), deviation, draws.interval(place) if draws else None))
    for place in range(1, len(group)):
        change = values[place].mean - values[0].mean
        p = draws.p_value(place, change) if draws else None
        better = None if abs(change) < 1e-12 else (change < 0) == lower
        differences.append(Difference(change, draws.change(place) if draws else None, p, p, better))
    return Row(first.subset, first.n, first.over, average, tuple(values), tuple(differences))


def _corrected(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with p-values of subsets corrected, each system's comparison with the base being a family."""
    result = list(rows)
    for place in range(len(rows[0].differences) if rows else 0):
        family = [at for at, row in enumerate(result) if not row.average and row.differences[place].p is not None]
        p_values = [p for at in family if (p := result[at].differences[place].p) is not None]
        for at, corrected in zip(family, holm(p_values), strict=True):
            changed = list(result[at].differences)
            changed[place] = replace(changed[place], corrected=corrected)
            result[at] = replace(result[at], differences=tuple(changed))
    return tuple(result)
