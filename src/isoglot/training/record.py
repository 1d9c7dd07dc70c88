"""The folder of a run, which it holds alone, and its record there, `run.json`: what identifies the run, so that only
the same one is continued, and how it was made.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from isoglot.core import __version__, environment
from isoglot.core.errors import CheckpointError, IsoglotError, OutputError
from isoglot.core.plugins import source_of, text_of
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
from isoglot.objectives import OBJECTIVES
from isoglot.training import checkpoint, ranks
from isoglot.training.plan import Plan
from isoglot.training.settings import ObjectiveSettings, Recipe
from isoglot.training.trackers import flatten

ARGUMENTS = {  # of `train`, by the settings in the recipe of a call that have other names
    "size": "batch_size", "every": "evaluate_every", "checkpoint_every": "evaluate_every", "objectives": "objective",
    "text": "data", "evaluation": "dev", "encoder": "model",
}  # fmt: skip


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


def record_of(plan: Plan) -> dict[str, Any]:
    """Everything that changes the result of a run besides the text of its streams, as JSON."""
    return plan.recipe.model_dump(mode="json", exclude={"folder", "data"}) | digests_of(plan)


def digests_of(plan: Plan, *, installed: bool = False) -> dict[str, dict[str, str]]:
    """Digests of what the recipe names or holds besides the text of its streams; of what is not there, none.

    models      each model that it begins from or learns from, if that is a folder or `installed` is set
    files       see `_list_files`
    objectives  those that are held, or defined in a notebook
    dev         the data of each evaluation
    """
    recipe, parts = plan.recipe, _list_models(plan.recipe)
    models = {part.model: recipe.local(part.model) for part in parts if part.held is None}
    objectives = [one for stream in recipe.streams for one in stream.objectives]
    every = {
        "models": {name: digest_of(path) for name, path in models.items() if installed or Path(path).is_dir()}
        | {part.model: _digest_of_model(part.held) for part in parts if part.held is not None},
        "files": {str(path): content_digest(path) for path in _list_files(recipe)},
        "objectives": {
            str(place): digest for place, one in enumerate(objectives) if (digest := _digest_of_objective(one))
        },
        "dev": {f"{choice.name} {dev.where}": dev.digest() for choice in plan.choices for dev in choice.devs},
    }
    return {name: digests for name, digests in every.items() if digests}


def _list_files(recipe: Recipe) -> list[Path]:
    """A tokenizer, files that objectives read, and the modules of objectives that are plug-ins."""
    objectives = [one for stream in recipe.streams for one in stream.objectives]
    values = [getattr(recipe.encoder, "tokenizer", ""), *(v for one in objectives for v in one.options.values())]
    files = [recipe.resolve(value) for value in values if isinstance(value, str) and value and "\0" not in value]
    files += [code for one in objectives if one.name in OBJECTIVES and (code := source_of(OBJECTIVES[one.name]))]
    return [path for path in files if path.is_file()]


def _list_models(recipe: Recipe) -> list[Any]:
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


def _digest_of_objective(settings: ObjectiveSettings) -> str:
    """Changes with settings, weights and code of an objective in memory, with the code of one that is named and has no
    file; empty for others.
    """
    objective = settings.held
    kind = OBJECTIVES[settings.name] if objective is None else type(objective)
    checksum = hashlib.sha256((code := text_of(kind)).encode())
    if objective is None:
        return checksum.hexdigest() if code and not source_of(kind) else ""
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


def files_of(plan: Plan) -> dict[str, str]:
    """Digests of the files that are read for the text, its filters, the encoder, objectives and dev scores.

    Of a call, whose text is in memory, none.
    """
    recipe = plan.recipe
    if recipe.encoder.held is not None:
        return {}
    with collecting() as paths:
        for dev in (dev for choice in plan.choices for dev in choice.devs):
            dev.task.subsets(dev.data, languages=dev.languages)
    paths |= {path for corpus in plan.text for path in corpus.files()}
    folders = [recipe.resolve(part.model) for part in _list_models(recipe)]
    paths |= {*_list_files(recipe), *(path for folder in folders for path in folder.rglob("*") if path.is_file())}
    return name_files(paths, recipe.folder, recipe.data.expanduser())


def inputs_of(recipe: Recipe) -> list[Path]:
    """Every file and folder that a recipe names, whether it exists or not; of a call the folders of its models."""
    if recipe.encoder.held is not None:
        models = [part.held for part in _list_models(recipe)]
        inner = [part for model in models for part in (model.modules() if isinstance(model, Encoder) else [model])]
        return [Path(str(part.origin)) for part in inner if getattr(part, "origin", "")]
    written = recipe.model_dump(mode="json", exclude={"folder", "data", "description"})
    texts = [value for _, value in flatten(written) if isinstance(value, str)]
    names = [*texts, *(one.place for stream in recipe.streams for one in stream.sources)]
    return [recipe.resolve(name) for name in names if name and "\0" not in name]


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
    invocation = {"command": environment.command(), "device": str(device), "threads": torch.get_num_threads()}
    return {"versions": versions, **invocation, "files": dict(recipe_files)}


def name_files(files: Iterable[Path], folder: Path, data: Path) -> dict[str, str]:
    """The digests of files, by their paths as a recipe in `folder` writes them."""
    places, named = ((BUNDLED, "bundled:"), (data, "data:"), (folder, "")), {}
    for path in sorted(set(files)):
        inside = [f"{mark}{path.relative_to(at).as_posix()}" for at, mark in places if path.is_relative_to(at)]
        named[inside[0] if inside else str(path)] = content_digest(path)
    return named


@contextmanager
def hold_folder(
    output: Path,
    plan: Plan,
    record: Mapping[str, Any],
    *,
    seed: int,
    device: torch.device,
    resume: bool,
) -> Iterator[Outcome | None]:
    """Hold the folder of a run for this run alone, with its record there; gives the outcome of a finished run.

    record  what `record_of` makes of the plan

    Removes what a killed run has left there. Before any work, raises OutputError for a folder that another run holds,
    and for files in the place of its output that are inputs or that no run wrote; CheckpointError for another run.
    """
    finished: Outcome | None = None
    problem: tuple[type[IsoglotError], str] | None = None
    with ExitStack() as stack:
        if ranks.rank() == 0:
            try:
                check_output(output, folder=True)
                stack.enter_context(exclusive(output))
                _clear_outputs(output, plan)
                finished = _write_or_compare(output, plan, record, seed=seed, device=device, resume=resume)
            except (CheckpointError, OutputError) as error:
                problem = type(error), str(error)
        finished, problem = ranks.from_first((finished, problem))
        if problem is not None:  # raised on every rank, none of which waits for the others then
            kind, message = problem
            raise kind(message)
        yield finished


def _clear_outputs(output: Path, plan: Plan) -> None:
    """Raise OutputError for an output that can't be written, and remove the remains of a killed run."""
    # A run may lie in a folder of data, such as the current one, but not in a model that it starts from.
    inputs = [path for path in inputs_of(plan.recipe) if not path.is_dir() or layout.is_model(path)]
    read_record(output / "run.json", ("recipe", "seed"))
    for name in ("run.json", "log.jsonl", "data.json", "trackers.json"):
        check_output(output / name, inputs=inputs)
    check_output(output / "checkpoints", inputs=inputs, folder=True)
    checkpoint.clean(output / "checkpoints")
    for folder in [choice.folder for choice in plan.choices] or [output / "model"]:
        check_output(folder, inputs=inputs, folder=True, whole=True)
        if not (output / "run.json").exists() and folder.exists() and any(folder.iterdir()):
            raise OutputError(f"{folder}: is not the model of a run in {output}; choose another output")
        with exclusive(folder) if folder.parent.is_dir() else ExitStack():
            layout.prepare(folder)


def _write_or_compare(
    output: Path, plan: Plan, record: Mapping[str, Any], *, seed: int, device: torch.device, resume: bool
) -> Outcome | None:
    """Write the record of the run and its circumstances, or check that the run in the folder is the same."""
    path, log = output / "run.json", output / "log.jsonl"
    text = [corpus.digest() for corpus in plan.text]
    expected = {"recipe": record, "seed": seed, "number of ranks": ranks.world(), "text": text}
    # A run that failed before its first step may be restarted, by any recipe.
    has_progress = (log.exists() and log.stat().st_size > 0) or any((output / "checkpoints").glob("step-*"))
    if not has_progress:
        write_record(path, {**expected, **circumstances(device, files_of(plan))})
        return None
    if not resume:
        raise CheckpointError(f"{output}: already contains a run; pass resume=True to continue it, or another folder")
    recorded = read_record(path)
    if recorded is None:
        raise CheckpointError(f"{path}: is missing; without it the run cannot be resumed")
    if changed := [*dict.fromkeys(_name_setting(place, plan.recipe) for place in differences(expected, recorded))]:
        problem = f"the run there differs in {', '.join(changed[:3])}"
        raise CheckpointError(f"{path}: {problem}; continue with the same settings, or use another folder")
    finished = recorded.get("finished")
    if not isinstance(finished, dict) or {"model", *finished} != {entry.name for entry in fields(Outcome)}:
        return None
    return Outcome(output / "model", **finished) if layout.is_model(output / "model") else None


def _name_setting(place: str, recipe: Recipe) -> str:
    """A place in the record as it was written: the argument of a call, or the setting of a recipe."""
    if recipe.encoder.held is None:
        return place.removeprefix("recipe.").removeprefix("stages.0." if len(recipe.stages) == 1 else "")
    parts = [part.strip() for part in place.split(".") if not part.isdecimal()]
    name = "objectives" if "objectives" in parts else parts[-1]
    return ARGUMENTS.get(name, name)


def finish(output: Path, outcome: Outcome) -> None:
    """Record the end of a run."""
    path, finished = output / "run.json", asdict(outcome) | {"seconds": round(outcome.seconds, 1)}
    del finished["model"]
    write_record(path, (read_record(path) or {}) | {"finished": finished})
