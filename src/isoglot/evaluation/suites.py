"""Suites: the main table of each paper as columns over scores (`suites.toml`), so that one command gives any model's.

A column is the mean of the scores it lists, or of other columns. If one of them is missing, the column has no value and
names it: a mean over fewer languages would look like the paper's number without being comparable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from isoglot.core.errors import EvaluationError, IsoglotError
from isoglot.core.toml import tomllib
from isoglot.data.languages import is_language
from isoglot.evaluation import TASKS
from isoglot.evaluation.base import Score
from isoglot.evaluation.sets import get_command
from isoglot.report.comparable import Key as Key  # of `Column`
from isoglot.report.comparable import make_key
from isoglot.report.tables import NOTHING, Grid, list_names, spell


@dataclass(frozen=True, slots=True)
class Column:
    """One number of a table: the plain mean of scores, or of columns, each weighing once however many scores it has."""

    label: str
    of: tuple[Key | Column, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """All scores that it needs."""
        nested = (part.keys if isinstance(part, Column) else (part,) for part in self.of)
        return tuple(key for keys in nested for key in keys)

    @property
    def note(self) -> str:
        """What it is the mean of, in one line."""
        columns = [part.label for part in self.of if isinstance(part, Column)]
        return f"{self.label}: {'mean of the columns ' + ', '.join(columns) if columns else list_scores(self.keys)}"

    def mean(self, values: Mapping[Key, Any]) -> Any:
        """Its value, or, of arrays or samples, that of its values. Raises KeyError for a score that is not there."""
        parts = [part.mean(values) if isinstance(part, Column) else values[part] for part in self.of]
        return sum(parts[1:], parts[0]) / len(parts)

    def lacking(self, scores: Collection[Key]) -> list[Key]:
        """The scores that it needs and that are missing."""
        return [key for key in self.keys if key not in scores]

    def cell(self, scores: Mapping[Key, Score]) -> str:
        """Its value as tables show it."""
        if self.lacking(scores):
            return NOTHING
        return spell(self.mean({key: scores[key].value for key in self.keys}), scores[self.keys[0]].unit)


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite: description, columns, and the languages of tasks that are not run on all."""

    about: str
    columns: tuple[Column, ...]
    languages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that its columns need, in their order."""
        return tuple(dict.fromkeys(key[0] for column in self.columns for key in column.keys))


def by_key(scores: Iterable[Score]) -> dict[Key, Score]:
    """Scores by task, subset and metric. Raises `EvaluationError` for two of one key, as where lists were joined."""
    table: dict[Key, Score] = {}
    for score in scores:
        if table.setdefault(make_key(score), score) is not score:
            problem = f"the scores contain {score.task} {score.subset} {score.metric} twice"
            raise EvaluationError(f"{problem}; pass the scores of each model apart")
    return table


def list_scores(keys: Iterable[Key]) -> str:
    """Scores in one line for people, tasks and subsets of one metric together: `sts17 deu-eng fra-eng spearman`."""
    subsets: dict[tuple[str, str], list[str]] = {}
    for task, subset, metric in keys:
        subsets.setdefault((task, metric), []).append(subset)
    tasks: dict[tuple[str, str], list[str]] = {}
    for (task, metric), names in subsets.items():
        tasks.setdefault((list_names(names, between=" "), metric), []).append(task)
    return ", ".join(f"{' '.join(names)} {subset} {metric}" for (subset, metric), names in tasks.items())


class _Part(BaseModel):
    """Scores of a metric: of each task and subset, between blanks."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    task: str = ""
    subset: str = ""
    metric: str = ""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The scores."""
        return tuple((task, subset, self.metric) for task, subset in product(self.task.split(), self.subset.split()))


class ColumnTable(_Part):
    """A column as TOML has it, of one part, of several, or of the `columns` before it; see `suites.toml`.

    In the design of a sweep, `languages` and `data` are those of its tasks.
    """

    name: str
    of: tuple[_Part, ...] = ()
    columns: tuple[str, ...] = ()
    languages: str = ""
    data: str = ""

    @model_validator(mode="after")
    def _one_kind_of_parts(self) -> ColumnTable:
        whole = [bool(part.task and part.subset and part.metric) for part in (self, *self.of)]
        if sum((whole[0], bool(self.of), bool(self.columns))) != 1 or not all(whole[1:]):
            raise ValueError("write task, subset and metric, a list `of` such tables, or columns")
        return self


def columns_of(tables: Sequence[ColumnTable]) -> tuple[Column, ...]:
    """The columns. Raises ValueError for two of one name, and for one of a column that is not before it."""
    columns: dict[str, Column] = {}
    for table in tables:
        if table.name in columns:
            raise ValueError(f"two columns have the name {table.name!r}; give each its own")
        if unknown := [name for name in table.columns if name not in columns]:
            raise ValueError(f"{table.name}: columns: {unknown[0]!r} is not a column before it")
        of: list[Key | Column] = [columns[name] for name in table.columns]
        of += [key for part in table.of or (table,) for key in part.keys]
        columns[table.name] = Column(table.name, tuple(of))
    return tuple(columns.values())


SUITES: dict[str, Suite] = {
    name: Suite(
        table["about"],
        columns_of([ColumnTable.model_validate(column) for column in table["columns"]]),
        {task: tuple(codes.split()) for task, codes in table.get("languages", {}).items()},
    )
    for name, table in tomllib.loads((Path(__file__).parent / "suites.toml").read_text(encoding="utf-8")).items()
}


def by_suite(models: Mapping[str, Sequence[Score]], *, suite: str) -> Grid:
    """The main table of a paper, transposed: a row for each number of the paper's table, a column for each model.

    A dash stands where a model lacks one of the scores that a number is the mean of; see `lacking`. The notes list
    the scores behind each number.
    """
    tables, columns = [by_key(scores) for scores in models.values()], SUITES[suite].columns
    rows = tuple((column.label, *(column.cell(table) for table in tables)) for column in columns)
    notes = tuple(column.note for column in columns)
    return Grid(f"Suite {suite}: {SUITES[suite].about}", ("", *models), rows, notes=notes)


def lacking(
    scores: Sequence[Score], *, suite: str, data: Path | None = None, languages: Sequence[str] = ()
) -> list[str]:
    """One line for each column without a value: the scores it needs that are missing.

    With `data`, the folder that was evaluated, also which of them `languages` left out although they are there, and,
    once for each set, the command that downloads it.
    """
    lines, named, present = list[str](), set[str](), by_key(scores)
    find = cache(partial(_find_subsets, data=data, languages=tuple(languages)))
    for column in SUITES[suite].columns:
        if not (missing := column.lacking(present)):
            continue
        narrowed = [one for one in missing if _is_left_out(one[1], *find(one[0]))]
        absent = dict.fromkeys(one[0] for one in missing if one not in narrowed)
        commands = dict.fromkeys(get_command(TASKS[task], data=data) for task in absent) if data else {}
        new = [command for command in commands if command and command not in named]
        named.update(new)
        why = f"; of these, --languages left out {list_scores(narrowed)}" if narrowed else ""
        why = "; left out by --languages" if narrowed == missing else why
        how = f"; get it with: {' and '.join(new)}" if new else ""
        lines.append(f"{column.label}: no {list_scores(missing)}{why}{how}")
    return lines


def _find_subsets(task: str, data: Path | None, languages: Sequence[str]) -> tuple[set[str], set[str]]:
    """The subsets of a task that are in `data`, and those of the languages; nothing without languages."""
    if data is None or not languages:
        return set(), set()
    try:
        return set(TASKS[task].subsets(data)), set(TASKS[task].subsets(data, languages=languages))
    except IsoglotError:  # already reported by the evaluation
        return set(), set()


def _is_left_out(subset: str, available: set[str], asked: set[str]) -> bool:
    """Whether the requested languages left out this subset although it is there, or part of this average."""
    # Of an average only the name is known: it lacks a part if any subset of the task was left out.
    return subset in available - asked or (asked < available and not any(map(is_language, subset.split("-"))))
