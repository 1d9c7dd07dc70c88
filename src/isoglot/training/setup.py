"""What a run needs before its first step: the streams, and a record of what is run."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch

from isoglot.data.batch import Batch
from isoglot.data.batching import Batches, Position
from isoglot.data.corpus import build_table
from isoglot.data.files import atomic_write, check_json, check_output, exclusive
from isoglot.data.table import GroupTable
from isoglot.encoders import layout
from isoglot.encoders.base import Encoder
from isoglot.environment import cache_folder
from isoglot.errors import CheckpointError, OutputError, RecipeError
from isoglot.objectives import OBJECTIVES, Objective, Sum
from isoglot.objectives import build as build_objective
from isoglot.settings import ObjectiveSettings, Recipe, StageSettings
from isoglot.training import checkpoint, ranks
from isoglot.training.teacher import open_teacher, teacher_columns

Words = Callable[[str], None]


class Stream:
    """Batches and the objectives that read them; the next batch is made while the current one is trained on."""

    def __init__(self, name: str, batches: Batches, objective: Sum) -> None:
        self.name, self.batches, self.objective = name, batches, objective
        self.position = batches.position  # of the next batch to be trained on
        self._maker = ThreadPoolExecutor(1, thread_name_prefix=f"batches-{name}")
        self._ahead: Future[tuple[Batch, Position]] | None = None

    def next(self) -> Batch:
        """The next batch."""
        made = self._ahead or self._maker.submit(self._make)
        batch, self.position = made.result()
        self._ahead = self._maker.submit(self._make)
        return batch

    def close(self) -> None:
        """Stop making batches."""
        self._maker.shutdown(cancel_futures=True)

    def _make(self) -> tuple[Batch, Position]:
        return self.batches.next(), self.batches.position


def make_streams(
    recipe: Recipe, stage: StageSettings, encoder: Encoder, *, seed: int, positions: Sequence[Position], watch: Words
) -> list[Stream]:
    """The streams of a stage, each from its position, or from the beginning where there is none."""
    streams = []
    for number, settings in enumerate(stage.streams):
        corpus = recipe.corpus(settings)
        weights = corpus.weights()
        with ranks.first_alone():
            table = build_table(
                corpus, encoder.tokenize, fingerprint=encoder.fingerprint, cache=cache_folder() / "tables", report=watch
            )
        teacher = open_teacher(recipe, settings.teacher)
        sizes = _sizes(table, teacher)
        terms = [
            (
                o.weight,
                _objective(
                    recipe, o, encoder, table, sizes=sizes, seed=seed, where=f"streams.{settings.name}.objectives.{i}"
                ),
            )
            for i, o in enumerate(settings.objectives)
        ]
        with ranks.first_alone():  # after the objectives, whose mistakes are found at once
            columns = teacher_columns(teacher, settings.teacher, corpus, table, watch=watch)
        position = positions[number] if number < len(positions) else None
        batches = Batches(
            table,
            settings.batching,
            seed=seed,
            weights=weights,
            position=position,
            columns=columns,
            rank=ranks.rank(),
            world=ranks.world(),
        )
        streams.append(Stream(settings.name, batches, Sum(*terms)))
    return streams


def _sizes(table: GroupTable, teacher: Encoder | None) -> dict[str, int]:
    """One more than the greatest value of each integer column, and how wide the teacher's vectors are."""
    integers = {name: column for name, column in table.extras.items() if column.dtype.kind == "i"}
    sizes = {name: int(column.max()) + 1 for name, column in integers.items()}
    return sizes | ({"teacher": teacher.dim} if teacher else {})


def _objective(
    recipe: Recipe,
    settings: ObjectiveSettings,
    encoder: Encoder,
    table: GroupTable,
    *,
    sizes: dict[str, int],
    seed: int,
    where: str,
) -> Objective:
    if OBJECTIVES.get(settings.name, Objective).copies != len(encoder.exports()):
        raise RecipeError(f'{where}: {settings.name} and encoder.kind = "{recipe.encoder.kind}" do not go together')
    return build_objective(
        settings.name,
        settings.options,
        encoder,
        languages=table.languages,
        sizes=sizes,
        seed=seed,
        resolve=recipe.resolve,
        where=where,
    )


@contextmanager
def alone(recipe: Recipe, output: Path, models: Sequence[Path]) -> Iterator[None]:
    """Hold the folder of a run, which leaves its models in the folders `models`, for this run alone.

    Removes what a run that was killed has left there and, before any work, raises OutputError for a folder that another
    run holds, and for anything in the place of what will be written that is an input or that no run wrote. Rank 0 looks
    for all.
    """
    with ExitStack() as held:
        problem = ""
        if ranks.rank() == 0:
            try:
                check_output(output, folder=True)
                held.enter_context(exclusive(output))
                _must_be_writable(recipe, output, models)
            except OutputError as error:
                problem = str(error)
        if problem := ranks.from_first(problem):
            raise OutputError(problem)
        yield


def _must_be_writable(recipe: Recipe, output: Path, models: Sequence[Path]) -> None:
    # A run may lie in a folder of data, such as the current one, but not in a model that it starts from.
    inputs = [path for path in inputs_of(recipe) if not path.is_dir() or layout.is_model(path)]
    check_json(output / "run.json", ("recipe", "seed"))
    for name in ("run.json", "log.jsonl"):
        check_output(output / name, inputs=inputs)
    check_output(output / "checkpoints", inputs=inputs, folder=True)
    checkpoint.clean(output / "checkpoints")
    for folder in models:
        check_output(folder, inputs=inputs, folder=True, whole=True)
        if not (output / "run.json").exists() and folder.exists() and any(folder.iterdir()):
            raise OutputError(f"{folder}: is not the model of a run in {output}; choose another output")
        with exclusive(folder) if folder.parent.is_dir() else ExitStack():
            layout.prepare(folder)


def inputs_of(recipe: Recipe) -> list[Path]:
    """Every file and folder that a recipe names, whether it exists or not."""
    names: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                collect(inner)
        elif isinstance(value, str) and value:
            names.append(value)

    collect(recipe.model_dump(mode="json", exclude={"folder", "data", "description"}))
    return [recipe.resolve(name) for name in names if "\0" not in name]


def begun(folder: Path) -> bool:
    """Whether a run in the folder has made a step; one that failed before it may be begun anew."""
    log = folder / "log.jsonl"
    return (log.exists() and log.stat().st_size > 0) or any((folder / "checkpoints").glob("step-*"))


def write_run(recipe: Recipe, folder: Path, *, seed: int, resume: bool) -> None:
    """Record what is run; on resuming, refuse a recipe, a seed or a number of ranks that is not the run's."""
    import isoglot

    path = folder / "run.json"
    streams = [stream for stage in recipe.stages for stream in stage.streams]
    ours = {
        "recipe": recipe.model_dump(mode="json", exclude={"folder", "data"}),
        "seed": seed,
        "number of ranks": ranks.world(),
        "text": [recipe.corpus(stream).digest() for stream in streams],
    }
    if resume and begun(folder):
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(theirs, dict):
                raise ValueError("not a JSON object")
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path}: damaged ({error}); without it the run cannot be resumed") from error
        changed = [key for key in ours if theirs.get(key) != ours[key]]
        if changed:
            raise CheckpointError(
                f"{path}: the run there has another {' and '.join(changed)}; resume with the same, or start anew"
            )
        return
    versions = {"isoglot": isoglot.__version__, "torch": torch.__version__, "python": platform.python_version()}
    with atomic_write(path) as stream:
        json.dump({**ours, "versions": versions}, stream, indent=1)
