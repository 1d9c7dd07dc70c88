"""`isoglot.train`: turns the arguments of a call into a recipe, or takes one, runs it, and returns the best encoder."""

from __future__ import annotations

import copy
import inspect
import logging
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from isoglot.core import environment
from isoglot.core.arguments import NonNegativeInt, PositiveInt, check_arguments
from isoglot.core.errors import RecipeError, quote
from isoglot.core.progress import Progress, Report, is_interactive
from isoglot.data.corpus import MemorySource
from isoglot.data.files import check_output, read_record, write_record
from isoglot.data.filters import normalise
from isoglot.data.groups import Group, Languages, groups_of, short_row
from isoglot.encoders import StaticEncoder, TransformerEncoder, load
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.encoders.settings import AdapterSettings
from isoglot.encoders.twins import Twins
from isoglot.evaluation.base import Task
from isoglot.evaluation.run import plan as tasks_of
from isoglot.evaluation.tasks.retrieval import Retrieval
from isoglot.model import Model, packaged
from isoglot.objectives import OBJECTIVES, Objective
from isoglot.training import ranks
from isoglot.training.best import choices_of
from isoglot.training.loop import run
from isoglot.training.plan import kind_of
from isoglot.training.progress import Display
from isoglot.training.recipe import explain
from isoglot.training.recipe import load as load_recipe
from isoglot.training.record import ARGUMENTS, Outcome
from isoglot.training.settings import (
    MEMORY,
    EvaluationSettings,
    ObjectiveSettings,
    Recipe,
    SourceSettings,
    TeacherSettings,
)

EVALUATIONS = 10  # dev evaluations per run by default; without a dev score, checkpoints per run
RATES = {True: 0.02, False: 5e-5}  # learning rates of static encoders and of others
ADAPTER_RATE = 5e-4
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16", "tf32": "tf32"}  # as recipes call them


@check_arguments(
    learning_rate="pass lr",
    warmup_steps="pass warmup, a number of steps",
    warmup_ratio="pass warmup, a number of steps",
    report_to="pass track",
    fp16="pass precision='bfloat16'",
    bf16="pass precision='bfloat16'",
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
    data         sentences that mean the same: a list of pairs or longer tuples of strings, `Group`s, mined pairs, a
                 pandas or polars frame, a `datasets.Dataset`, a dict of columns, or the iterator of a reader; held in
                 memory. Exact repetitions are dropped
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
                 without translations (SimCSE), else 1; 1 for `contrastive_tension`, which has no dropout
    teacher      an encoder whose vectors the objective reads, such as those of `distillation`, for which the first
                 sentence of a row is the source
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
    if isinstance(model, Recipe) or (data is None and isinstance(model, str | Path)):
        _reject_settings(locals())
        recipe = model if isinstance(model, Recipe) else _load_recipe(model, overrides)
        name = "" if isinstance(model, Recipe) else str(model)
        title = Path(name).stem if name.endswith(".toml") else name or recipe.name
        place = resolve(device)
    else:
        if overrides:
            raise TypeError("overrides change a recipe; pass the settings of a call as arguments")
        if output is None and "RANK" in os.environ:
            raise ValueError("several processes need a common folder; pass output")
        encoder = _open_encoder(model, data, device)
        name = title = f"{(encoder.name or type(encoder).__name__).removesuffix('-trained')}-trained"
        place = encoder.device if str(device) == "auto" and isinstance(model, Model) else resolve(device)
        if epochs is not None and steps is not None:
            raise ValueError("pass epochs or steps, not both")
        with _as_arguments():
            teacher = _open_teacher(teacher, place)
            objectives, every = _objectives(objective), evaluate_every or 0
            evaluation = _evaluations(dev, dev_data, languages, every=every, patience=patience)
            encoder = _trainable(encoder, objectives)
            anchor = "first" if any(kind_of(one).ordered for one in objectives) else "random"
            rate = ADAPTER_RATE if adapter else RATES[isinstance(encoder, StaticEncoder)]
            stream = {
                "name": "data",
                "sources": (SourceSettings(reader=MEMORY, path="data").hold(MemorySource([])),),
                "batching": {"size": batch_size, "views": 1 if views is None else views, "anchor": anchor},
                "objectives": objectives,
                "teacher": None if teacher is None else TeacherSettings(model="teacher").hold(teacher),
            }
            optimizer = {
                "lr": rate if lr is None else lr, "warmup": warmup, "precision": PRECISIONS.get(precision, precision)
            }  # fmt: skip
            recipe = Recipe.model_validate({
                "name": MEMORY, "seed": seed or 0, "streams": [stream], "optimizer": optimizer, "steps": steps,
                "epochs": 1.0 if epochs is None and steps is None else epochs,
                "encoder": {
                    "kind": "twins" if len(encoder.exports()) == 2 else "transformer", "model": "encoder",
                    "adapter": adapter, "train_layers": train_layers, "freeze_embeddings": freeze_embeddings,
                },
                "evaluation": evaluation, "checkpoint_every": 0 if evaluation else every,
            })  # fmt: skip
        choices_of(recipe)
        recipe.encoder.hold(_restrict(encoder, recipe.encoder, seed=recipe.seed))
        recipe = _add_data(recipe, list(groups_of(data, languages)), views=views, every=evaluate_every)
    if show_progress_bar is None:
        show_progress_bar = progress is None and report is None and is_interactive()
    with ExitStack() as stack:
        if output is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isoglot-")))
            recipe = recipe.model_copy(update={"checkpoint_every": None})
        else:
            folder = Path(output)
        display = stack.enter_context(Display(quiet=not show_progress_bar, progress=progress))
        outcome = run(
            recipe, folder, device=place, name=name, seed=seed, resume=resume, track=track,
            report=report or (display.report if show_progress_bar else _log_warning), update=display.update,
        )  # fmt: skip
        best = load(outcome.model).to(place)
        if output is None:
            best.name = title
            for part in best.modules():
                if isinstance(part, Encoder):
                    part.origin = ""  # the folder is removed
        return best


def _load_recipe(name: str | Path, overrides: Sequence[str]) -> Recipe:
    try:
        return load_recipe(name, overrides)
    except RecipeError:
        if Path(name).is_dir() or str(name) in packaged.names():
            raise TypeError(f"{str(name)!r} is a model; pass the data too: isoglot.train(model, pairs)") from None
        raise


def _reject_settings(arguments: Mapping[str, Any]) -> None:
    """A recipe has its settings in itself: reject those of a call in memory, by the arguments of `train`."""
    if arguments["overrides"] and isinstance(arguments["model"], Recipe):
        raise TypeError("overrides change a recipe that is named; make the Recipe with other settings")
    allowed = {"model", "output", "resume", "seed", "device", "overrides", "track"}
    allowed |= {"show_progress_bar", "progress", "report"}
    for name, parameter in inspect.signature(train).parameters.items():
        value, default = arguments[name], parameter.default
        same = value is default or (isinstance(value, str | int | float) and value == default)
        if name not in allowed and not same:
            raise TypeError(f"{name} is set in the recipe; pass overrides=['key=value'] to change a recipe")


@contextmanager
def _as_arguments() -> Iterator[None]:
    """Raise the error of a setting of a recipe as the ValueError of an argument of `train`."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        setting, reason = str(first["loc"][-1]), explain(first, Recipe).partition(": ")[2]
        for name, short in PRECISIONS.items():
            reason = reason.replace(repr(short), repr(name))
        raise ValueError(f"{ARGUMENTS.get(setting, setting)}: {reason}") from None


def _open_encoder(model: Any, data: Any, device: torch.device | str) -> Encoder:
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


def _open_teacher(teacher: Any, device: torch.device) -> Model | None:
    opened = load(teacher, device=device) if isinstance(teacher, str | Path) else teacher
    if not isinstance(opened, Model | None):
        raise TypeError(f"teacher must be an encoder or what isoglot.load opens, got {quote(teacher)}")
    return opened


def _add_data(recipe: Recipe, groups: list[Group], *, views: int | None, every: int | None) -> Recipe:
    """The recipe of a call with its data, and with the defaults of two settings that depend on them: dropout masks
    instead of translations, and evaluations after a tenth of the run.
    """
    if not groups:
        raise ValueError("data contains no sentences; pass at least one pair")
    [stage], [stream] = recipe.stages, recipe.streams
    stream.sources[0].hold(MemorySource(groups))
    _warn_of_dev_rows(recipe, groups)
    if not views:
        drops_out = recipe.encoder.kind != "twins"  # otherwise two views are one
        views = 2 if drops_out and all(len(group.texts) == 1 for group in groups) else 1
    if not every:
        steps = stage.steps or max(1, round((stage.epochs or 1) * -(-len(groups) // stream.batching.size)))
        every = max(1, steps // EVALUATIONS)
    stream = stream.model_copy(update={"batching": stream.batching.model_copy(update={"views": views})})
    stage = stage.model_copy(update={"streams": (stream,)})
    evaluation = tuple(one.model_copy(update={"every": every}) for one in recipe.evaluation)
    interval = 0 if evaluation else every
    return recipe.model_copy(update={"stages": (stage,), "evaluation": evaluation, "checkpoint_every": interval})


def _warn_of_dev_rows(recipe: Recipe, groups: Sequence[Group]) -> None:
    """Log a warning if all sentences of a row of dev are in the data too, by the rule for leaks."""
    tasks = [evaluation.held for evaluation in recipe.evaluation]
    rows = [row for task in tasks if isinstance(task, Retrieval) for row in task.groups or ()]
    sentences = {normalise(text) for row in rows for text in row.texts}
    repeated = sentences.intersection(normalise(text) for group in (groups if rows else ()) for text in group.texts)
    if (number := sum(repeated.issuperset(map(normalise, row.texts)) for row in rows)) and ranks.is_first():
        problem = f"{number:,} of {len(rows):,} rows of dev are also in data, so its score is too high"
        _log_warning(f"warning: {problem}; remove them from one of the two")


def _log_warning(message: str) -> None:
    """What is left of the messages of a run that shows no progress."""
    if message.startswith("warning:") and ranks.is_first():
        logging.getLogger("isoglot").warning("%s", message)


def _objectives(objective: Any) -> tuple[ObjectiveSettings, ...]:
    """The objectives of a call, checked."""
    items = objective if isinstance(objective, list) else [objective]
    if not items:
        raise ValueError("objective is an empty list; pass a name such as 'multi_positive'")
    objectives = []
    for item in items:
        weight, item = item if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Real) else (1.0, item)
        written = {"name": item} if isinstance(item, str) else item
        if isinstance(item, Objective):
            written = {"name": type(item).__qualname__}
        elif not isinstance(written, Mapping):
            raise TypeError(
                'objective must be a name, {"name": ..., options}, an Objective, or a list of these or of (weight, '
                f"objective), got {quote(item)}"
            )
        try:
            one = ObjectiveSettings(**{**written, "weight": float(weight) * float(written.get("weight", 1.0))})
            if isinstance(item, Objective):
                one.hold(copy.deepcopy(item))
            else:
                OBJECTIVES.check(one.name, one.options, where="objective")
        except RecipeError as error:
            raise ValueError(str(error).removeprefix("objective: ")) from None
        objectives.append(one)
    return tuple(objectives)


def _trainable(encoder: Encoder, objectives: Sequence[ObjectiveSettings]) -> Encoder:
    """The encoder, or two copies of it side by side for an objective that compares them."""
    copies = [kind_of(one).copies for one in objectives]
    if len(set(copies)) > 1:
        raise ValueError("one objective trains two copies of the encoder and another does not; use two runs")
    if copies[0] == 2 and len(encoder.exports()) == 1:
        return Twins(copy.deepcopy(encoder), copy.deepcopy(encoder))
    if copies[0] != len(encoder.exports()):
        raise ValueError("the encoder has two copies, which this objective can't train; pass encoder.first")
    if not any(weight.requires_grad for weight in encoder.parameters()):
        raise ValueError(f"a {type(encoder).__name__} without trainable weights can't be trained; pass another model")
    return encoder


def _restrict(encoder: Encoder, settings: Any, *, seed: int) -> Encoder:
    """A copy of the encoder, of which only the part is trained that the settings name; itself if they name none."""
    if settings.adapter is None and settings.train_layers is None and not settings.freeze_embeddings:
        return encoder
    encoder = copy.deepcopy(encoder)
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


def _evaluations(
    dev: Any, dev_data: str | Path | None, languages: Languages, *, every: int, patience: int
) -> list[EvaluationSettings]:
    """What selects the best encoder of a call."""

    def select_by(task: Task, folder: str = ".", codes: Sequence[str] = ()) -> EvaluationSettings:
        return EvaluationSettings(
            task=task.name, metric="", subset="", data=folder, languages=tuple(codes), every=every, patience=patience
        ).hold(task)

    def is_task(value: Any) -> bool:
        named = isinstance(value, str)
        return named or (hasattr(value, "run") and hasattr(value, "metrics") and not isinstance(value, type))

    names = dev if isinstance(dev, list | tuple) else [dev]
    are_tasks = bool(names) and all(map(is_task, names))
    if dev_data is not None and not are_tasks:
        raise ValueError("dev_data is the folder of tasks; pass their names as dev, or leave it out")
    if dev is None and patience:
        raise ValueError("patience counts evaluations; pass dev too")
    if dev is None:
        return []
    if are_tasks:
        folder = str(environment.data_folder() if dev_data is None else dev_data)
        return [select_by(task, folder, codes) for task, codes in tasks_of(names)]
    groups = tuple(groups_of(dev, languages, name="dev"))
    if not any(len(set(group.langs)) > 1 for group in groups):  # one language, or unknown ones: a code for each place
        sides = [tuple(f"side{place}" for place in range(1, len(group.langs) + 1)) for group in groups]
        groups = tuple(replace(group, langs=codes) for group, codes in zip(groups, sides, strict=True))
    task = Retrieval(groups, name="dev")
    if not task.subsets(Path()):
        raise ValueError("dev contains no pair of sentences; pass pairs, or the names of tasks")
    if number := short_row(task.groups or ()):
        raise ValueError(f"row {number} of dev needs a sentence and its translation; complete or remove the row")
    return [select_by(task)]


def train_seeds(
    recipe: Recipe,
    output: Path,
    *,
    name: str = "",
    seeds: int = 1,
    track: str | Sequence[str] = (),
    device: torch.device,
) -> list[Outcome]:
    """Train a recipe once for each of `seeds` seeds, beginning with the recipe's, and show the progress on stderr.

    One seed's run is in `output`; of several, each is in `output/seed-N`, and `output/seeds.json` has their mean and
    sample standard deviation. Finished runs are kept and an interrupted one is continued.
    """
    if seeds > 1:
        check_output(output, folder=True)
        read_record(output / "seeds.json", ("scores", "mean"))
    outcomes = []
    for seed in range(recipe.seed, recipe.seed + seeds):
        folder = output if seeds == 1 else output / f"seed-{seed}"
        with Display(quiet=not ranks.is_first()) as display:
            outcomes.append(run(recipe, folder, device=device, name=name, seed=seed, track=track,
                                report=display.report, update=display.update))  # fmt: skip
    if seeds > 1 and ranks.is_first() and (summary := summarize(outcomes)):
        write_record(output / "seeds.json", summary)
    return outcomes


def summarize(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Mean and deviation of the best dev scores over seeds, and the best of all; empty without scores."""
    scores = [outcome.best for outcome in outcomes if outcome.best is not None]  # a seed may have no finite one
    if not scores:
        return {}
    lower, deviation = outcomes[0].lower_is_better, statistics.stdev(scores) if len(scores) > 1 else None
    summary = {"scores": scores, "mean": statistics.mean(scores), "standard_deviation": deviation, "n": len(scores)}
    return summary | {"best": (min if lower else max)(scores), "lower_is_better": lower}
