"""Sweeps: arms with different settings are trained with several seeds, evaluated, and compared in one table.

An *arm* is a recipe with changes to it. All arms use the same seeds, so run i of two arms has the same batches as far
as their settings allow, and differences are tested in pairs, over the test items and over the seeds (see `compare`). A
folder holds one run for each arm and seed, `<arm>/seed-<n>/`, and at the end `sweep.json`, `sweep.md`, `sweep.tex` and,
where matplotlib is installed, `sweep.svg`. A finished run is read, not repeated; an interrupted one is resumed.

A design is the same as TOML, one file for each or a table of a file with several:

    title = "MPCL: many positives at once, or one"
    recipe = "cpu/mpcl"                   # of arms without a recipe
    control = "+Single"                   # what the others are compared with; default: the first arm
    set = ["optimizer.lr=1e-4"]           # changes to all arms
    arms = [{ name = "untrained", untrained = true }, { name = "+Single", recipe = "cpu/mpcl-single" },
            { name = "+Multiple" }]
    columns = [{ name = "STS17", task = "sts17", subset = "mean", metric = "spearman", languages = "ara eng" }]

An arm may be a model as it is (`model = "glove-6b-50d"`), or have a layer fitted at the end (`fit = "whitening"` or
`"flow"`). A column may be the mean over several scores, `of = [{ task = …, subset = …, metric = … }, …]`, and have its
`data` in a folder below `files`. `columns = "NAME"` and `set = "NAME"` are those of the table NAME of the same file.
"""

from __future__ import annotations

import itertools
import json
import logging
import re
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from multiprocessing import active_children
from pathlib import Path
from signal import SIGINT
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, ValidationError, model_validator

from isoglot.core import __version__, environment
from isoglot.core.arguments import NonNegativeInt, PositiveInt, Range, check_arguments
from isoglot.core.errors import EvaluationError, RecipeError, nearest, quote
from isoglot.core.processes import end_with_parent, worker_pool
from isoglot.core.progress import Report, clock
from isoglot.core.score import Metric, Score, Unit, main_metrics
from isoglot.core.toml import tomllib
from isoglot.data.files import (
    atomic_write,
    check_output,
    check_outputs,
    collecting,
    differences,
    read_record,
    write_record,
)
from isoglot.encoders import Encoder, fit_flow, fit_whitening
from isoglot.encoders import load as load_encoder
from isoglot.encoders.device import resolve, settle
from isoglot.encoders.loading import digest_of
from isoglot.encoders.settings import Settings, StaticSettings
from isoglot.evaluation import TASKS, Task
from isoglot.evaluation.compare import LEVEL, REASONS, Comparison, Difference, apply_holm, compare, p_shown, spread
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.run import data_digest
from isoglot.evaluation.run import plan as planned_tasks
from isoglot.evaluation.scores import Scores, read_results, write_results
from isoglot.evaluation.suites import SUITES, Column, ColumnTable, Key, columns_of
from isoglot.model import Model, load
from isoglot.report.sweep_plot import plot_sweep, write_value
from isoglot.report.tables import NOTHING, Grid, save_tables, to_document, to_text
from isoglot.training import recipe as recipes
from isoglot.training.freeze import settings_of
from isoglot.training.loop import run as train
from isoglot.training.plan import Plan, make_encoder, make_plan
from isoglot.training.progress import Display
from isoglot.training.recipe import PACKAGED
from isoglot.training.record import circumstances, digests_of, files_of, inputs_of, name_files
from isoglot.training.settings import Recipe
from isoglot.training.trackers import choose_trackers

__all__ = ["Arm", "Design", "Sweep", "read_design", "sweep"]

MADE_OF = "made_of.json"  # in the folder of a finished run: settings and digests, by which it is known again
DEV = "dev"  # name of the score that selected a run's checkpoint
_OWN = ("name", "description", "folder", "data")  # settings of a recipe that do not affect a run


class Arm(Settings):
    """One arm: a recipe with changes, its encoder before the first step, or a model as it is.

    `fit` puts a layer after the encoder at the end, fitted to the text of the recipe's first stage. `at` are the values
    of the keys that a sweep goes over, for the plot.
    """

    name: str
    recipe: str = ""
    set: tuple[str, ...] = ()
    untrained: bool = False
    model: str = ""
    fit: Literal["", "whitening", "flow"] = ""
    at: dict[str, Any] = Field(default_factory=dict, exclude=True)

    @model_validator(mode="after")
    def _recipe_or_model(self) -> Arm:
        if self.model and (self.recipe or self.set or self.untrained or self.fit):
            raise ValueError(f"arm {self.name!r}: a model is scored as it is; remove recipe, set, untrained and fit")
        return self

    def depends_on_seed(self, encoder: Any) -> bool:
        """Whether another seed gives another result, with the settings of the encoder that the arm begins with."""
        parts = getattr(encoder, "towers", [encoder])
        is_new = [not one.model if isinstance(one, StaticSettings) else one.dim or one.head == "kept" for one in parts]
        return not self.untrained or self.fit == "flow" or any(is_new)


class Design(Settings):
    """The arms and the columns of scores to compare (see the module)."""

    title: str = ""
    recipe: str = ""
    control: str = ""
    set: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = Field(min_length=1)
    columns: tuple[ColumnTable, ...] = ()

    @property
    def scores(self) -> list[tuple[ColumnTable, Key]]:
        """Each score of the columns."""
        columns = zip(self.columns, columns_of(self.columns), strict=True)
        return [(table, key) for table, column in columns for key in column.keys]

    @model_validator(mode="after")
    def _arms_are_known(self) -> Design:
        folders = [_folder(arm.name) for arm in self.arms]
        if len(set(folders)) < len(folders):
            raise ValueError(f"two arms have the name {max(folders, key=folders.count)!r}; give each its own")
        if self.control and self.control not in (names := [arm.name for arm in self.arms]):
            raise ValueError(f"control {self.control!r} is not an arm; {nearest(self.control, names)}")
        for task in dict.fromkeys(key[0] for _, key in self.scores):
            of_task = [(table, subset) for table, (other, subset, _) in self.scores if other == task]
            if len({table.data for table, _ in of_task}) > 1:
                raise ValueError(f"columns of {task} name different data; all columns of a task must name the same")
            if len({table.languages for table, _ in of_task}) > 1 and any(subset == "mean" for _, subset in of_task):
                raise ValueError(f"columns of {task} name different languages, and one is the mean over all of them")
        if without_recipe := [arm.name for arm in self.arms if not (arm.recipe or arm.model or self.recipe)]:
            raise ValueError(f"arm {without_recipe[0]!r} has no recipe; set one in the arm, or one for all")
        return self


def read_design(path: str | Path, entry: str = "") -> Design:
    """The design in a TOML file, or the table `entry` of a file with several.

    Raises `RecipeError` for a file that cannot be read, an unknown entry and wrong values.
    """
    whole = data = recipes.read_toml(Path(path))
    entries = [name for name, table in data.items() if isinstance(table, dict) and "arms" in table]
    if "arms" not in data and entries:
        if entry not in entries:
            problem = f"{quote(entry)} is not a design in this file" if entry else "has several designs; pass --entry"
            raise RecipeError(f"{path}: {problem}; {nearest(entry, entries, most=99)}")
        data = data[entry]
        for key in ("set", "columns"):
            if isinstance(other := data.get(key), str):
                if other not in whole:
                    raise RecipeError(f"{path}: {entry}: {key}: {nearest(other, entries)}")
                data = data | {key: whole[other].get(key, [])}
    return parse_design(data, where=f"{path}: {f'{entry}: ' if entry else ''}")


def parse_design(data: Mapping[str, Any], *, where: str = "") -> Design:
    """A design from plain data. Raises `RecipeError` that begins with `where`."""
    try:
        return Design.model_validate(data)
    except ValidationError as error:
        raise RecipeError(where + recipes.explain(error.errors()[0], Design)) from error


def arms_over(arms: Sequence[Arm], over: Sequence[str]) -> tuple[Arm, ...]:
    """Each arm with every combination of values of `KEY=VALUE,VALUE` entries, values as in TOML, bare words as strings.

    A single arm is named by its values alone. Raises `RecipeError` for an entry without a value, and for an arm
    that is a model.
    """
    grid: list[list[tuple[str, Any]]] = []
    for entry in over:
        key, mark, words = entry.partition("=")
        try:
            values = tomllib.loads(f"values = [{words}]")["values"]
        except tomllib.TOMLDecodeError:
            values = [recipes.read_word(word.strip())["value"] for word in words.split(",") if word.strip()]
        if not (key.strip() and mark and values):
            raise RecipeError(f"--over {quote(entry, quotes=False)}: write KEY=VALUE,VALUE, as in batching.most=2,4")
        grid.append([(key.strip(), value) for value in values])
    if not grid:
        return tuple(arms)
    if models := [arm.name for arm in arms if arm.model]:
        raise RecipeError(f"--over: arm {models[0]!r} is a model, which no setting changes; leave out one of the two")
    keys, every = [axis[0][0] for axis in grid], []
    last = [key.rpartition(".")[2] for key in keys]
    names = {key: short if last.count(short) == 1 else key for key, short in zip(keys, last, strict=True)}
    for arm, point in itertools.product(arms, itertools.product(*grid)):
        label = ", ".join(f"{names[key]}={write_value(value)}" for key, value in point)
        name = f"{arm.name}, {label}" if len(arms) > 1 else label
        # JSON writes the values of TOML, all but tables, alike.
        changes = (*arm.set, *(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in point))
        every.append(arm.model_copy(update={"name": name, "set": changes, "at": arm.at | dict(point)}))
    return tuple(every)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A finished sweep. Printing it shows its tables.

    arms        in the order of the design
    seeds       of every trained arm
    columns     what was measured; `dev` is the score that chose the checkpoints
    comparison  values, differences from the control, intervals and p-values of all columns; None for one arm alone
    values      column -> arm -> value of each seed
    seconds     arm -> mean seconds of training, of the runs that were not interrupted
    """

    title: str
    arms: tuple[Arm, ...]
    control: str
    seeds: tuple[int, ...]
    columns: tuple[str, ...]
    comparison: Comparison
    values: Mapping[str, Mapping[str, Sequence[float]]]
    seconds: Mapping[str, float] = field(default_factory=dict)

    def grids(self) -> list[Grid]:
        """A table of means and deviations, an arm in each row, and one of differences from the control."""
        return [self._means(), *([self._tests()] if len(self.arms) > 1 else [])]

    def _means(self) -> Grid:
        table, rows = self.comparison.tables[0], []
        for arm in self.arms:
            place, cells = self.comparison.systems.index(arm.name), []
            for row in table.rows:
                change = row.differences[place - 1] if place else None
                mark = change.mark if change and change.significant else ""
                cells.append(spread(row.values[place], row.unit) + mark)
            duration = clock(self.seconds[arm.name]) if arm.name in self.seconds else NOTHING
            rows.append((arm.name, str(len(self.values[self.columns[0]][arm.name])), *cells, duration))
        header = ("", "runs", *(row.subset + " ↓" * row.lower_is_better for row in table.rows), "training")
        notes = ["mean ± sample standard deviation over the seeds"]
        if len(self.arms) > 1:
            notes += [f"▲ better, ▼ worse than {self.control}: p ≤ {LEVEL}; {self._method()}", *self._list_plain_p()]
        notes += [f"skipped: {line}" for line in self.comparison.left_out]
        return Grid(self.title, header, tuple(rows), notes=tuple(notes))

    def _method(self) -> str:
        """What p is that marks an arm."""
        changes = [change for row in self.comparison.tables[0].rows for change in row.differences]
        degrees = sorted({round(change.degrees, 1) for change in changes if change.degrees is not None})
        over = "the larger one over the items (permutations) and over the seeds (paired t-test, "
        over += f"degrees of freedom: {' or '.join(f'{one:g}' for one in degrees)})"
        count = len(self.comparison.systems) - 1
        tests = f", by Holm over the {count} arms of a column" if count > 1 else ""
        return f"p is {over if degrees else 'over the items (permutations)'}{tests}"

    def _list_plain_p(self) -> list[str]:
        """A line with what only p-values that are not corrected would mark."""
        marked = [
            f"{row.subset}: {name}{change.mark} {p_shown(p)}"
            for row in self.comparison.tables[0].rows
            for name, change in zip(self.comparison.systems[1:], row.differences, strict=True)
            if (p := _larger_p(change)) is not None and p <= LEVEL and not change.significant
        ]
        return [f"p ≤ {LEVEL} only without the correction: {'; '.join(marked)}"] if marked else []

    def _tests(self) -> Grid:
        rows = tuple(
            (
                row.subset, name, change.words(row.unit), p_shown(change.p, row.untested), row.p_over_seeds(place),
                NOTHING if change.degrees is None else f"{change.degrees:.3g}", p_shown(change.corrected),
            )
            for row in self.comparison.tables[0].rows
            for place, (name, change) in enumerate(zip(self.comparison.systems[1:], row.differences, strict=True))
        )  # fmt: skip
        cells = {cell for row in rows for cell in row}
        notes = [f"{name}: {meaning}" for name, meaning in REASONS.items() if name in cells]
        note = f"brackets: 95 % interval over the test items; df: degrees of freedom over the seeds; {self._method()}"
        header = ("", "arm", "difference", "p (items)", "p (seeds)", "df", "p (corrected)")
        return Grid(f"Differences from {self.control}", header, rows, notes=(note, *notes))

    def __str__(self) -> str:
        """All tables as text."""
        return to_text(self.grids())

    def to_markdown(self) -> str:
        """All tables in Markdown."""
        return to_document(self.grids())

    def to_dict(self) -> dict[str, Any]:
        """The content of `sweep.json`; `plot_sweep` reads it."""
        arms = [{"name": arm.name, "recipe": arm.recipe, "set": list(arm.set), "at": arm.at} for arm in self.arms]
        rows = self.comparison.tables[0].rows
        units = {row.subset: {"unit": row.unit, "lower_is_better": row.lower_is_better} for row in rows}
        return {
            "title": self.title, "control": self.control, "seeds": list(self.seeds), "arms": arms, "columns": units,
            "values": self.values, "seconds": self.seconds, "comparison": self.comparison.to_dict(),
        }  # fmt: skip

    def save(self, folder: str | Path) -> None:
        """Write `sweep.md`, `sweep.tex` and `sweep.json`."""
        save_tables(Path(folder) / "sweep", self.grids())
        with atomic_write(Path(folder) / "sweep.json") as file:
            file.write(json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1) + "\n")


@check_arguments()
def sweep(
    design: Design | str | Path,
    output: str | Path,
    *,
    over: Sequence[str] = (),
    seeds: PositiveInt | Sequence[int] = 3,
    overrides: Sequence[str] = (),
    tasks: Sequence[str] = (),
    languages: Sequence[str] = (),
    data: str | Path | None = None,
    files: str | Path = ".",
    jobs: PositiveInt = 1,
    length: Annotated[float, Range(1e-3, 1e3)] = 1.0,
    steps: NonNegativeInt = 0,
    keep: bool = False,
    device: str = "auto",
    precision: str | None = None,
    track: str | Sequence[str] = (),
    report: Report | None = None,
) -> Sweep:
    """Train every arm with every seed, score the encoders, and compare the arms.

    design     a recipe, by path or packaged name, or a design (`read_design`)
    output     folder of the runs; the same call again continues where it was interrupted
    over       `KEY=VALUE,VALUE`: each arm with each value; several entries make a grid
    seeds      number of random seeds per arm. They begin with 1; or the seeds themselves
    overrides  changes to all arms, `KEY=VALUE`
    tasks      tasks and suites to evaluate in addition to the dev score and to the columns of the design. There is a
               column for each average of their main metrics, or for each subset where there is none
    languages  language codes to evaluate; default: all languages
    data       folder of the data sets; default: $ISOGLOT_DATA, else data/
    files      folder with the training files that packaged recipes expect, such as wikipedia/
    jobs       number of parallel runs. Each is a process with its share of the processor's threads
    length     factor for the length of training of each arm: its steps or epochs, its warm-up, and the steps between
               evaluations. It shows whether a difference remains after longer training
    steps      steps of every stage, for a trial run; 0: as in the recipes
    keep       keep the models and checkpoints of all runs. Otherwise they are removed once the scores are written
    device     device to train and to evaluate on, as of `isoglot.load`
    precision  precision of the evaluation, as in `isoglot.evaluate`; training has its own in the recipe
    track      trackers of each run: tensorboard, wandb, mlflow; default: TensorBoard if installed
    report     called with messages; default: a display on stderr

    Raises `RecipeError` before the first run for a wrong recipe or design and for missing data, `EvaluationError` when
    a folder contains runs of other settings, and as training and evaluation do.
    """
    output, root = Path(output), Path(data) if data is not None else environment.data_folder()
    if not isinstance(design, Design):
        design = Design(title=str(design), arms=(Arm(name=str(design), recipe=str(design)),))
    arms = tuple(
        arm
        if arm.model
        else arm.model_copy(update={"recipe": arm.recipe or design.recipe, "set": (*design.set, *overrides, *arm.set)})
        for arm in arms_over(design.arms, over)
    )
    seed_numbers = tuple(range(1, seeds + 1)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds))
    if not seed_numbers or min(seed_numbers) < 0:
        raise ValueError(f"seeds must be a number of seeds, or seeds of at least 0, got {seeds!r}")
    if len({_folder(arm.name) for arm in arms}) < len(arms):
        raise RecipeError("two arms have the same name or values; remove one of them")
    try:
        precision = None if precision is None else settle(precision, resolve(device))
    except ValueError as error:
        raise EvaluationError(str(error)) from error
    folders = {task: Path(files) / table.data for table, (task, _, _) in design.scores if table.data}
    tests = [
        _Test.open(TASKS[task], folders.get(task, root), codes)
        for task, codes in _tasks_of(design, tasks, languages).items()
    ]
    job = _Job(Path(files), root, output, length, steps, keep, device, precision, tests, choose_trackers(track))
    trainable = [arm for arm in arms if not arm.model]
    plans = [job.plan(arm) for arm in trainable]  # check all arms before the first run
    # The dev score is compared if all arms choose their checkpoint by the same one.
    devs = [[(choice.name, choice.devs) for choice in plan.choices] for plan in plans]
    dev = len(plans) == len(arms) and bool(devs[0]) and all(one == devs[0] for one in devs)
    if dev and DEV in [table.name for table in design.columns]:
        raise RecipeError(f"columns: {DEV!r} is the name of the dev score; give this column another one")
    if not dev and not tests:
        raise RecipeError("nothing to compare: pass tasks, or write [evaluation] in the recipe")
    check_output(output, folder=True)
    read_record(output / "sweep.json", ("arms", "values"))
    seeded = {arm.name for arm, plan in zip(trainable, plans, strict=True) if arm.depends_on_seed(plan.recipe.encoder)}
    runs = [(arm, seed) for arm in arms for seed in (seed_numbers if arm.name in seeded else seed_numbers[:1])]
    inputs = [Path(arm.recipe) for arm in arms if arm.recipe]
    inputs += [path for plan in plans for path in inputs_of(plan.recipe)]
    tables = [*(output / f"sweep.{kind}" for kind in ("md", "tex", "json", "svg")), output / "design.json"]
    check_outputs(*tables, inputs=[path for path in inputs if not path.is_dir()])
    for arm, seed in runs:
        check_output(job.folder(arm, seed), inputs=[arm.model or None], folder=True, whole=True)
    results = _run(job, runs, jobs=jobs, report=report)
    result = _gather(design, arms, seed_numbers, results, dev=dev, tasks=tasks)
    result.save(output)
    write_record(output / "design.json", _describe(job, design, result, plans, tasks, languages))
    if find_spec("matplotlib"):  # of an extra
        plot_sweep(output, output / "sweep.svg")
    return result


def _describe(
    job: _Job, design: Design, finished: Sweep, plans: Sequence[Plan], tasks: Sequence[str], languages: Sequence[str]
) -> dict[str, Any]:
    """What `isoglot.freeze` needs of a sweep: arms with their recipes, columns, options, and digests of the files."""
    files = {name: value for plan in plans for name, value in files_of(plan).items()}
    for test in job.tests:
        with collecting() as opened:
            TASKS[test.task].subsets(test.data, languages=test.languages)
        files |= name_files(opened, job.files.absolute(), job.data)
    columns = [one.model_dump(mode="json", exclude_defaults=True, exclude_none=True) for one in design.columns]
    arms = [arm.model_dump(exclude={"recipe", "set"}, exclude_defaults=True) | {"at": arm.at} for arm in finished.arms]
    names = [arm.name for arm in finished.arms if not arm.model]
    return circumstances(resolve(job.device), files) | {
        "design": {"title": finished.title, "control": finished.control, "columns": columns},
        "arms": arms,
        "recipes": {name: settings_of(plan.recipe) for name, plan in zip(names, plans, strict=True)},
        "seeds": finished.seeds, "tasks": tasks, "languages": languages, "precision": job.precision, "keep": job.keep,
    }  # fmt: skip


def _tasks_of(design: Design, tasks: Sequence[str], languages: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The tasks to run, each with its languages; none means all."""
    languages_of: dict[str, tuple[str, ...]] = {}
    for table, (name, _, _) in design.scores:
        codes, before = tuple(table.languages.split()), languages_of.get(name)
        union = tuple(dict.fromkeys((*before, *codes))) if before and codes else ()
        languages_of[name] = codes if before is None else union
    for task, codes in planned_tasks(list(tasks), languages=list(languages)) if tasks else ():
        before = languages_of.get(task.name)
        if any(table.data for table, key in design.scores if key[0] == task.name):
            raise RecipeError(f"{task.name}: its columns name data of their own; leave it out of the tasks")
        if before is not None and tuple(codes) != before and not languages:
            raise RecipeError(f"{task.name}: its columns name other languages than the tasks; leave it out of one")
        languages_of[task.name] = tuple(codes)
    if languages:
        languages_of = dict.fromkeys(languages_of, tuple(languages))
    if unknown := [task for task in languages_of if task not in TASKS]:
        raise RecipeError(f"columns: unknown task {quote(unknown[0])}; {nearest(unknown[0], TASKS)}")
    return languages_of


@dataclass(frozen=True, slots=True)
class _Test:
    """A task on which every arm is evaluated: its languages (none: all), its data, and their digest."""

    task: str
    data: Path
    languages: tuple[str, ...]
    digest: str

    @classmethod
    def open(cls, task: Task, data: Path, languages: tuple[str, ...]) -> _Test:
        """Raises EvaluationError if there are no data."""
        if not task.subsets(data, languages=languages):
            raise EvaluationError(f"{task.name}: no data in {data}: {task.needs}")
        return cls(task.name, data, languages, data_digest(task, data, languages=languages))


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings shared by all runs of a sweep."""

    files: Path
    data: Path
    output: Path
    length: float
    steps: int
    keep: bool
    device: str
    precision: str | None
    tests: Sequence[_Test]
    track: Sequence[str]

    def plan(self, arm: Arm) -> Plan:
        """The recipe of an arm, checked."""
        recipe = _lengthen(recipes.load(arm.recipe, arm.set), self.length)
        stages = recipe.stages
        if self.steps:
            stages = tuple(stage.model_copy(update={"steps": self.steps, "epochs": None}) for stage in stages)
        place = {"folder": self.files} if recipe.folder.is_relative_to(PACKAGED) else {}
        return make_plan(recipe.model_copy(update={"data": self.data, "stages": stages, **place}), arm.recipe)

    def list_inputs(self, arm: Arm, plan: Plan | None) -> dict[str, Any]:
        """What a run is made of: settings, and digests of all that is read for it."""
        made_of: dict[str, Any] = {"fit": arm.fit, "precision": self.precision, "untrained": arm.untrained}
        made_of["tasks"] = {test.task: [*test.languages, test.digest] for test in self.tests}
        if plan is None:
            made_of["model"] = digest_of(arm.model)
        else:
            made_of["recipe"] = plan.recipe.model_dump(mode="json", exclude=set(_OWN))
            made_of["text"] = [corpus.digest() for corpus in plan.text]
            made_of |= digests_of(plan, installed=True)
        return made_of

    def folder(self, arm: Arm, seed: int) -> Path:
        return self.output / _folder(arm.name) / f"seed-{seed}"

    def run(self, arm: Arm, seed: int, report: Report, update: Callable[[Any], None]) -> Scores:
        """Train an arm with a seed and score it, or read what an earlier call wrote."""
        plan, folder = None if arm.model else self.plan(arm), self.folder(arm, seed)
        made_of = self.list_inputs(arm, plan)
        if (folder / "results.json").exists():
            earlier = read_record(folder / MADE_OF) or {}
            if changed := differences({**dict.fromkeys(earlier), **made_of}, earlier):
                problem = f"contains a run that differs in {', '.join(changed[:3])}; remove it, or pass another output"
                raise EvaluationError(f"{folder}: {problem}")
            return read_results(folder)
        report(f"{arm.name}, seed {seed}")
        settings: dict[str, Any] = {"recipe": arm.recipe, "seed": seed, "version": __version__}
        settings |= {} if self.precision is None else {"precision": self.precision}
        scores: list[Score] = []
        if plan is None:
            encoder: Model = load(arm.model, device=self.device)
        elif arm.untrained:
            fresh = make_encoder(plan, report, seed=seed).exports()[0].eval().to(resolve(self.device))
            encoder = _fit_layer(arm, fresh, plan, seed).eval()
        else:
            resumes, place = (folder / "run.json").exists(), resolve(self.device)
            outcome = train(
                plan.recipe, folder, device=place, name=arm.recipe, seed=seed, track=self.track, report=report,
                update=update,
            )  # fmt: skip
            settings["seconds"] = None if resumes else round(outcome.seconds)
            encoder = _fit_layer(arm, load_encoder(outcome.model, device=place), plan, seed)
            scores = [] if outcome.best is None else [_dev_score(outcome.best, plan.choices[0].devs[0].metric)]
        if plan is not None and (arm.untrained or arm.fit):  # what training scored is another encoder
            scores = [_dev_score(one.score(encoder)[0], one.devs[0].metric) for one in plan.choices[:1]]
        for test in self.tests:
            scores += evaluate(
                encoder, [test.task], data=test.data, languages=list(test.languages), precision=self.precision,
                skip_missing=True, report=report,
            )  # fmt: skip
        results = Scores(scores, arm.name, settings)
        write_record(folder / MADE_OF, made_of)  # first: results without it are of an unknown run
        write_results(folder, results)
        if plan is not None and not arm.untrained and not self.keep:
            for name in ("model", "best", "checkpoints"):
                shutil.rmtree(folder / name, ignore_errors=True)
        return results


def _lengthen(recipe: Recipe, factor: float) -> Recipe:
    """The recipe with a longer or shorter training; what counts steps in it is at least one, or zero as before."""

    def multiply(settings: Any, *names: str) -> Any:
        values = {name: getattr(settings, name) for name in names}
        longer = {name: max(1, round(value * factor)) for name, value in values.items() if value}
        return settings.model_copy(update=longer)

    stages = [
        multiply(stage, "steps").model_copy(
            update={
                "epochs": stage.epochs and stage.epochs * factor,
                "optimizer": multiply(stage.optimizer, "warmup", "stair"),
            }
        )
        for stage in recipe.stages
    ]
    evaluation = tuple(multiply(one, "every") for one in recipe.evaluation)
    return recipe.model_copy(update={"stages": tuple(stages), "evaluation": evaluation})


def _fit_layer(arm: Arm, encoder: Encoder, plan: Plan, seed: int) -> Encoder:
    """The encoder with the layer that the arm asks for, fitted to the text of the recipe's first stage."""
    if not arm.fit:
        return encoder
    texts = [text for corpus in plan.corpora[0] for text in corpus.texts()]
    if arm.fit == "whitening":
        return fit_whitening(encoder, texts).encoder
    return fit_flow(encoder, texts, seed=seed).encoder


def _dev_score(value: float, metric: Metric) -> Score:
    unit: Unit = "plain" if metric.unit == "plain" else "fraction"  # fraction: comparable with runs of version 0.2
    return Score(DEV, "best", "score", value, 0, unit=unit, lower_is_better=metric.lower_is_better)


def _run(job: _Job, runs: Sequence[tuple[Arm, int]], *, jobs: int, report: Report | None) -> dict[str, list[Scores]]:
    """The scores of all runs by the names of their arms."""
    results: dict[str, list[Scores]] = {arm.name: [] for arm, _ in runs}
    if jobs == 1:
        for arm, seed in runs:
            with Display(quiet=report is not None) as display:
                results[arm.name].append(job.run(arm, seed, report or display.report, display.update))
        return results
    quiet = report is not None or logging.getLogger("isoglot").level > logging.INFO  # `isoglot --quiet`
    for (arm, _), scores in zip(runs, _run_side_by_side(job, runs, jobs, quiet), strict=True):
        results[arm.name].append(scores)
    return results


def _run_side_by_side(job: _Job, runs: Sequence[tuple[Arm, int]], jobs: int, quiet: bool) -> list[Scores]:
    """The scores of the runs in their order. The first error, or SIGTERM, ends the other runs by SIGTERM."""
    waiting, running, scores = [*range(len(runs))], dict[Future[Scores], int](), dict[int, Scores]()
    others = active_children()
    with worker_pool(jobs, _start_run, max(1, torch.get_num_threads() // jobs)) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:  # a run that waited in the pool would begin after Ctrl-C
                    arm, seed = runs[place := waiting.pop(0)]
                    running[pool.submit(_run_in_process, job, arm, seed, quiet)] = place
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    scores[running.pop(done)] = done.result()
        except (Exception, SystemExit) as end:
            # Ctrl-C reaches the runs by itself, and a second signal would keep them from writing a checkpoint.
            for worker in {*active_children()} - {*others} if getattr(end, "code", 0) != 128 + SIGINT else ():
                worker.terminate()
            raise
    return [scores[place] for place in range(len(runs))]


def _start_run(threads: int) -> None:
    """The first call of a process of runs. Unlike `start_worker`, it leaves Ctrl-C to the run, for a checkpoint."""
    end_with_parent()
    torch.set_num_threads(threads)


def _run_in_process(job: _Job, arm: Arm, seed: int, quiet: bool) -> Scores:
    """One run in its own process; each message begins with the arm."""

    def say(message: str) -> None:
        if not quiet:
            sys.stderr.write(f"[{arm.name}, seed {seed}] {message}\n")  # one write, so that lines do not mix

    return job.run(arm, seed, say, lambda _: None)


def _gather(
    design: Design,
    arms: Sequence[Arm],
    seeds: tuple[int, ...],
    results: Mapping[str, list[Scores]],
    *,
    dev: bool,
    tasks: Sequence[str],
) -> Sweep:
    """The table of all runs."""
    columns = [Column(DEV, ((DEV, "best", "score"),))] if dev else []
    columns += columns_of(design.columns)
    first = next(iter(results.values()))[0]
    suites = [name for name in tasks if name in SUITES]
    single_tasks = {task.name for task, _ in planned_tasks(list(tasks))} if tasks else set()
    single_tasks -= {task for name in suites for task in SUITES[name].tasks}
    more = [(name, column) for name in suites for column in SUITES[name].columns]
    more += [("task", column) for column in _columns_of([score for score in first if score.task in single_tasks])]
    for word, column in more:
        is_taken = column.label in [other.label for other in columns]
        columns.append(replace(column, label=f"{word} {column.label}") if is_taken else column)
    names = [arm.name for arm in design.arms]
    place = names.index(design.control) if design.control else 0
    control = arms[place * len(arms) // len(names)].name  # of a grid: with the first of all values
    order = [control, *(name for name in results if name != control)]
    pairs = [(name, run) for name in order for run in results[name]]
    comparison = compare(*(run for _, run in pairs), names=[name for name, _ in pairs], columns=columns)
    rows = tuple(replace(row, differences=correct(row.differences)) for row in comparison.tables[0].rows)
    comparison = replace(comparison, tables=(replace(comparison.tables[0], rows=rows),))
    by_label = {column.label: column for column in columns}
    by_key = {
        name: [{(one.task, one.subset, one.metric): one.value for one in run} for run in runs]
        for name, runs in results.items()
    }
    values = {
        row.subset: {name: [by_label[row.subset].mean(run) for run in runs] for name, runs in by_key.items()}
        for row in rows
    }
    seconds = {
        name: statistics.mean(measured)
        for name, every in results.items()
        if (measured := [float(s) for run in every if isinstance(s := run.settings.get("seconds"), int | float)])
    }
    return Sweep(design.title or "Sweep", tuple(arms), control, seeds, tuple(values), comparison, values, seconds)


def correct(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Differences of several arms from one control, corrected by Holm for their number.

    An arm differs if it does over the items and over the seeds, so its p-value is the larger of the two.
    """
    return apply_holm(differences, [_larger_p(change) for change in differences])


def _larger_p(change: Difference) -> float | None:
    return max((p for p in (change.p, change.p_seeds) if p is not None), default=None)


def _columns_of(scores: Sequence[Score]) -> list[Column]:
    """A column for each average of the main metrics, or for each subset of a task without averages."""
    columns = []
    for task, metrics in main_metrics(scores).items():
        for metric in metrics:
            of_metric = [score for score in scores if (score.task, score.metric) == (task, metric)]
            for score in [score for score in of_metric if score.over] or of_metric:
                words = [task, *([score.subset] if len(of_metric) > 1 else []), *([metric] if len(metrics) > 1 else [])]
                columns.append(Column(" ".join(words), ((task, score.subset, metric),)))
    return columns


def _folder(name: str) -> str:
    """The folder of an arm: its name without characters that paths should not contain."""
    return re.sub(r"[^\w.+=-]+", "-", name).strip("-") or "run"
