"""`isoglot.train`: turns the arguments of a call into a recipe, or takes one, runs it, and returns the best encoder."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from numbers import Real
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError

from isoglot.core import environment
from isoglot.core.arguments import NonNegativeInt, PositiveInt, check_arguments
from isoglot.core.errors import RecipeError, shown
from isoglot.core.progress import Progress, is_interactive
from isoglot.data.batching import Batching
from isoglot.data.corpus import MemorySource
from isoglot.data.files import check_output, read_record, write_record
from isoglot.data.groups import Group, Languages, digest_of, groups_of, short_row
from isoglot.encoders import StaticEncoder, TransformerEncoder, load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve, settle
from isoglot.encoders.settings import AdapterSettings
from isoglot.encoders.twins import Twins
from isoglot.evaluation.base import Task
from isoglot.evaluation.run import data_digest
from isoglot.evaluation.run import plan as tasks_of
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.model import Model, packaged
from isoglot.objectives import Objective
from isoglot.objectives import check as check_objective
from isoglot.training import ranks
from isoglot.training.best import Dev
from isoglot.training.loop import Outcome, run
from isoglot.training.progress import Display, Report, Status
from isoglot.training.recipe import load as load_recipe
from isoglot.training.recipes import choices_of, copies_of
from isoglot.training.settings import (
    EvaluationSettings,
    ObjectiveSettings,
    OptimizerSettings,
    Recipe,
    SourceSettings,
    StageSettings,
    StreamSettings,
    TeacherSettings,
)

EVALUATIONS = 10  # dev evaluations per run by default; without a dev score, checkpoints per run
RATES = {True: 0.02, False: 5e-5}  # learning rates of static encoders and of others
ADAPTER_RATE = 5e-4
RESTRICTION = ("adapter", "train_layers", "freeze_embeddings")  # what a call trains of a transformer
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16", "tf32": "tf32"}  # as recipes call them


@check_arguments(
    learning_rate="pass lr",
    warmup_steps="pass warmup, a number of steps",
    num_train_epochs="pass epochs",
    num_epochs="pass epochs",
    max_steps="pass steps",
    per_device_train_batch_size="pass batch_size",
    loss="pass objective",
    train_dataset="pass data",
    eval_dataset="pass dev",
    evaluator="pass dev",
    eval_steps="pass evaluate_every",
    output_dir="pass output",
    resume_from_checkpoint="pass output; the same call resumes",
)
def train(
    model: str | Path | Model | Recipe,
    data: Any = None,
    *,
    dev: Any = None,
    objective: Any = "multi_positive",
    epochs: float | None = None,
    steps: int | None = None,
    batch_size: int = 64,
    lr: float | None = None,
    warmup: int = 0,
    precision: str = "auto",
    adapter: AdapterSettings | Mapping[str, Any] | None = None,
    train_layers: str | None = None,
    freeze_embeddings: bool = False,
    views: int | None = None,
    teacher: str | Path | Model | None = None,
    languages: Languages = None,
    dev_data: str | Path | None = None,
    evaluate_every: PositiveInt | None = None,
    patience: NonNegativeInt = 0,
    output: str | Path | None = None,
    resume: bool = True,
    seed: int | None = None,
    device: torch.device | str = "auto",
    overrides: Sequence[str] = (),
    track: str | Sequence[str] = (),
    show_progress_bar: bool | None = None,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Encoder:
    """Train an encoder on data in memory, or by a recipe, and return the best one, in evaluation mode on its device.

        better = isoglot.train(model, [("Good morning!", "Guten Morgen!"), ...], dev=held_out)
        better = isoglot.train("mpcl.toml", output="run")

    model        an encoder, or what `isoglot.load` opens; a copy of it is trained, it is not changed. Without `data`, a
                 recipe: the path of a TOML file, the name of a packaged recipe, or a `Recipe`
    data         sentences that mean the same: a list of pairs or longer tuples of strings, `Group`s, a pandas or polars
                 frame, a `datasets.Dataset`, a dict of columns, or the iterator of a reader; held in memory. Exact
                 repetitions are dropped
    languages    of the sentences, see `isoglot.data.groups_of`
    dev          what chooses the best encoder: held-out data of the same kinds (accuracy of finding translations among
                 them), or tasks or suites, by name or as objects, with their data in `dev_data` ($ISOGLOT_DATA). None:
                 the last encoder is returned
    objective    a name in `isoglot.objectives.OBJECTIVES`; a name with options, as in a recipe: {"name":
                 "soft_contrastive", "priority": ["en", "de"]}; an `Objective`, which is copied; or a list of these,
                 each alone or as (weight, objective)
    epochs, steps  length, one epoch by default
    batch_size   groups in a batch
    lr, warmup   peak learning rate (5e-5; 5e-4 for an adapter; 0.02 for static encoders) after `warmup` steps, then
                 linearly to zero
    precision    float32, bfloat16, tf32 (on CUDA), or auto: bfloat16 where the hardware multiplies it
    adapter      train only low-rank matrices (LoRA) in the layers of a transformer: {"rank": 16}, and possibly alpha
                 and targets; the returned model has them merged, and with `output` they are also in `model/adapter/`
    train_layers train only these layers of a transformer, numbered from 1: "6-12"; with `adapter`, where the adapter is
    freeze_embeddings  do not train the word embeddings of a transformer
    views        how often each sentence is in the batch, under different dropout masks; by default 2 for sentences
                 without translations (SimCSE), else 1
    teacher      an encoder whose vectors the objective reads, such as those of `distillation`
    evaluate_every  steps between dev evaluations (or, without `dev`, checkpoints); by default a tenth of the run
    patience     stop after this many evaluations without a better one; 0: never
    output       a folder that keeps the run: `model/`, `log.jsonl`, checkpoints. The same call again continues a run
                 that was interrupted, and returns the model of a finished one; the model's name
                 is that of the folder. None: a temporary folder, removed at the end; the name is the recipe's, or
                 MODEL-trained
    resume       False: reject a folder that contains a run
    seed         of batches and dropout; by default 0, or the recipe's
    device       auto: that of the encoder, or of the machine (CUDA, XPU, MPS, CPU)
    overrides    changes to a recipe, such as ["optimizer.lr=1e-4"]; a recipe takes no other settings
    track        trackers that get the numbers of the log: tensorboard, wandb, mlflow; default: TensorBoard if installed
    show_progress_bar  None: on a terminal or in a notebook
    progress     called with (steps done, steps in all) after each step; `report` with messages

    Raises TypeError or ValueError for wrong arguments, RecipeError for a wrong recipe, CorpusError for unusable data,
    CheckpointError for a folder with another run, OutputError for a folder in use.
    """
    given = {name: value for name, value in locals().items() if name not in ("given", "model")}
    record = None
    if isinstance(model, Recipe) or (data is None and isinstance(model, str | Path)):
        _only_of_recipes(given)
        recipe = model if isinstance(model, Recipe) else _recipe(model, overrides)
        name = "" if isinstance(model, Recipe) else model
        place = resolve(device)
        called = Path(name).stem if str(name).endswith(".toml") else str(name) or recipe.name
    else:
        if overrides:
            raise TypeError("overrides change a recipe; pass the settings of a call as arguments")
        if output is None and "RANK" in os.environ:
            raise ValueError("several processes need a common folder; pass output")
        encoder = _encoder(model, data, device)
        called = f"{(encoder.name or type(encoder).__name__).removesuffix('-trained')}-trained"
        name, stays = called, str(device) == "auto" and isinstance(model, Model)
        place = encoder.device if stays else resolve(device)
        recipe, record = _recipe_of(called, encoder, given | {"device": place})
    with ExitStack() as stack:
        if output is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-")))
            recipe = recipe.model_copy(update={"checkpoint_every": None})
        else:
            folder = Path(output)
        shown_on = _listeners(stack, show_progress_bar, progress, report)
        outcome = run(
            recipe, folder, device=place, name=name, seed=seed, record=record,
            resume=resume, track=track, report=shown_on[0], update=shown_on[1],
        )  # fmt: skip
        best = load(outcome.model).to(place)
        if output is None:
            best.name = called
            for part in best.modules():
                if isinstance(part, Encoder):
                    part.origin = ""  # the folder is removed
        return best


def _listeners(
    stack: ExitStack, show: bool | None, progress: Progress | None, report: Report | None
) -> tuple[Report, Callable[[Status], None]]:
    """The callbacks for messages and for steps."""
    quiet = progress is None and report is None
    display = stack.enter_context(Display()) if (is_interactive() and quiet if show is None else show) else None
    if display is not None and report is None:
        report = display.report

    def update(status: Status) -> None:
        if display is not None:
            display.update(status)
        if progress is not None:
            progress(status.step, status.total)

    return report or (lambda _: None), update


def _recipe(name: str | Path, overrides: Sequence[str]) -> Recipe:
    try:
        return load_recipe(name, overrides)
    except RecipeError:
        if Path(name).is_dir() or str(name) in packaged.names():
            raise TypeError(f"{str(name)!r} is a model; pass the data too: isoglot.train(model, pairs)") from None
        raise


def _only_of_recipes(given: Mapping[str, Any]) -> None:
    """A recipe has its settings in itself: reject those of a call in memory."""
    allowed = {"output", "resume", "seed", "device", "overrides", "track", "show_progress_bar", "progress", "report"}
    defaults = {name: p.default for name, p in inspect.signature(train).parameters.items()}
    for name, value in given.items():
        same = value is defaults[name] or (isinstance(value, str | int | float) and value == defaults[name])
        if name not in allowed and not same:
            raise TypeError(f"{name} is set in the recipe; pass overrides=['key=value'] to change a recipe")


def _encoder(model: Any, data: Any, device: torch.device | str) -> Encoder:
    """The encoder to copy."""
    if isinstance(model, str | Path):
        if str(model).endswith(".toml"):
            raise TypeError(f"{str(model)!r} is a recipe, which names its data; leave out data, or pass a model")
        return load(model, device=device)
    if isinstance(model, Model):
        if data is None:
            raise TypeError("pass data to train on, such as a list of pairs of strings")
        encoder = model.trainable()
        if not isinstance(encoder, Encoder):
            raise TypeError(f"{type(model).__name__} can't be trained; pass a static or a transformer model")
        return encoder
    raise TypeError(
        f"model must be an encoder (isoglot.load), the name of one, or a recipe, not a {type(model).__name__}"
        + ("; settings in a dict are read by isoglot.training.recipe.parse" if isinstance(model, Mapping) else "")
    )


def _recipe_of(name: str, encoder: Encoder, arguments: Mapping[str, Any]) -> tuple[Recipe, dict[str, Any]]:
    """The recipe of a call, whose settings hold the objects, and the record of its run.

    Raises ValueError or TypeError for a wrong argument, before the data are read.
    """
    plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in arguments.items()}
    call = SimpleNamespace(**plain)
    if call.epochs is not None and call.steps is not None:
        raise ValueError("pass epochs or steps, not both")
    if call.teacher is not None and not isinstance(call.teacher, str | Path | Model):
        raise TypeError(f"teacher must be an encoder or what isoglot.load opens, got {shown(call.teacher)}")
    groups: list[Group] = []
    try:
        recipe = _settings_of(name, encoder, call, groups)
    except ValidationError as error:
        first = error.errors()[0]
        place = {"size": "batch_size", "every": "evaluate_every"}.get(str(first["loc"][-1]), first["loc"][-1])
        raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}, got {first['input']!r}") from None
    record = _record_of(recipe)
    restriction = recipe.encoder.model_dump(mode="json", include=set(RESTRICTION))
    if any(value not in (None, False) for value in restriction.values()):
        record["restricted"] = restriction
        recipe.encoder.holding(_restrict(recipe.encoder, seed=recipe.seed))
    groups += groups_of(call.data, call.languages)
    if not groups:
        raise ValueError("data contains no sentences; pass at least one pair")
    # Two defaults depend on the data: dropout masks instead of translations, and a tenth of the run.
    (stage,) = recipe.stages
    (stream,) = stage.streams
    if call.views is None and all(len(group.texts) == 1 for group in groups):
        batching = stream.batching.model_copy(update={"views": 2})
        stage = stage.model_copy(update={"streams": (stream.model_copy(update={"batching": batching}),)})
    total = stage.steps or max(1, round((stage.epochs or 1) * -(-len(groups) // call.batch_size)))
    every = max(1, total // EVALUATIONS) if call.evaluate_every is None else call.evaluate_every
    evaluation = tuple(one.model_copy(update={"every": every}) for one in recipe.evaluation)
    changes = {"stages": (stage,), "evaluation": evaluation, "checkpoint_every": 0 if evaluation else every}
    record["batching"] = stage.streams[0].batching.model_dump(mode="json")
    record["length"] = {"epochs": call.epochs, "steps": call.steps, "evaluate_every": every, "patience": call.patience}
    return recipe.model_copy(update=changes), record


def _settings_of(name: str, encoder: Encoder, call: SimpleNamespace, groups: list[Group]) -> Recipe:
    """The recipe of a call, its data being `groups`."""
    objectives = _objectives(call.objective)
    encoder = _trainable(encoder, [copies_of(one) for one in objectives])
    adapter = None if call.adapter is None else AdapterSettings(**dict(call.adapter))
    rate = ADAPTER_RATE if adapter else RATES[isinstance(encoder, StaticEncoder)]
    teacher = load(call.teacher, device=call.device) if isinstance(call.teacher, str | Path) else call.teacher
    stream = StreamSettings(
        name="data",
        sources=(SourceSettings(reader="memory", path="data").holding(MemorySource(groups)),),
        batching=Batching(size=call.batch_size, views=1 if call.views is None else call.views),
        objectives=objectives,
        teacher=None if teacher is None else TeacherSettings(model=teacher.name).holding(teacher),
    )
    lr, precision = rate if call.lr is None else call.lr, PRECISIONS.get(call.precision, call.precision)
    epochs = 1.0 if call.epochs is None and call.steps is None else call.epochs
    optimizer = OptimizerSettings(lr=lr, warmup=call.warmup, precision=precision)
    stage = StageSettings(streams=(stream,), optimizer=optimizer, epochs=epochs, steps=call.steps)
    trained = {name: getattr(call, name) for name in RESTRICTION} | {"adapter": adapter, "model": name}
    recipe = Recipe(
        name=name,
        seed=0 if call.seed is None else call.seed,
        encoder={"kind": "twins" if len(encoder.exports()) == 2 else "transformer", **trained},
        stages=(stage,),
        evaluation=_evaluation(call),
    )
    recipe.encoder.holding(encoder)
    return recipe


def _record_of(recipe: Recipe) -> dict[str, Any]:
    """What identifies the run of a call: its objects, by what they contain, and its settings."""
    (stream,) = recipe.stages[0].streams
    encoder, teacher = recipe.encoder.held, stream.teacher and stream.teacher.held
    record: dict[str, Any] = {
        "encoder": encoder.identity(),
        "objectives": [[one.weight, _fingerprint(one)] for one in stream.objectives],
        "teacher": teacher and teacher.identity(),
        "dev": [_described(dev) for choice in choices_of(recipe) for dev in choice.devs],
        "optimizer": recipe.stages[0].optimizer.model_dump(mode="json"),
    }
    if frozen := sorted(name for name, weight in encoder.named_parameters() if not weight.requires_grad):
        record["frozen"] = hashlib.sha256("\n".join(frozen).encode()).hexdigest()
    if rates := sorted({part.p for part in encoder.modules() if isinstance(part, torch.nn.Dropout)}):
        record["dropout"] = rates
    return record


def _objectives(given: Any) -> tuple[ObjectiveSettings, ...]:
    """The objectives of a call, checked."""
    items = given if isinstance(given, list) else [given]
    if not items:
        raise ValueError("objective is an empty list; pass a name such as 'multi_positive'")
    objectives = []
    for item in items:
        weight, item = item if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Real) else (1.0, item)
        if isinstance(item, Objective):
            one = ObjectiveSettings(name=type(item).__qualname__, weight=float(weight)).holding(copy.deepcopy(item))
        elif isinstance(item, str | Mapping):
            written = {"name": item} if isinstance(item, str) else dict(item)
            one = ObjectiveSettings(**{**written, "weight": float(weight) * float(written.get("weight", 1.0))})
            try:
                check_objective(one.name, one.options, where="objective")
            except RecipeError as error:
                raise ValueError(str(error).removeprefix("objective.name: ")) from None
        else:
            raise TypeError(
                'objective must be a name, {"name": ..., options}, an Objective, or a list of these or of (weight, '
                f"objective), got {shown(item)}"
            )
        objectives.append(one)
    return tuple(objectives)


def _fingerprint(settings: ObjectiveSettings) -> str:
    """Changes when an objective's class, settings or weights do."""
    if settings.held is None:
        options = json.dumps(settings.options, sort_keys=True, default=str) if settings.options else ""
        return f"{settings.name} {options}".rstrip()
    checksum = hashlib.sha256(settings.name.encode())
    for module in settings.held.modules():
        plain = {name: value for name, value in vars(module).items() if _is_plain(value)}
        checksum.update(repr(sorted(plain.items())).encode())
    for name, value in settings.held.state_dict().items():
        if isinstance(value, torch.Tensor):
            checksum.update(name.encode())
            checksum.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return f"{settings.name} {checksum.hexdigest()[:32]}"


def _is_plain(value: Any) -> bool:
    """Whether the text of a value is the same in every process."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | None)


def _trainable(encoder: Encoder, copies: Sequence[int]) -> Encoder:
    """The encoder, or two copies of it side by side for an objective that compares them."""
    if len(set(copies)) > 1:
        raise ValueError("one objective trains two copies of the encoder and another does not; use two runs")
    if copies[0] == 2 and len(encoder.exports()) == 1:
        return Twins(copy.deepcopy(encoder), copy.deepcopy(encoder))
    if copies[0] != len(encoder.exports()):
        raise ValueError("the encoder has two copies, which this objective can't train; pass encoder.first")
    if not any(weight.requires_grad for weight in encoder.parameters()):
        raise ValueError(f"a {type(encoder).__name__} without trainable weights can't be trained; pass another model")
    return encoder


def _restrict(settings: Any, *, seed: int) -> Encoder:
    """A copy of the encoder of some settings, of which only the part is trained that they name."""
    encoder: Encoder = copy.deepcopy(settings.held)
    transformers = [part for part in encoder.modules() if isinstance(part, TransformerEncoder)]
    if not transformers:
        raise ValueError(
            f"adapter, train_layers and freeze_embeddings are for transformers, and this is a {type(encoder).__name__}"
        )
    for part in transformers:
        if settings.freeze_embeddings:
            part.backbone.get_input_embeddings().requires_grad_(False)
        part.restrict(train_layers=settings.train_layers, adapter=settings.adapter, seed=seed)
    if settings.adapter is not None:
        adapted = {id(weight) for part in transformers for weight in part.parameters()}
        for weight in encoder.parameters():  # of layers around them
            weight.requires_grad_(weight.requires_grad and id(weight) in adapted)
        if encoder not in transformers and not encoder.origin:  # layers that no folder has
            transformers[0].origin = ""
    return encoder


def _evaluation(call: SimpleNamespace) -> tuple[EvaluationSettings, ...]:
    """What selects the best encoder of a call."""
    names = call.dev if isinstance(call.dev, list | tuple) else [call.dev]
    tasks: list[tuple[Task, str, tuple[str, ...]]] = []
    if call.dev is not None and names and all(isinstance(name, str) or _is_task(name) for name in names):
        folder = str(environment.data_folder() if call.dev_data is None else call.dev_data)
        tasks = [(task, folder, tuple(languages)) for task, languages in tasks_of(names)]
    elif call.dev is not None:
        task = Retrieval(tuple(map(_sided, groups_of(call.dev, call.languages))), name="dev")
        if not task.subsets(Path()):
            raise ValueError("dev contains no pair of sentences; pass pairs, or the names of tasks")
        if number := short_row(task.groups or ()):
            raise ValueError(f"row {number} of dev needs a sentence and its translation; complete or remove the row")
        tasks = [(task, ".", ())]
    return tuple(
        EvaluationSettings(
            task=task.name, metric=None, subset="", data=data, languages=languages,
            every=call.evaluate_every or 0, patience=call.patience,
        ).holding(task)
        for task, data, languages in tasks
    )  # fmt: skip


def _is_task(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "run") and hasattr(value, "metrics")


def _sided(group: Group) -> Group:
    """A group whose sentences are all of one language, or of unknown ones, with a code for each place."""
    if len(set(group.langs)) > 1:
        return group
    return replace(group, langs=tuple(f"side{place}" for place in range(1, len(group.langs) + 1)))


def _described(dev: Dev) -> list[Any]:
    task: Task = dev.task
    groups = getattr(task, "groups", None)
    content = digest_of(groups) if groups else data_digest(task, dev.data, languages=dev.languages)
    return [task.name, dev.metric.name, list(dev.languages), content]


def train_seeds(
    recipe: Recipe,
    output: Path,
    *,
    name: str = "",
    seeds: int = 1,
    resume: bool = True,
    track: str | Sequence[str] = (),
    device: torch.device,
) -> list[Outcome]:
    """Train a recipe once for each of `seeds` seeds, beginning with the recipe's, and show the progress on stderr.

    One seed's run is in `output`; of several, each is in `output/seed-N`, and `output/seeds.json` has their mean and
    sample standard deviation. Finished runs are kept and an interrupted one is continued; without `resume`, a folder
    with a run is rejected.
    """
    for stage in recipe.stages:
        try:
            settle(stage.optimizer.precision, device)
        except ValueError as error:
            raise RecipeError(f"{name or recipe.name}: optimizer.precision: {error}") from error
    if seeds > 1:
        check_output(output, folder=True)
        read_record(output / "seeds.json", ("scores", "mean"))
    outcomes = []
    for seed in range(recipe.seed, recipe.seed + seeds):
        folder = output if seeds == 1 else output / f"seed-{seed}"
        with Display(quiet=not ranks.is_first()) as display:
            outcomes.append(
                run(recipe, folder, device=device, name=name, seed=seed, resume=resume, track=track,
                    report=display.report, update=display.update)
            )  # fmt: skip
    if seeds > 1 and ranks.is_first():
        summarise(outcomes, output / "seeds.json")
    return outcomes


def summarise(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write mean and deviation of the best dev scores over seeds, and the best of all; nothing without scores."""
    scores = [outcome.best for outcome in outcomes if outcome.best is not None]
    if scores:
        lower = outcomes[0].lower_is_better
        deviation = statistics.stdev(scores) if len(scores) > 1 else None  # seeds without a finite score are left out
        summary = {"scores": scores, "mean": statistics.mean(scores), "standard_deviation": deviation, "n": len(scores)}
        write_record(path, summary | {"best": (min if lower else max)(scores), "lower_is_better": lower})
