"""Scores on disk: a folder with `results.json` and two more files.

    results.json    {"model": "...", "settings": {"prompt": "query: ", ...}, "scores": [
                      {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000,
                       "unit": "fraction"},
                      {"task": "xsim/own", "subset": "mean", ..., "n": 2, "over": ["xx-deu", "xx-eng"],
                       "unit": "error", "lower_is_better": true, "main": true}, ...]}
    items.npz       the outcome of each test item, as NumPy arrays named task/subset/metric (each percent-encoded)
    details.jsonl   one table per line: mistakes, hits, heat maps, sentence maps

The same results give the same bytes in all three files, so two evaluations can be compared with `diff`.
`results.json` has one score per line and is written last; it can be read without the other two.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, overload
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import EvaluationError, naming_extras, nearest
from isoglot.core.score import Detail, Score, Setting, Unit, main_metrics
from isoglot.data.files import atomic_write, check_output, exclusive, read_record
from isoglot.evaluation.statistics import STATISTICS
from isoglot.evaluation.suites import SUITES, by_key, by_suite
from isoglot.report.comparable import Key, list_parts, make_key
from isoglot.report.html import Tables, tables_html
from isoglot.report.tables import Grid, by_language, save_tables, to_text

if TYPE_CHECKING:
    import pandas

_MTEB = Path("mteb/results")  # mteb expects the second one in its results folder
_FILES = ("results.json", "items.npz", "details.jsonl", "results.md", "results.tex", "page.html")
_REQUIRED = ("task", "subset", "metric", "value", "n", "unit")
_DRIFT = 1e-3  # tolerance for items stored in float32


class Scores(list[Score]):
    """The scores of one model, in order: a list that prints as tables.

    `scores["tatoeba"]` are those of a task, `scores["tatoeba", "mean"]` those of one subset of it, and
    `scores["tatoeba", "mean", "accuracy/mean"]` is one `Score`; a number or a slice works as in any list.

    model     name or folder of the model
    settings  settings of the evaluation, such as prompt, pooling, maximum length and fingerprint; flat

    `evaluate` sets the others:

    suites    requested suites, whose tables are shown first, each with lines on missing scores
    named     requested tasks, which are shown even if a suite has a number of them
    missing   lines on the data that were missing
    """

    def __init__(
        self, scores: Iterable[Score] = (), model: str = "model", settings: Mapping[str, Setting] | None = None
    ) -> None:
        super().__init__(scores)
        self.model, self.settings = model, dict(settings or {})
        self.suites: dict[str, Sequence[str]] = {}
        self.named: tuple[str, ...] = ()
        self.missing: tuple[str, ...] = ()

    @overload
    def __getitem__(self, key: SupportsIndex | tuple[str, str, str]) -> Score: ...
    @overload
    def __getitem__(self, key: slice | str | tuple[str] | tuple[str, str]) -> Scores: ...
    def __getitem__(self, key: Any) -> Any:
        """A score by its number or (task, subset, metric), or those of a slice, of a task, or of (task, subset).

        Raises KeyError for a name that no score has.
        """
        if isinstance(key, slice):
            return Scores(super().__getitem__(key), self.model, self.settings)
        wanted = (key,) if isinstance(key, str) else key
        if not isinstance(wanted, tuple):
            return super().__getitem__(key)
        matching: list[Score] = list(self)
        for part, kind in zip(wanted, ("task", "subset", "metric"), strict=False):
            names = dict.fromkeys(getattr(score, kind) for score in matching)
            if part not in names:
                raise KeyError(f"no score has the {kind} {part!r}; {nearest(str(part), names)}")
            matching = [score for score in matching if getattr(score, kind) == part]
        return matching[0] if len(wanted) == 3 else Scores(matching, self.model, self.settings)

    @property
    def main(self) -> Scores:
        """The scores of the main metrics."""
        metrics = main_metrics(self)
        return Scores((s for s in self if s.metric in metrics[s.task]), self.model, self.settings)

    def grids(self) -> list[Grid]:
        """The tables of each suite, then of each task that was requested or that no suite includes."""
        tables, covered = list[Grid](), set[str]()
        for suite, lines in self.suites.items():
            grid = by_suite({self.model: self}, suite=suite)
            tables.append(replace(grid, notes=(*grid.notes, *(f"missing: {line}" for line in lines))))
            columns = [column for column in SUITES[suite].columns if not column.lacking(by_key(self))]
            covered |= {key[0] for column in columns for key in column.keys}
        tasks = dict.fromkeys(score.task for score in self)
        return tables + [by_language(self, task=task) for task in tasks if task in self.named or task not in covered]

    def __str__(self) -> str:
        """The tables as text, with the lines on missing data."""
        return to_text(self.grids(), *(f"missing: {line}" for line in self.missing))

    def _repr_html_(self) -> str:
        """The tables for a notebook."""
        return tables_html(Tables(self.grids()))

    def to_frame(self) -> pandas.DataFrame:
        """A pandas DataFrame with one row for each score; values are not scaled."""
        names = ("task", "subset", "metric", "value", "n", "unit", "lower_is_better", "main")
        records = [{name: getattr(score, name) for name in names} | {"average": bool(score.over)} for score in self]
        return data_frame(records, [*names, "average"])

    @check_arguments()
    def save(self, folder: str | Path, *, before: Sequence[Scores] = (), seen: Collection[str] = ()) -> None:
        """Write everything into a folder: `results.json` and its neighbours, `results.md`, `results.tex`, `mteb/` and
        `page.html`.

        The page shows these scores after those `before`; `seen` are the languages of training, for the page. Raises
        `OutputError` for a folder that cannot be written, and as `write_results` does.
        """
        from isoglot.evaluation.mteb import write_mteb
        from isoglot.report.page import write_page

        folder = Path(folder)
        check_folder(folder)
        with exclusive(folder):
            # Remove those of an earlier model first, so that a process killed below does not leave them next to new
            # scores.
            write_mteb(folder / _MTEB, Scores((), self.model, self.settings))
            write_results(folder, self)
            save_tables(folder / "results", self.grids())
            write_mteb(folder / _MTEB, self)
            write_page(folder / "page.html", [*before, self], seen=seen)


def data_frame(records: list[Any], columns: Sequence[str]) -> pandas.DataFrame:
    """A pandas DataFrame of records. Raises `MissingExtraError` without pandas."""
    with naming_extras():
        import pandas
    return pandas.DataFrame.from_records(records, columns=columns)


def check_folder(folder: Path, *, inputs: Iterable[str | Path | None] = ()) -> None:
    """Raise `OutputError`, before any work, unless `Scores.save` can write this folder."""
    check_output(folder, folder=True)
    inputs = list(inputs)
    for name in _FILES:
        check_output(folder / name, inputs=inputs)
    read_record(folder / "results.json", ("model", "scores"))


def _check_statistic(statistic: str) -> str:
    if statistic not in STATISTICS:
        raise ValueError(f"must be one of {', '.join(STATISTICS)}")
    return statistic


_STRICT = ConfigDict(strict=True, allow_inf_nan=False)
_Int = Annotated[int, Field(ge=-(10**308), le=10**308)]  # that a float can hold


class _Named(BaseModel):
    """What identifies a score."""

    model_config = _STRICT
    task: str
    subset: str
    metric: str


class _Record(_Named):
    """A score in `results.json`."""

    value: float
    n: Annotated[int, Field(ge=0, lt=2**63)]
    over: tuple[str, ...] = ()
    unit: Unit
    lower_is_better: bool = False
    main: bool = False
    item_set: str = ""
    statistic: Annotated[str, AfterValidator(_check_statistic)] = "mean"


class _File(BaseModel):
    """The content of `results.json`."""

    model_config = _STRICT
    model: str
    scores: list[_Record]
    settings: dict[str, str | bool | _Int | float | None] = {}


class _Table(_Named):
    """A line of `details.jsonl`."""

    kind: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | _Int | float, ...], ...]

    @model_validator(mode="after")
    def _is_rectangular(self) -> _Table:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row does not have {len(self.columns)} cells")
        return self


def write_results(folder: Path, scores: Scores) -> None:
    """Write `results.json`, `items.npz` and `details.jsonl`, each file atomically and `results.json` last.

    Files of an earlier evaluation that have no successor are removed. Raises `EvaluationError` when two scores have
    the same task, subset and metric, and `ValueError` for a number that JSON cannot hold, such as NaN, before anything
    is written.
    """
    names = Counter(make_key(score) for score in scores)
    if twice := [name for name, count in names.items() if count > 1]:
        raise EvaluationError(f"{folder}: duplicate score {' '.join(twice[0])!r}; list each task once")
    head = {"model": str(scores.model)} | ({"settings": dict(scores.settings)} if scores.settings else {})
    start = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    body = ",\n".join(f"  {_json(_record(score))}" for score in scores)
    details = [
        _json({"task": score.task, "subset": score.subset, "metric": score.metric, **asdict(detail)}) + "\n"
        for score in scores
        for detail in score.details
    ]
    items: dict[str, Any] = {
        "/".join(quote(part, safe="") for part in make_key(score)): _compact(score)
        for score in scores
        if score.items is not None
    }
    for name, content in (("details.jsonl", details), ("items.npz", items)):
        if not content:
            (folder / name).unlink(missing_ok=True)
    if details:
        with atomic_write(folder / "details.jsonl") as file:
            file.writelines(details)
    if items:
        with atomic_write(folder / "items.npz", binary=True) as file:
            np.savez_compressed(file, **items)  # with a constant date
    with atomic_write(folder / "results.json") as file:
        file.write(f'{start}, "scores": [\n{body}\n]}}\n')


def list_files(path: Path) -> list[Path]:
    """The files that `read_results` reads for this folder or file."""
    folder = path if path.is_dir() else path.parent
    file = path / "results.json" if path.is_dir() else path
    return [file, folder / "items.npz", folder / "details.jsonl"] if file.name == "results.json" else [file]


def read_results(path: str | Path) -> Scores:
    """Read a folder of results, or a `results.json`.

    Items and details are filled in where their files exist. Raises `EvaluationError` with the file and the place in
    it, also for items that do not give the scores next to them.
    """
    file, *neighbours = list_files(Path(path))
    if file.exists() and not file.is_file():  # a device may have no end
        raise EvaluationError(f"{file}: is not a regular file; pass a folder of results")
    try:
        content = _File.model_validate_json(file.read_bytes())
    except OSError as error:
        raise EvaluationError(f"{file}: cannot be read: {error.strerror}; pass a folder of results") from error
    except ValidationError as error:
        line, problem = _first_problem(error)
        raise EvaluationError(f"{file}{line}: {problem}; pass a file written by `isoglot evaluate`") from error
    scores = tuple(Score(**dict(record)) for record in content.scores)
    _require_a_tree(scores, file)
    if neighbours:
        scores = _add_neighbours(scores, *neighbours)
    return Scores(scores, content.model, content.settings)


def _require_a_tree(scores: Sequence[Score], file: Path) -> None:
    """Reject duplicate scores, and averages that contain each other."""
    parts: dict[Key, list[Key]] = {}
    for score in scores:
        if (name := make_key(score)) in parts:
            raise EvaluationError(f"{file}: duplicate score {' '.join(name)}; evaluate again")
        parts[name] = [part for part in list_parts(score) if part != name]
    try:
        TopologicalSorter(parts).prepare()
    except CycleError as error:
        (task, _, metric), *_ = cycle = error.args[1]
        problem = f"averages over each other: {', '.join(subset for _, subset, _ in cycle)}"
        raise EvaluationError(f"{file}: {task} {metric}: {problem}; evaluate again") from None


def _first_problem(error: ValidationError) -> tuple[str, str]:
    """The line of a text that is not JSON (`:3`), and the first invalid value, as `scores[3].value`, with its fault."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        fault, _, place = first["ctx"]["error"].partition(" at line ")
        return f":{place.partition(' ')[0]}", f"not JSON ({fault})"
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    fault = "missing" if first["type"] == "missing" else f"{first['input']!r:.60}: {first['msg']}"
    return "", f"{where} is {fault}".lstrip()


def _add_neighbours(scores: tuple[Score, ...], file: Path, of_details: Path) -> tuple[Score, ...]:
    items, details = _read_items(file), _read_details(of_details)
    filled = []
    for score in scores:
        table = items.get(make_key(score))
        columns = {"mean": (), "spearman": (2,), "pearson": (2,)}.get(score.statistic, (3,))
        if table is not None and (
            table.shape != (score.n, *columns)
            or (score.n and not abs(STATISTICS[score.statistic](table) - score.value) <= _DRIFT)
        ):
            problem = f"the items of {' '.join(make_key(score))} do not match its score in results.json; evaluate again"
            raise EvaluationError(f"{file}: {problem}")
        filled.append(replace(score, items=table, details=details.get(make_key(score), ())))
    return tuple(filled)


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=float)


def _record(score: Score) -> dict[str, Any]:
    """The fields of a score, without those that have their default; a statistic belongs to items."""
    record = {name: getattr(score, name) for name in _Record.model_fields}
    record |= {"value": float(score.value), "n": int(score.n)}
    unused = () if score.items is not None and score.statistic != "mean" else ("statistic",)
    return {name: value for name, value in record.items() if name not in unused and (value or name in _REQUIRED)}


def _compact(score: Score) -> NDArray[Any]:
    """Items in float32, or in one byte each where all are 0 or 1."""
    table = np.asarray(score.items, np.float32)
    if not np.isfinite(table).all():
        raise ValueError(f"{' '.join(make_key(score))}: an item is NaN or infinite")
    return table.astype(np.uint8) if np.isin(table, (0, 1)).all() else table


def _read_items(path: Path) -> dict[Key, NDArray[np.float32]]:
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = {key: [unquote(part) for part in key.split("/")] for key in archive.files}
            return {(a, b, c): np.asarray(archive[key], np.float32) for key, (a, b, c) in names.items()}
    except Exception as error:  # a damaged archive can raise any exception, MemoryError included
        raise EvaluationError(f"{path}: cannot be read as items ({error}); remove it, or evaluate again") from error


def _read_details(path: Path) -> dict[Key, tuple[Detail, ...]]:
    details: dict[Key, tuple[Detail, ...]] = {}
    if not path.exists():
        return details
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise EvaluationError(f"{path}: cannot be read as details ({error}); remove it, or evaluate again") from error
    for number, line in enumerate(lines, 1):
        if line:
            try:
                table = _Table.model_validate_json(line)
            except ValidationError as error:
                problem = f"not a table of a score ({_first_problem(error)[1]})"
                raise EvaluationError(f"{path}:{number}: {problem}; evaluate again") from error
            name = (table.task, table.subset, table.metric)
            details[name] = (*details.get(name, ()), Detail(table.kind, table.columns, table.rows))
    return details
