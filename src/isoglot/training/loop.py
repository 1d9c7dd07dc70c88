"""The training loop: stages, steps, evaluations and checkpoints.

A run lives in one folder: `run.json` (what is run), `log.jsonl`, `checkpoints/` and `model/`, which is the best encoder
by the dev score, or the last one without a dev score. A run that is interrupted and resumed gives the same model, bit
for bit on one device, as an uninterrupted one: all state that changes between steps is in the checkpoint.

The input is a `Plan`, which contains objects and no names: an encoder, streams, objectives. `train.py` makes one from
the arguments of a call, `recipes.py` from a recipe.
"""

from __future__ import annotations

import json
import math
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from isoglot.data.batch import Batch
from isoglot.data.batching import Batches, Batching, Position
from isoglot.data.corpus import Corpus, build_table, composition
from isoglot.data.files import atomic_write, check_json, check_output, exclusive
from isoglot.data.sets import catalogue
from isoglot.data.table import Array
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import random_state, set_random_state, settle
from isoglot.environment import cache_folder
from isoglot.errors import CheckpointError, OutputError
from isoglot.model import layout
from isoglot.model.card import Card, Data
from isoglot.objectives import Objective, Sum
from isoglot.settings import MemorySettings, OptimizerSettings
from isoglot.training import checkpoint, optimizer, ranks
from isoglot.training.best import Choice, Selector, number
from isoglot.training.progress import Meter, Report, RunLog, Status
from isoglot.training.step import Chunks, StepLimits, StepReport, backward, together
from isoglot.training.teacher import teacher_columns

Columns = Mapping[str, Callable[[Array], Array]]  # from row numbers of a table to a value each

LOOK = 10  # the step after which vectors are checked for collapse


@dataclass(frozen=True, slots=True)
class Known:
    """What an objective may be constructed from: the encoder, the languages of the data, sizes and seed.

    sizes  one more than the greatest value of each integer column of the batches; of `teacher`, the width
    """

    encoder: Encoder
    languages: Sequence[str]
    sizes: Mapping[str, int]
    seed: int


@dataclass(frozen=True, slots=True)
class Term:
    """An objective of a stream and its weight."""

    make: Callable[[Known], Objective]
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """Groups, how they are batched, and the objectives that read the batches.

    teacher  opens, on a device, a frozen encoder whose vectors of every sentence are in the batches, as the column
             `teacher`
    pivot    language of the one sentence of a group that the teacher encodes for all of it; empty: each its own
    """

    corpus: Corpus
    batching: Batching
    terms: Sequence[Term]
    teacher: Callable[[torch.device], Encoder] | None = None
    pivot: str = ""


@dataclass(frozen=True)
class StagePlan:
    """A part of a run with its own streams and optimizer; either `steps` or `epochs` (of the first stream) is set.

    select  whether its encoders are scored on the dev tasks, so that one can be the best; False for a warm-up
    """

    streams: Sequence[StreamPlan]
    optimizer: OptimizerSettings
    epochs: float | None = None
    steps: int | None = None
    name: str = "main"
    select: bool = True


@dataclass(frozen=True)
class Plan:
    """A run that has not begun. Its construction checks everything that can be checked without reading the data.

    encoder           opens or makes the encoder that is trained; it may be changed
    record            everything that changes the result, as JSON: a run is resumed only by the same
    checkpoint_every  steps between checkpoints; 0: at evaluations and at the end; None: never
    inputs            files and folders that the run reads, which it must not write to
    """

    encoder: Callable[[Report], Encoder]
    stages: Sequence[StagePlan]
    seed: int
    record: Mapping[str, Any]
    choices: Sequence[Choice] = ()
    memory: MemorySettings = field(default_factory=MemorySettings)
    checkpoint_every: int | None = 0
    inputs: Sequence[Path] = ()


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


@dataclass(slots=True)
class State:
    """The progress of the run; with the state of the modules, the content of a checkpoint."""

    stage: int = 0
    step: int = 0  # of the stage
    done: int = 0  # steps of the stages before
    positions: list[Position] = field(default_factory=list)

    @property
    def overall(self) -> int:
        """Steps of the whole run."""
        return self.done + self.step


class Stream:
    """Batches and the objectives that read them.

    The next batch is made, cut into chunks and padded while the current one is trained on.
    """

    def __init__(self, name: str, batches: Batches, objective: Sum, prepare: Callable[[Batch], Chunks]) -> None:
        self.name, self.batches, self.objective, self.prepare = name, batches, objective, prepare
        self.position = batches.position  # position of the next batch
        self.latest: Batch | None = None
        self._maker = ThreadPoolExecutor(1, thread_name_prefix=f"batches-{name}")
        self._ahead: Future[tuple[Batch, Chunks, Position]] | None = None

    def next(self) -> tuple[Batch, Chunks]:
        """The next batch, and its tokens in chunks."""
        made = self._ahead or self._maker.submit(self._make)
        self.latest, chunks, self.position = made.result()
        self._ahead = self._maker.submit(self._make)
        return self.latest, chunks

    def close(self) -> None:
        """Stop making batches."""
        self._maker.shutdown(cancel_futures=True)

    def _make(self) -> tuple[Batch, Chunks, Position]:
        batch = self.batches.next()
        return batch, self.prepare(batch), self.batches.position


def open_stream(
    plan: StreamPlan, encoder: Encoder, limits: StepLimits, *, seed: int, position: Position | None, report: Report
) -> Stream:
    """The batches of a stream from a position on, or from the beginning, and its objectives."""
    tables = cache_folder() / "tables"
    with ranks.first_alone():
        # One tokenizer.json gives other ids to a transformer, which adds special tokens, than to a static encoder.
        fingerprint = f"{encoder.fingerprint} {encoder.tokenize(['']).ids.tolist()}"
        table = build_table(plan.corpus, encoder.tokenize, fingerprint=fingerprint, cache=tables, report=report)
    teacher = plan.teacher(encoder.device) if plan.teacher else None
    integers = {name: column for name, column in table.extras.items() if column.dtype.kind == "i"}
    sizes = {name: int(column.max()) + 1 for name, column in integers.items()}
    known = Known(encoder, table.languages, sizes | ({"teacher": teacher.dim} if teacher else {}), seed)
    objective = Sum(*((term.weight, term.make(known)) for term in plan.terms))
    columns: Columns = {}
    if teacher is not None:  # after the objectives, which fail fast
        columns = teacher_columns(teacher, plan.corpus, table, pivot=plan.pivot, report=report)
    plan.corpus.release()
    batches = Batches(
        table,
        plan.batching,
        seed=seed,
        mixing=plan.corpus.mixing(),
        position=position,
        columns=columns,
        rank=ranks.rank(),
        world=ranks.world(),
    )
    return Stream(plan.corpus.name, batches, objective, lambda batch: Chunks.of(encoder, batch.tokens, limits))


def silent(_: object) -> None:
    """The default `update`: does nothing."""


def run(
    plan: Plan,
    output: Path,
    *,
    device: torch.device,
    resume: bool = True,
    report: Report = silent,
    update: Callable[[Status], None] = silent,
) -> Outcome:
    """Carry out a plan in the folder `output`.

    resume  True: continue a run of the same plan from its newest whole checkpoint, or return its outcome if it is
            finished; False: reject a folder with a run
    report  called with messages
    update  called after each step

    SIGINT and SIGTERM during a step are obeyed after it, when a checkpoint is written. Raises CheckpointError if the
    folder contains a run that must not or cannot be continued, OutputError while another run writes there, or if other
    files are in the place of its output, ValueError for a precision that the device does not have.
    """
    began = time.monotonic()
    selector = Selector(plan.choices, output)  # first, to find mistakes in evaluations early
    for stage in plan.stages:
        settle(stage.optimizer.precision, device)
    with ranks.group(device), alone(plan, output, [choice.folder for choice in plan.choices] or [output / "model"]):
        report, update = (report, update) if ranks.rank() == 0 else (silent, silent)
        if (finished := begin(plan, output, resume=resume)) is not None:
            report(f"{output}: this run is already finished")
            return Outcome(output / "model", **finished)
        this = Run(plan, output, selector, device=device, report=report, update=update)
        try:
            this.train()
        finally:
            this.log.close()
        outcome = Outcome(
            output / "model", selector.best, this.state.overall, time.monotonic() - began, selector.lower_is_better
        )
        if ranks.rank() == 0:
            finish(output, outcome)
    return outcome


class Run:
    """One run: the encoder, its progress, and its output."""

    def __init__(
        self,
        plan: Plan,
        output: Path,
        selector: Selector,
        *,
        device: torch.device,
        report: Report = silent,
        update: Callable[[Status], None] = silent,
    ) -> None:
        self.plan, self.output, self.selector, self.device = plan, output, selector, device
        self.report, self.update = report, update
        self.state = State()
        self.streams: list[Stream] = []
        self.kept: int | None = None  # step of the newest checkpoint
        torch.manual_seed(plan.seed)
        with ranks.first_alone():
            for stage in plan.stages:
                for stream in stage.streams:
                    stream.corpus.check()  # before a tokenizer is trained or a table is built
            self.encoder: Encoder = plan.encoder(report).to(device)
        self.saved, problems = checkpoint.load(output / "checkpoints")
        for problem in problems:
            report(f"{problem}; using the checkpoint before it")
        if self.saved is not None:
            self.encoder.load_state_dict(self.saved["encoder"])
            selector.restore(self.saved["selector"])
            place = self.saved["state"]
            self.state = State(place["stage"], place["step"], place["done"], [Position(*p) for p in place["positions"]])
            self.kept = self.state.overall
            report(f"resumed at step {self.state.overall}")
        self.base = self.encoder.name
        self.data = {name: Data(**found) for name, found in (self.saved or {}).get("data", {}).items()}
        self.log = RunLog(output, resumed_at=self.state.overall)

    def train(self) -> None:
        """Train every remaining stage, and save the model."""
        with Signals() as signals:
            try:
                for place in range(self.state.stage, len(self.plan.stages)):
                    if self.selector.exhausted:
                        break
                    self.stage(place, signals)
            except (KeyboardInterrupt, SystemExit):
                there = "no checkpoint was written" if self.kept is None else f"step {self.kept} is kept"
                how = "the same command or call resumes from there"
                how = "pass output= to keep a run" if self.plan.checkpoint_every is None else how
                self.report(f"interrupted at step {self.state.overall}; {there}; {how}")
                raise
        if self.plan.choices and self.selector.best is None:
            self.report("no dev score was a finite number; model/ is the encoder of the last step")
        if ranks.rank() == 0 and self.selector.best is None:
            self.encoder.exports()[0].save(self.output / "model")
        ranks.wait()

    def stage(self, place: int, signals: Signals) -> None:
        """Train the rest of one stage."""
        plan = self.plan.stages[place]
        if self.state.stage != place:
            self.state = State(place, 0, self.state.overall)
        positions = [*self.state.positions, *[None] * len(plan.streams)]
        self.streams = []
        memory = self.plan.memory
        limits = StepLimits.on(
            self.device, chunk=memory.chunk_tokens, graph=memory.graph_tokens,
            precision=settle(plan.optimizer.precision, self.device),
        )  # fmt: skip
        try:
            for planned, position in zip(plan.streams, positions, strict=False):
                stream = open_stream(
                    planned, self.encoder, limits, seed=self.plan.seed, position=position, report=self.report
                )
                self.streams.append(stream)
            self._describe(plan)
            self._steps(plan, self._optimizer(plan, place), limits, signals)
        finally:
            for stream in self.streams:
                stream.close()

    def _describe(self, plan: StagePlan) -> None:
        """Add the data of the stage to the model card and to `data.json` of the run."""
        if ranks.rank() == 0:
            path, content = self.output / "data.json", dict[str, Any]()
            with suppress(OSError, ValueError):  # not those of an earlier stage
                content = dict(json.loads(path.read_text(encoding="utf-8")))
            for stream, planned in zip(self.streams, plan.streams, strict=True):
                name = f"{plan.name}/{stream.name}" if len(self.plan.stages) > 1 else stream.name
                content[name] = composition(planned.corpus, stream.batches.table)
            with atomic_write(path) as file:
                json.dump(content, file, ensure_ascii=False, indent=1)
        for stream in self.streams:
            for name, (groups, sentences) in stream.batches.table.content().items():
                licence = catalogue()[name].licence if name in catalogue() else ""
                self.data[name] = Data(name=name, licence=licence, groups=groups, sentences=sentences)
        for encoder in self.encoder.exports():
            encoder.card = Card(base=self.base, data=list(self.data.values()), seed=self.plan.seed)

    def _optimizer(self, plan: StagePlan, place: int) -> torch.optim.Optimizer:
        """The optimizer over everything that is trained; with it, the state of a checkpoint is restored."""
        modules = [self.encoder, *(stream.objective.to(self.device) for stream in self.streams)]
        adam = optimizer.build(modules, plan.optimizer)
        if self.saved is None:
            torch.manual_seed(self.plan.seed + 1000 * place + ranks.rank())
            return adam
        for stream, state in zip(self.streams, self.saved["objectives"], strict=True):
            stream.objective.load_state_dict(state)
        adam.load_state_dict(self.saved["optimizer"])
        set_random_state(self.saved["random"][ranks.rank()], self.device)
        self.saved = None
        return adam

    def _steps(self, plan: StagePlan, adam: torch.optim.Optimizer, limits: StepLimits, signals: Signals) -> None:
        """Step to the end of the stage, to an early stop or to a signal."""
        batches = (plan.epochs or 1) * self.streams[0].batches.count()
        total = plan.steps or max(1, round(batches / plan.optimizer.accumulate))
        meter = Meter(total)
        self.encoder.train()
        for step in range(self.state.step, total):
            lr = optimizer.rate(step, total=total, settings=plan.optimizer)
            with signals.deferred():
                reports, norm = move(
                    self.encoder, self.streams, adam, plan.optimizer, limits,
                    lr=lr, where=f"step {self.state.overall + 1}",
                )  # fmt: skip
                self.state.step = step + 1
                self._tell(meter.read(reports, stage=plan.name, step=step + 1, lr=lr, norm=norm))
            last = step + 1 == total
            if self.state.overall == LOOK or (last and self.state.overall < LOOK):
                self._look()
            if due := self.selector.due(step + 1, last=last) if plan.select else []:
                self._evaluate(due)
            every = self.plan.checkpoint_every
            if every is not None and (last or (every and (step + 1) % every == 0) or (due and not every)):
                self._save(adam)
            if self.selector.exhausted:
                since = min(choice.since for choice in self.selector.choices)
                self.report(f"stopped at step {self.state.overall}: no better dev score for {since} evaluations")
                return
            if received := max(ranks.exchange(signals.received))[0]:
                if every is not None and self.kept != self.state.overall:
                    self._save(adam)
                signals.obey(received)

    def _tell(self, status: Status) -> None:
        """Log and display the step."""
        self.log.write(
            "step", self.state.overall, stage=status.stage, losses=status.losses, lr=status.lr, norm=status.norm,
            padding=status.padding, negatives=status.negatives,
        )  # fmt: skip
        self.update(status)

    def _look(self) -> None:
        """Warn if all vectors are nearly equal, which dev scores do not explain."""
        batch = self.streams[0].latest
        if batch is None or ranks.rank() > 0:
            return
        first = (batch.group[:, None] == torch.unique(batch.group)[None, :]).int().argmax(dim=0)  # one row per group
        tokens = batch.tokens.select(first[:64])
        self.encoder.eval()
        with torch.no_grad():
            vectors = self.encoder(tokens)
        self.encoder.train()
        if (spread := collapsed(vectors)) is not None:
            cause = 'first-token pooling (pooling = "cls") of a backbone cut by `layers`; use mean pooling'
            self.log.write("warning", self.state.overall, warning="collapsed vectors", spread=spread, cause=cause)
            self.report(
                f"warning: the vectors are collapsed: the cosines of {len(tokens)} sentences differ by {spread:.0e}; a "
                f"likely cause is {cause}"
            )

    def _evaluate(self, choices: Sequence[Choice]) -> None:
        """Score the encoder on the dev tasks that are due; keep it where it is the best so far."""
        self.selector.judge(choices, self.encoder)
        self.encoder.train()
        for choice in choices:
            named: dict[str, Any] = {"name": choice.name} if choice.name else {}
            named |= {"lower_is_better": True} if choice.lower else {}
            self.log.write(
                "evaluation", self.state.overall, **named,
                score=number(choice.latest), best=choice.best, scores=choice.records,
            )  # fmt: skip
            best = "none yet" if choice.best is None else f"best {choice.best:.4f}"
            way = ", lower is better" if choice.lower else ""
            self.report(f"step {self.state.overall}: {f'dev {choice.name}'.rstrip()} {choice.latest:.4f} ({best}{way})")

    def _save(self, adam: torch.optim.Optimizer) -> None:
        """Write a checkpoint of everything that changes from step to step."""
        random = ranks.collect(random_state(self.device))
        if ranks.rank() == 0:
            state = {
                "encoder": self.encoder.state_dict(),
                "objectives": [stream.objective.state_dict() for stream in self.streams],
                "optimizer": adam.state_dict(),
                "selector": self.selector.snapshot(),
                "data": {name: found.model_dump() for name, found in self.data.items()},
                "random": random,
                "state": {
                    "stage": self.state.stage,
                    "step": self.state.step,
                    "done": self.state.done,
                    "positions": [(p.epoch, p.pool, p.batch) for p in (stream.position for stream in self.streams)],
                },
            }
            checkpoint.save(self.output / "checkpoints", self.state.overall, state)
        ranks.wait()
        self.kept = self.state.overall


def move(
    encoder: Encoder,
    streams: Sequence[Stream],
    adam: torch.optim.Optimizer,
    settings: OptimizerSettings,
    limits: StepLimits,
    *,
    lr: float,
    where: str = "step",
) -> tuple[dict[str, StepReport], float]:
    """Gradients of all streams over as many batches as are accumulated, then one move of the parameters.

    Returns the report of each stream and the norm of the gradient. Raises CheckpointError, which begins with `where`,
    for a loss or a gradient that is not finite.
    """
    for group in adam.param_groups:
        group["lr"] = lr
    adam.zero_grad(set_to_none=True)
    done: dict[str, list[StepReport]] = {stream.name: [] for stream in streams}
    summing = ranks.GradientSum(encoder)  # once for all streams: a sum must not be reduced twice
    turns = [*streams] * settings.accumulate
    for turn, stream in enumerate(turns, 1):
        batch, chunks = stream.next()
        last, share = summing if turn == len(turns) else None, 1 / settings.accumulate
        report = backward(encoder, stream.objective, batch, limits, chunks=chunks, share=share, summing=last)
        done[stream.name].append(report)
    summing.finish()
    for stream in streams:
        ranks.average_gradients(stream.objective)
    grads = optimizer.gradients(p for group in adam.param_groups for p in group["params"])
    found = {name: together(reports) for name, reports in done.items()}
    losses = [loss for report in found.values() for loss in report.losses.values()]
    norm, *values = torch.stack(
        [optimizer.norm(grads, losses[0].device), *losses]
    ).tolist()  # the only synchronisation of a step
    if not all(map(math.isfinite, [norm, *values])):
        raise CheckpointError(
            f"{where}: the loss or its gradient is no longer finite; lower optimizer.lr (now {lr:g}) or raise the "
            "temperature; what was saved before is intact"
        )
    optimizer.clip(grads, norm, settings.clip)
    adam.step()
    with torch.no_grad():
        for stream in streams:
            stream.objective.after_step(encoder, [report.batch for report in done[stream.name]])
    known = iter(torch.tensor(values, dtype=torch.float64))
    return {
        name: replace(report, losses={loss: next(known) for loss in report.losses}) for name, report in found.items()
    }, norm


def collapsed(vectors: Tensor) -> float | None:
    """The standard deviation of the cosines between the rows (N, D), if all are nearly one; None for other vectors."""
    if len(vectors) < 3:
        return None
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    cosines = (unit @ unit.T)[~torch.eye(len(unit), dtype=torch.bool, device=unit.device)]
    uniformity = torch.exp(-4 * (1 - cosines)).mean().log()  # Wang and Isola 2020: t = 2, squared distance 2 - 2 cosine
    spread = float(cosines.std())
    return spread if spread < 1e-3 and float(uniformity) > -1e-2 else None


class Signals:
    """SIGINT and SIGTERM, inside `with`: the first one that is received during `deferred` waits until it is obeyed.

    Then the previous handler is called, or the process ends, as it would without this class. Does nothing in other
    threads than the main one, and leaves signals that are ignored.
    """

    def __init__(self) -> None:
        self.received = 0  # the number of the signal that waits
        self._deferring = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for known in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(known) not in (signal.SIG_IGN, None):
                    self._before[known] = signal.signal(known, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for known, handler in self._before.items():
            signal.signal(known, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Let the first signal wait while the block runs."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False

    def obey(self, received: int, frame: FrameType | None = None) -> None:
        """Apply the default effect of the signal; returns if its handler does."""
        self.received = 0
        handler = self._before.get(received)
        if not callable(handler):
            raise SystemExit(128 + received)
        handler(received, frame)

    def _handle(self, received: int, frame: FrameType | None) -> None:
        if not self._deferring or self.received:
            self.obey(received, frame)
        else:
            self.received = received


@contextmanager
def alone(plan: Plan, output: Path, models: Sequence[Path]) -> Iterator[None]:
    """Hold the folder of a run, which leaves its models in the folders `models`, for this run alone.

    Removes what a killed run has left there and, before any work, raises OutputError for a folder that another run
    holds, and for files in the place of its output that are inputs or that no run wrote. Rank 0 checks
    for all.
    """
    with ExitStack() as held:
        problem = ""
        if ranks.rank() == 0:
            try:
                check_output(output, folder=True)
                held.enter_context(exclusive(output))
                _must_be_writable(plan.inputs, output, models)
            except OutputError as error:
                problem = str(error)
        if problem := ranks.from_first(problem):
            raise OutputError(problem)
        yield


def _must_be_writable(inputs: Sequence[Path], output: Path, models: Sequence[Path]) -> None:
    # A run may lie in a folder of data, such as the current one, but not in a model that it starts from.
    inputs = [path for path in inputs if not path.is_dir() or layout.is_model(path)]
    check_json(output / "run.json", ("recipe", "seed"))
    for name in ("run.json", "log.jsonl", "data.json"):
        check_output(output / name, inputs=inputs)
    check_output(output / "checkpoints", inputs=inputs, folder=True)
    checkpoint.clean(output / "checkpoints")
    for folder in models:
        check_output(folder, inputs=inputs, folder=True, whole=True)
        if not (output / "run.json").exists() and folder.exists() and any(folder.iterdir()):
            raise OutputError(f"{folder}: is not the model of a run in {output}; choose another output")
        with exclusive(folder) if folder.parent.is_dir() else ExitStack():
            layout.prepare(folder)


def begin(plan: Plan, output: Path, *, resume: bool) -> dict[str, Any] | None:
    """Write the record of the run, or check that the run in the folder is the same; if it is finished, return its
    outcome.
    """
    problem, finished = "", None
    if ranks.rank() == 0:
        try:
            finished = _begin(plan, output, resume=resume)
        except CheckpointError as error:
            problem = str(error)
    if problem := ranks.from_first(problem):
        raise CheckpointError(problem)
    return ranks.from_first(finished)


def _begin(plan: Plan, output: Path, *, resume: bool) -> dict[str, Any] | None:
    import isoglot

    path, log = output / "run.json", output / "log.jsonl"
    streams = [stream for stage in plan.stages for stream in stage.streams]
    ours = {
        "recipe": plan.record,
        "seed": plan.seed,
        "number of ranks": ranks.world(),
        "text": [stream.corpus.digest() for stream in streams],
    }
    # A run that failed before its first step may be restarted, by any plan.
    begun = (log.exists() and log.stat().st_size > 0) or any((output / "checkpoints").glob("step-*"))
    if not begun:
        versions = {"isoglot": isoglot.__version__, "torch": torch.__version__, "python": platform.python_version()}
        with atomic_write(path) as stream:
            json.dump({**ours, "versions": versions}, stream, indent=1)
        return None
    if not resume:
        raise CheckpointError(f"{output}: already contains a run; pass resume=True to continue it, or another folder")
    theirs = _recorded(path)
    if changed := [place for key in ours for place in _differing(ours[key], theirs.get(key), key)]:
        raise CheckpointError(
            f"{path}: the run there differs in {', '.join(changed[:3])}; continue with the same settings, or use "
            "another folder"
        )
    finished = theirs.get("finished")
    known = isinstance(finished, dict) and finished.keys() == {"best", "steps", "seconds", "lower_is_better"}
    return finished if known and layout.is_model(output / "model") else None


def _recorded(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: damaged ({error}); without it the run cannot be resumed") from error
    return found


def _differing(ours: Any, theirs: Any, place: str) -> list[str]:
    """The paths of keys at which two JSON values differ."""
    ours = json.loads(json.dumps(ours))  # tuples as JSON has them
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return [found for key in keys for found in _differing(ours.get(key), theirs.get(key), f"{place}.{key}")]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [found for at, (one, other) in pairs for found in _differing(one, other, f"{place}.{at}")]
    return [] if ours == theirs else [place]


def finish(output: Path, outcome: Outcome) -> None:
    """Record the end of a run."""
    path = output / "run.json"
    finished = {
        "best": outcome.best,
        "steps": outcome.steps,
        "seconds": round(outcome.seconds, 1),
        "lower_is_better": outcome.lower_is_better,
    }
    with atomic_write(path) as stream:
        json.dump(_recorded(path) | {"finished": finished}, stream, indent=1)
