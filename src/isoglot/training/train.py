"""`isoglot.train`: turns an encoder and data, or a recipe, into a plan, runs it, and returns the best encoder."""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import operator
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from pydantic import BaseModel, ValidationError

from isoglot import environment
from isoglot.arguments import check_arguments
from isoglot.data.batching import Batching
from isoglot.data.corpus import Corpus, MemorySource
from isoglot.data.groups import Group, Languages, digest_of, groups_of, short_row
from isoglot.encoders import StaticEncoder, TransformerEncoder, load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.encoders.twins import Twins
from isoglot.errors import RecipeError, shown
from isoglot.evaluation.base import Task
from isoglot.evaluation.run import data_digest
from isoglot.evaluation.run import plan as tasks_of
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.model import Model, packaged
from isoglot.objectives import Objective
from isoglot.objectives import build as build_objective
from isoglot.objectives import check as check_objective
from isoglot.progress import Progress, is_interactive
from isoglot.recipe import load as load_recipe
from isoglot.settings import AdapterSettings, OptimizerSettings, Recipe
from isoglot.training.best import Choice, Dev, find, require_one_direction
from isoglot.training.loop import Known, Plan, StagePlan, StreamPlan, Term, run
from isoglot.training.progress import Display, Report, Status
from isoglot.training.recipes import plan_of

EVALUATIONS = 10  # dev evaluations per run by default; without a dev score, checkpoints per run
RATES = {True: 0.02, False: 5e-5}  # learning rates of static encoders and of others
ADAPTER_RATE = 5e-4
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
    evaluate_every: int | None = None,
    patience: int = 0,
    output: str | Path | None = None,
    resume: bool = True,
    seed: int | None = None,
    device: torch.device | str = "auto",
    overrides: Sequence[str] = (),
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
    show_progress_bar  None: on a terminal or in a notebook
    progress     called with (steps done, steps in all) after each step; `report` with messages

    Raises TypeError or ValueError for wrong arguments, RecipeError for a wrong recipe, CorpusError for unusable data,
    CheckpointError for a folder with another run, OutputError for a folder in use.
    """
    given = {name: value for name, value in locals().items() if name not in ("given", "model")}
    if isinstance(model, Recipe) or (data is None and isinstance(model, str | Path)):
        _only_of_recipes(given)
        recipe = model if isinstance(model, Recipe) else _recipe(model, overrides)
        name = "" if isinstance(model, Recipe) else model
        plan, place = plan_of(recipe, seed=seed, name=name), resolve(device)
        called = Path(name).stem if str(name).endswith(".toml") else str(name) or recipe.name
    else:
        if overrides:
            raise TypeError("overrides change a recipe; pass the settings of a call as arguments")
        if output is None and "RANK" in os.environ:
            raise ValueError("several processes need a common folder; pass output")
        encoder = _encoder(model, data, device)
        called = f"{(encoder.name or type(encoder).__name__).removesuffix('-trained')}-trained"
        own = str(device) == "auto" and isinstance(model, Model)
        place = encoder.device if own else resolve(device)
        plan = _plan(
            encoder, data, dev=dev, objective=objective, epochs=epochs, steps=steps, batch_size=batch_size, lr=lr,
            warmup=warmup, precision=precision, adapter=adapter, train_layers=train_layers,
            freeze_embeddings=freeze_embeddings, views=views, teacher=teacher, languages=languages, dev_data=dev_data,
            evaluate_every=evaluate_every, patience=patience, seed=0 if seed is None else seed, device=place,
        )  # fmt: skip
    with ExitStack() as stack:
        if output is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-")))
            plan = replace(plan, checkpoint_every=None)
        else:
            folder = Path(output)
        shown_on = _listeners(stack, show_progress_bar, progress, report)
        outcome = run(plan, folder, device=place, resume=resume, report=shown_on[0], update=shown_on[1])
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
    allowed = {"output", "resume", "seed", "device", "overrides", "show_progress_bar", "progress", "report"}
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
        + ("; settings in a dict are read by isoglot.recipe.parse" if isinstance(model, Mapping) else "")
    )


def _plan(
    encoder: Encoder,
    data: Any,
    *,
    dev: Any,
    objective: Any,
    epochs: float | None,
    steps: int | None,
    batch_size: int,
    lr: float | None,
    warmup: int,
    precision: str,
    adapter: AdapterSettings | Mapping[str, Any] | None,
    train_layers: str | None,
    freeze_embeddings: bool,
    views: int | None,
    teacher: str | Path | Model | None,
    languages: Languages,
    dev_data: str | Path | None,
    evaluate_every: int | None,
    patience: int,
    seed: int,
    device: torch.device,
) -> Plan:
    """The arguments of a call as a plan. Everything is checked before the data are read."""
    if epochs is not None and steps is not None:
        raise ValueError("pass epochs or steps, not both")
    if epochs is not None and not 0 < epochs < float("inf"):
        raise ValueError(f"epochs must be positive, got {epochs!r}")
    steps, views = _whole("steps", steps, 1), _whole("views", views, 1)
    evaluate_every = _whole("evaluate_every", evaluate_every, 1)
    batch_size, warmup = _whole("batch_size", batch_size, 1), _whole("warmup", warmup, 0)
    patience, seed = _whole("patience", patience, 0), _whole("seed", seed, 0)
    kind = PRECISIONS.get(precision, precision)
    if kind not in ("auto", *PRECISIONS.values()):
        raise ValueError(f"precision must be one of auto, {', '.join(PRECISIONS)}, got {precision!r}")
    if teacher is not None and not isinstance(teacher, str | Path | Model):
        raise TypeError(f"teacher must be an encoder or what isoglot.load opens, got {shown(teacher)}")
    terms = _terms(objective)
    opened = [part for part in (encoder, teacher) if isinstance(part, Encoder)]
    origins = [inner.origin for part in opened for inner in part.modules() if isinstance(inner, Encoder)]
    inputs = [Path(name) for name in (*origins, "" if isinstance(teacher, Encoder) else teacher) if name]
    encoder = _trainable(encoder, [term.copies for term in terms])
    adapter = None if adapter is None else _checked(AdapterSettings, **dict(adapter))
    rate = (ADAPTER_RATE if adapter else RATES[isinstance(encoder, StaticEncoder)]) if lr is None else lr
    settings = _checked(OptimizerSettings, lr=rate, warmup=warmup, precision=kind)
    batching = _checked(Batching, size=batch_size, views=views or 1)
    guide: Any = load(teacher, device=device) if isinstance(teacher, str | Path) else teacher
    choice = _choice(dev, dev_data, languages)
    groups = list(groups_of(data, languages))
    if not groups:
        raise ValueError("data contains no sentences; pass at least one pair")
    if views is None and all(len(group.texts) == 1 for group in groups):
        batching = batching.model_copy(update={"views": 2})
    corpus = Corpus([MemorySource(groups)], name="data")
    total = steps or max(1, round((epochs or 1) * -(-len(groups) // batch_size)))
    every = max(1, total // EVALUATIONS) if evaluate_every is None else evaluate_every
    choices = [] if choice is None else [replace(choice, every=every, patience=patience)]
    parts = [Term(term.make, term.weight) for term in terms]
    stream = StreamPlan(corpus, batching, parts, None if guide is None else lambda _: guide)
    record: dict[str, Any] = {
        "encoder": encoder.identity(),
        "objectives": [[term.weight, term.record] for term in terms],
        "teacher": guide and guide.identity(),
        "dev": [] if choice is None else [_described(dev) for dev in choice.devs],
        "batching": batching.model_dump(mode="json"),
        "optimizer": settings.model_dump(mode="json"),
        "length": {"epochs": epochs, "steps": steps, "evaluate_every": every, "patience": patience},
    }
    if frozen := sorted(name for name, weight in encoder.named_parameters() if not weight.requires_grad):
        record["frozen"] = hashlib.sha256("\n".join(frozen).encode()).hexdigest()
    if rates := sorted({part.p for part in encoder.modules() if isinstance(part, torch.nn.Dropout)}):
        record["dropout"] = rates
    if adapter or train_layers is not None or freeze_embeddings:
        encoder = _restricted(encoder, adapter, train_layers, freeze_embeddings=freeze_embeddings, seed=seed)
        only = {"train_layers": train_layers, "freeze_embeddings": freeze_embeddings}
        record["restricted"] = {"adapter": adapter and adapter.model_dump(mode="json"), **only}
    return Plan(
        encoder=lambda _: copy.deepcopy(encoder),
        stages=[StagePlan([stream], settings, epochs=None if steps else epochs or 1, steps=steps)],
        seed=seed,
        record=record,
        choices=choices,
        checkpoint_every=0 if choices else every,
        inputs=inputs,
    )


_Number = TypeVar("_Number", int, int | None)


def _whole(name: str, value: _Number, least: int) -> _Number:
    """The whole number, of any kind, as Python's. Raises ValueError below `least`; None stays."""
    if value is None:
        return value
    number = operator.index(value)
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return number


_Settings = TypeVar("_Settings", bound=BaseModel)


def _checked(kind: type[_Settings], **values: Any) -> _Settings:
    """Settings of a call; ValueError, in one line, for the first value out of its range."""
    try:
        return kind(**values)
    except ValidationError as error:
        found = error.errors()[0]
        name = {"size": "batch_size"}.get(str(found["loc"][0]), found["loc"][0])
        raise ValueError(f"{name}: {found['msg']}, got {found['input']!r}") from None


@dataclass(frozen=True, slots=True)
class _Weighted:
    """An objective of a call."""

    weight: float
    make: Callable[[Known], Objective]
    copies: int
    record: str


def _terms(objective: Any) -> list[_Weighted]:
    """The objectives of a call, checked."""
    items = objective if isinstance(objective, list) else [objective]
    if not items:
        raise ValueError("objective is an empty list; pass a name such as 'multi_positive'")
    return [_term(item) for item in items]


def _term(item: Any) -> _Weighted:
    weight = 1.0
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], int | float):
        weight, item = float(item[0]), item[1]
    options: dict[str, Any] = {}
    if isinstance(item, Mapping):  # as in a recipe
        options = {**item}
        weight, item = weight * float(options.pop("weight", 1.0)), options.pop("name", None)
    if not 0 < weight < float("inf"):
        raise ValueError(f"the weight of an objective must be positive, got {weight!r}")
    if isinstance(item, str):
        name = item
        try:
            check_objective(name, options)
        except RecipeError as error:
            raise ValueError(str(error).removeprefix("objectives.name: ")) from None
        from isoglot.objectives import OBJECTIVES

        def made(known: Known) -> Objective:
            return build_objective(
                name,
                options,
                known.encoder,
                languages=known.languages,
                sizes=known.sizes,
                seed=known.seed,
                where="objective",
            )

        record = f"{name} {json.dumps(options, sort_keys=True, default=str)}" if options else name
        return _Weighted(weight, made, OBJECTIVES[name].copies, record)
    if isinstance(item, Objective):
        return _Weighted(weight, lambda _: copy.deepcopy(item), item.copies, _fingerprint(item))
    raise TypeError(
        'objective must be a name, {"name": ..., options}, an Objective, or a list of these or of (weight, objective), '
        f"got {shown(item)}"
    )


def _fingerprint(objective: Objective) -> str:
    """Changes when an objective's class, settings or weights do."""
    found = hashlib.sha256(type(objective).__qualname__.encode())
    for module in objective.modules():
        plain = {k: v for k, v in vars(module).items() if _is_plain(v)}
        found.update(repr(sorted(plain.items())).encode())
    for name, value in objective.state_dict().items():
        if isinstance(value, torch.Tensor):
            found.update(name.encode())
            found.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return f"{type(objective).__qualname__} {found.hexdigest()[:32]}"


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


def _restricted(
    encoder: Encoder, adapter: AdapterSettings | None, train_layers: str | None, *, freeze_embeddings: bool, seed: int
) -> Encoder:
    """A copy of the encoder of which only a part is trained."""
    encoder = copy.deepcopy(encoder)
    transformers = [part for part in encoder.modules() if isinstance(part, TransformerEncoder)]
    if not transformers:
        raise ValueError(
            f"adapter, train_layers and freeze_embeddings are for transformers, and this is a {type(encoder).__name__}"
        )
    for part in transformers:
        if freeze_embeddings:
            part.backbone.get_input_embeddings().requires_grad_(False)
        part.restrict(train_layers=train_layers, adapter=adapter, seed=seed)
    if adapter is not None:
        adapted = {id(weight) for part in transformers for weight in part.parameters()}
        for weight in encoder.parameters():  # of layers around them
            weight.requires_grad_(weight.requires_grad and id(weight) in adapted)
        if encoder not in transformers and not encoder.origin:  # layers that no folder has
            transformers[0].origin = ""
    return encoder


def _choice(dev: Any, data: str | Path | None, languages: Languages) -> Choice | None:
    """The dev scores of a call."""
    if dev is None:
        return None
    names = dev if isinstance(dev, list | tuple) else [dev]
    if names and all(isinstance(name, str) or _is_task(name) for name in names):
        folder = environment.data_folder() if data is None else Path(data)
        devs = tuple(
            Dev(task, find(task, None, where=f"dev, {task.name}"), folder, wanted) for task, wanted in tasks_of(names)
        )
        require_one_direction(devs)
    else:
        task = Retrieval(tuple(_sided(group) for group in groups_of(dev, languages)), name="dev")
        if not task.subsets(Path()):
            raise ValueError("dev contains no pair of sentences; pass pairs, or the names of tasks")
        if number := short_row(task.groups or ()):
            raise ValueError(f"row {number} of dev needs a sentence and its translation; complete or remove the row")
        devs = (Dev(task, find(task, None, where="dev"), Path(), where="dev"),)
    return Choice(devs)


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
