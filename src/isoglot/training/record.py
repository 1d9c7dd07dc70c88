"""The folder of a run, which it holds alone, and its record there, `run.json`: what identifies the run, so that only
the same one is continued, and how it was made.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar, cast

import torch

from isoglot.core import __version__, environment
from isoglot.core.errors import CheckpointError, IsoglotError, OutputError
from isoglot.core.plugins import source_of
from isoglot.data.corpus import Corpus
from isoglot.data.files import (
    BUNDLED,
    check_output,
    collecting,
    content_digest,
    differences,
    exclusive,
    read_record,
    write_record,
)
from isoglot.encoders.base import Encoder, add_tensors
from isoglot.encoders.loading import digest_of
from isoglot.encoders.settings import TowersSettings
from isoglot.model import Model, layout
from isoglot.objectives import OBJECTIVES, Objective
from isoglot.training import checkpoint, ranks
from isoglot.training.best import Choice
from isoglot.training.settings import Recipe

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A finished run: the folder of the model, the best dev score, steps and seconds.

    The score is None without evaluation, and where no score was a finite number.
    """

    model: Path
    best: float | None
    steps: int
    seconds: float
    lower_is_better: bool = False  # of the dev score


def record_of(recipe: Recipe, choices: Sequence[Choice]) -> dict[str, Any]:
    """Everything that changes the result of a run besides the text of its streams, as JSON."""
    return recipe.model_dump(mode="json", exclude={"folder", "data"}) | digests_of(recipe, choices)


def digests_of(recipe: Recipe, choices: Sequence[Choice], *, installed: bool = False) -> dict[str, dict[str, str]]:
    """Digests of what the recipe names or holds besides the text of its streams; of what is not there, none.

    models      each model that it begins from or learns from, if that is a folder or `installed` is set
    files       a tokenizer, files that objectives read, and the modules of objectives that are plug-ins
    objectives  those that are held
    dev         the data of each evaluation
    """
    parts, objectives = _models(recipe), [one for stream in recipe.streams for one in stream.objectives]
    models = {part.model: recipe.local(part.model) for part in parts if part.held is None}
    values = [getattr(recipe.encoder, "tokenizer", ""), *(v for one in objectives for v in one.options.values())]
    files = [recipe.resolve(value) for value in values if isinstance(value, str) and value and "\0" not in value]
    files += [code for one in objectives if one.name in OBJECTIVES and (code := source_of(OBJECTIVES[one.name]))]
    every = {
        "models": {name: digest_of(path) for name, path in models.items() if installed or Path(path).is_dir()}
        | {part.model: _digest_of_model(part.held) for part in parts if part.held is not None},
        "files": {str(path): content_digest(path) for path in files if path.is_file()},
        "objectives": {
            str(place): _digest_of_objective(one.held) for place, one in enumerate(objectives) if one.held is not None
        },
        "dev": {f"{choice.name} {dev.where}": dev.digest() for choice in choices for dev in choice.devs},
    }
    return {name: digests for name, digests in every.items() if digests}


def _models(recipe: Recipe) -> list[Any]:
    """The settings of the models that a recipe begins from and learns from."""
    towers = recipe.encoder.towers if isinstance(recipe.encoder, TowersSettings) else (recipe.encoder,)
    return [part for part in (*towers, *(stream.teacher for stream in recipe.streams)) if part and part.model]


def _digest_of_model(model: Model) -> str:
    """Changes with a model in memory, with what of it is trained, and with its dropout."""
    if not isinstance(model, Encoder):
        return model.identity()
    frozen = [name for name, weight in model.named_parameters() if not weight.requires_grad]
    rates = sorted({part.p for part in model.modules() if isinstance(part, torch.nn.Dropout)})
    return hashlib.sha256(f"{model.identity()} {frozen} {rates}".encode()).hexdigest()


def _digest_of_objective(objective: Objective) -> str:
    """Changes with the settings and weights of an objective in memory."""
    checksum = hashlib.sha256()
    for module in objective.modules():
        plain = {name: value for name, value in vars(module).items() if _is_plain(value)}
        checksum.update(repr(sorted(plain.items())).encode())
    add_tensors(checksum, objective.state_dict())
    return checksum.hexdigest()


def _is_plain(value: Any) -> bool:
    """Whether the text of a value is the same in every process."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | None)


def files_of(recipe: Recipe, corpora: Sequence[Sequence[Corpus]], choices: Sequence[Choice]) -> dict[str, str]:
    """Digests of the files that are read for the text, its filters, the encoder, objectives and dev scores.

    Of a call, whose text is in memory, none.
    """
    if recipe.encoder.held is not None:
        return {}
    named = digests_of(recipe, choices)
    with collecting() as paths:
        for dev in (dev for choice in choices for dev in choice.devs):
            dev.task.subsets(dev.data, languages=dev.languages)
    paths |= {path for corpus in chain(*corpora) for path in corpus.files()}
    paths |= {Path(path) for path in named.get("files", {})}
    folders = [recipe.resolve(model) for model in named.get("models", {})]
    paths |= {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return name_files(paths, recipe.folder, recipe.data.expanduser())


def inputs_of(recipe: Recipe) -> list[Path]:
    """Every file and folder that a recipe names, whether it exists or not; of a call the folders of its models."""
    if recipe.encoder.held is not None:
        models = [part.held for part in _models(recipe)]
        inner = [part for model in models for part in (model.modules() if isinstance(model, Encoder) else [model])]
        return [Path(str(part.origin)) for part in inner if getattr(part, "origin", "")]
    written = recipe.model_dump(mode="json", exclude={"folder", "data", "description"})
    names = [*_texts_in(written), *(one.place for stream in recipe.streams for one in stream.sources)]
    return [recipe.resolve(name) for name in names if name and "\0" not in name]


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(inner)


def circumstances(device: object, recipe_files: Mapping[str, str]) -> dict[str, Any]:
    """What a run records besides its settings: versions, command, device, threads, and digests of files."""
    versions = {"isoglot": __version__, "python": platform.python_version(), "torch": torch.__version__}
    try:
        needed = metadata.requires("isoglot") or []
    except metadata.PackageNotFoundError:  # not installed, but in PYTHONPATH
        needed = []
    for name in sorted({re.split(r"[^\w.-]", line, maxsplit=1)[0].lower() for line in needed} - versions.keys()):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # of an extra
    called = {"command": environment.command(), "device": str(device), "threads": torch.get_num_threads()}
    return {"versions": versions, **called, "files": dict(recipe_files)}


def name_files(files: Iterable[Path], folder: Path, data: Path) -> dict[str, str]:
    """The digests of files, by their paths as a recipe in `folder` writes them."""
    places, named = ((BUNDLED, "bundled:"), (data, "data:"), (folder, "")), {}
    for path in sorted(set(files)):
        inside = [f"{mark}{path.relative_to(at).as_posix()}" for at, mark in places if path.is_relative_to(at)]
        named[inside[0] if inside else str(path)] = content_digest(path)
    return named


def do_on_first(work: Callable[[], T]) -> T:
    """What rank 0 gets from a piece of work that it does for all; its error is raised on every rank."""
    result: T | None = None
    problem: tuple[type[IsoglotError], str] | None = None
    if ranks.rank() == 0:
        try:
            result = work()
        except (CheckpointError, OutputError) as error:
            problem = type(error), str(error)
    if problem := ranks.from_first(problem):
        kind, message = problem
        raise kind(message)
    return cast(T, ranks.from_first(result))


@contextmanager
def reserve(inputs: Sequence[Path], output: Path, models: Sequence[Path]) -> Iterator[None]:
    """Hold the folder of a run, which leaves its models in the folders `models`, for this run alone.

    Removes what a killed run has left there and, before any work, raises OutputError for a folder that another run
    holds, and for files in the place of its output that are inputs or that no run wrote.
    """
    with ExitStack() as stack:

        def hold() -> None:
            check_output(output, folder=True)
            stack.enter_context(exclusive(output))
            _must_be_writable(inputs, output, models)

        do_on_first(hold)
        yield


def _must_be_writable(inputs: Sequence[Path], output: Path, models: Sequence[Path]) -> None:
    # A run may lie in a folder of data, such as the current one, but not in a model that it starts from.
    inputs = [path for path in inputs if not path.is_dir() or layout.is_model(path)]
    read_record(output / "run.json", ("recipe", "seed"))
    for name in ("run.json", "log.jsonl", "data.json", "trackers.json"):
        check_output(output / name, inputs=inputs)
    check_output(output / "checkpoints", inputs=inputs, folder=True)
    checkpoint.clean(output / "checkpoints")
    for folder in models:
        check_output(folder, inputs=inputs, folder=True, whole=True)
        if not (output / "run.json").exists() and folder.exists() and any(folder.iterdir()):
            raise OutputError(f"{folder}: is not the model of a run in {output}; choose another output")
        with exclusive(folder) if folder.parent.is_dir() else ExitStack():
            layout.prepare(folder)


def begin(
    output: Path,
    record: Mapping[str, Any],
    recipe: Recipe,
    corpora: Sequence[Sequence[Corpus]],
    choices: Sequence[Choice],
    *,
    seed: int,
    device: torch.device,
    resume: bool,
) -> dict[str, Any] | None:
    """Write the record of the run and its circumstances, or check that the run in the folder is the same; if it is
    finished, return its outcome.
    """
    path, log = output / "run.json", output / "log.jsonl"
    text = [corpus.digest() for corpus in chain(*corpora)]
    ours = {"recipe": record, "seed": seed, "number of ranks": ranks.world(), "text": text}
    # A run that failed before its first step may be restarted, by any recipe.
    has_progress = (log.exists() and log.stat().st_size > 0) or any((output / "checkpoints").glob("step-*"))
    if not has_progress:
        write_record(path, {**ours, **circumstances(device, files_of(recipe, corpora, choices))})
        return None
    if not resume:
        raise CheckpointError(f"{output}: already contains a run; pass resume=True to continue it, or another folder")
    theirs = read_record(path)
    if theirs is None:
        raise CheckpointError(f"{path}: is missing; without it the run cannot be resumed")
    if changed := differences(ours, theirs):
        raise CheckpointError(
            f"{path}: the run there differs in {', '.join(changed[:3])}; continue with the same settings, or use "
            "another folder"
        )
    finished = theirs.get("finished")
    whole = isinstance(finished, dict) and {"model", *finished} == {entry.name for entry in fields(Outcome)}
    return finished if whole and layout.is_model(output / "model") else None


def finish(output: Path, outcome: Outcome) -> None:
    """Record the end of a run."""
    path, finished = output / "run.json", asdict(outcome) | {"seconds": round(outcome.seconds, 1)}
    del finished["model"]
    write_record(path, (read_record(path) or {}) | {"finished": finished})
