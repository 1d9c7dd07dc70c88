"""The training loop: stages, steps, evaluations and checkpoints.

A run lives in one folder: `run.json` (what is run), `log.jsonl`, `checkpoints/` and `model/`, which is the best encoder
by the dev score, or the last one without a dev score. A run that is interrupted and resumed gives the same model, bit
for bit on one device, as an uninterrupted one: all state that changes between steps is in the checkpoint.

The input is a `Recipe`, whose settings may hold the objects of a call of `isoglot.train`; `plan.py` opens what they
name.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from isoglot.core.environment import cache_folder
from isoglot.core.errors import OutputError, RecipeError
from isoglot.core.progress import Report
from isoglot.data.batching import Batches, Position
from isoglot.data.corpus import Corpus, build_table, composition
from isoglot.data.files import read_record, write_record
from isoglot.data.table import Array, GroupTable
from isoglot.encoders.base import Encoder
from isoglot.encoders.bert import compile_layers
from isoglot.encoders.device import random_state, set_random_state, settle
from isoglot.model.card import Card, Data
from isoglot.training import checkpoint, optimizer, ranks
from isoglot.training.best import Choice, Selector, number
from isoglot.training.memory import fit_graphs
from isoglot.training.plan import Plan, make_encoder, make_plan, open_objectives, warn_of_unread
from isoglot.training.progress import Meter, RunLog, Status
from isoglot.training.record import Outcome, finish, hold_folder, record_of
from isoglot.training.settings import Recipe, StageSettings, StreamSettings
from isoglot.training.sharding import DividedRanks, divide, divide_state, gather, gather_state
from isoglot.training.step import Chunks, OneRank, StepLimits, StepResult, Stream, train_step
from isoglot.training.teacher import open_teacher, teacher_column
from isoglot.training.trackers import choose_trackers

COLLAPSE_STEP = 10  # the step after which vectors are checked for collapse


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


def tokenize_corpus(corpus: Corpus, encoder: Encoder, report: Report) -> GroupTable:
    """The table of a stream's text, from the cache or made by rank 0."""
    # One tokenizer.json gives other ids to a transformer, which adds special tokens, than to a static encoder.
    fingerprint = f"{encoder.fingerprint} {encoder.tokenize(['']).ids.tolist()}"
    with ranks.take_turns():
        tables = cache_folder() / "tables"
        return build_table(corpus, encoder.tokenize, fingerprint=fingerprint, cache=tables, report=report)


def ignore(_: object) -> None:
    """The default `update`: does nothing."""


def run(
    recipe: Recipe,
    output: Path,
    *,
    device: torch.device,
    name: str | Path = "",
    seed: int | None = None,
    resume: bool = True,
    track: str | Sequence[str] = (),
    report: Report = ignore,
    update: Callable[[Status], None] = ignore,
) -> Outcome:
    """Train by a recipe in the folder `output`.

    name    what the user calls the recipe, for errors
    seed    instead of the recipe's
    resume  True: continue a run of the same record (`record_of`) from its newest whole checkpoint, or return the
            outcome of a finished one; False: reject a folder with a run
    track   names of trackers
    report  called with messages
    update  called after each step

    Everything that the recipe names is checked first. SIGINT and SIGTERM during a step are obeyed after it, when a
    checkpoint is written. Raises RecipeError for a wrong recipe, CheckpointError if the folder contains a run that must
    not or cannot be continued, OutputError while another run writes there, or if other files are in the place of its
    output.
    """
    began = time.monotonic()
    plan = make_plan(recipe, name)
    trackers, selector = choose_trackers(track), Selector(plan.choices, output)
    for stage in recipe.stages:
        try:
            settle(stage.optimizer.precision, device)
        except ValueError as error:
            raise RecipeError(f"{name or recipe.name}: optimizer.precision: {error}") from error
    seed = recipe.seed if seed is None else seed
    record = record_of(plan)
    with (
        ranks.group(device),
        hold_folder(output, plan, record, seed=seed, device=device, resume=resume) as finished,
    ):
        report, update = (report, update) if ranks.rank() == 0 else (ignore, ignore)
        if finished is not None:
            report(f"{output}: this run is already finished")
            return finished
        training = Run(plan, output, selector, seed=seed, device=device, report=report, update=update)
        step, settings = training.state.overall, {"seed": seed, **record}
        with closing(RunLog(output, resumed_at=step, trackers=trackers, settings=settings)) as log:
            training.train(log)
        steps, seconds = training.state.overall, time.monotonic() - began
        outcome = Outcome(output / "model", selector.best, steps, seconds, selector.lower_is_better)
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
        seed: int,
        device: torch.device,
        report: Report,
        update: Callable[[Status], None],
    ) -> None:
        self.recipe, self.corpora = plan.recipe, plan.corpora
        self.output, self.selector = output, selector
        self.seed, self.device, self.report, self.update = seed, device, report, update
        self.state = State()
        self.streams: list[Stream] = []
        self.saved_step: int | None = None  # step of the newest checkpoint
        self.pending_report: Callable[[], None] | None = None  # waits for the newest step and reports it
        self.has_gradient = False  # in any step so far
        torch.manual_seed(seed)
        with ranks.take_turns():
            for corpus in plan.text:
                corpus.check()  # before a tokenizer is trained or a table is built
            self.encoder: Encoder = make_encoder(plan, report, seed=seed)
        self.saved, problems = checkpoint.load(output / "checkpoints")
        for problem in problems:
            report(f"{problem}; using the checkpoint before it")
        if self.saved is not None:
            self.encoder.load_state_dict(self.saved["encoder"])
            selector.restore(self.saved["selector"])
            state = self.saved["state"]
            self.state = State(**{**state, "positions": [Position(*numbers) for numbers in state["positions"]]})
            self.saved_step = self.state.overall
            report(f"resumed at step {self.state.overall}")
        if self.recipe.memory.compile:
            compile_layers(self.encoder)
        # What the steps train: the encoder, or a copy whose weights the ranks divide; then the encoder is on the host.
        divides = self.recipe.memory.shard_weights and ranks.world() > 1
        self.trained = divide(self.encoder, device) if divides else self.encoder.to(device)
        self.base = self.encoder.name
        cards = [part.card for part in self.encoder.modules() if isinstance(part, Encoder) and part.card]
        self.licence = " and ".join(dict.fromkeys(start.licence for start in cards if start.licence))
        self.data = {name: Data(**entry) for name, entry in (self.saved or {}).get("data", {}).items()}

    def train(self, log: RunLog) -> None:
        """Train every remaining stage, and save the model."""
        self.log = log
        with Signals() as signals:
            try:
                for place in range(self.state.stage, len(self.recipe.stages)):
                    self._train_stage(place, signals)
            except (KeyboardInterrupt, SystemExit):
                state = "no checkpoint was written" if self.saved_step is None else f"step {self.saved_step} is kept"
                advice = "the same command or call resumes from there"
                advice = "pass output= to keep a run" if self.recipe.checkpoint_every is None else advice
                self.report(f"interrupted at step {self.state.overall}; {state}; {advice}")
                raise
        if self.selector.choices and self.selector.best is None:
            self.report("no dev score was a finite number; model/ is the encoder of the last step")
        if self.selector.best is None:
            with self._join_weights() as encoder:
                if ranks.rank() == 0:
                    encoder.exports()[0].save(self.output / "model")
        ranks.wait()

    def _train_stage(self, place: int, signals: Signals) -> None:
        """Train the rest of one stage."""
        settings = self.recipe.stages[place]
        if self.state.stage != place:
            self.state = State(place, 0, self.state.overall)
            for choice in self.selector.choices:
                choice.since = 0
        memory, precision = self.recipe.memory, settle(settings.optimizer.precision, self.device)
        limits = StepLimits.on(self.device, chunk=memory.chunk_tokens, graph=memory.graph_tokens, precision=precision)
        positions: Sequence[Position | None] = self.state.positions or [None] * len(settings.streams)
        self.streams = []
        with ExitStack() as stack:
            for stream, corpus, position in zip(settings.streams, self.corpora[place], positions, strict=True):
                self.streams.append(stack.enter_context(closing(self._open_stream(stream, corpus, limits, position))))
            self._describe_data(settings, self.corpora[place])
            self._train_steps(settings, self._make_optimizer(settings, place), limits, signals)

    def _open_stream(
        self, settings: StreamSettings, corpus: Corpus, limits: StepLimits, position: Position | None
    ) -> Stream:
        """The batches of a stream from a position on, or from the beginning, and its objectives."""
        encoder, teacher, columns = self.trained, None, dict[str, Callable[[Array], Array]]()
        table = tokenize_corpus(corpus, encoder, self.report)
        sizes = {name: int(column.max()) + 1 for name, column in table.extras.items() if column.dtype.kind == "i"}
        if settings.teacher is not None:
            teacher = open_teacher(self.recipe, settings.teacher, encoder.device)
            sizes["teacher"] = teacher.dim
        objective = open_objectives(self.recipe, settings, encoder, table.languages, sizes, seed=self.seed)
        if ranks.rank() == 0:
            has_hard = settings.batching.hard_negatives and table.slot.min(initial=0) < 0
            present = [*table.extras, *sizes, *(["hard_negatives"] if has_hard else [])]
            warn_of_unread(corpus.name, present, objective.members)
        if settings.teacher is not None and teacher is not None:  # after the objectives, which fail in seconds
            columns["teacher"] = teacher_column(teacher, settings.teacher, corpus, table, report=self.report)
        corpus.release()
        batches = Batches(
            table, settings.batching, seed=self.seed, mixing=corpus.mixing(), position=position, columns=columns,
            rank=ranks.rank(), world=ranks.world(),
        )  # fmt: skip
        return Stream(corpus.name, batches, objective, lambda batch: Chunks.of(encoder, batch.tokens, limits))

    def _describe_data(self, settings: StageSettings, corpora: Sequence[Corpus]) -> None:
        """Add the data of the stage to the model card and to `data.json` of the run."""
        if ranks.rank() == 0:
            path, content = self.output / "data.json", dict[str, Any]()
            with suppress(OutputError):  # damaged: without the earlier stages. At the first, of a run that failed
                content = (read_record(path) or {}) if self.state.stage else {}
            for stream, corpus in zip(self.streams, corpora, strict=True):
                name = f"{settings.name}/{stream.name}" if len(self.recipe.stages) > 1 else stream.name
                content[name] = composition(corpus, stream.batches.table)
            write_record(path, content)
        for stream, corpus in zip(self.streams, corpora, strict=True):
            licences = {source.name: source.licence for source in corpus.sources}
            joined = " and ".join(dict.fromkeys(filter(None, licences.values())))
            for source, (groups, sentences) in stream.batches.table.content().items():
                name, licence = (", ".join(licences), joined) if corpus.join else (source, licences[source])
                self.data[name] = Data(name=name, licence=licence, groups=groups, sentences=sentences)
        for encoder in self.encoder.exports():
            encoder.card = Card(base=self.base, licence=self.licence, data=list(self.data.values()), seed=self.seed)

    def _make_optimizer(self, settings: StageSettings, place: int) -> torch.optim.Optimizer:
        """The optimizer over everything that is trained; with it, the state of a checkpoint is restored."""
        modules = [self.trained, *(stream.objective.to(self.device) for stream in self.streams)]
        adam = optimizer.build(modules, settings.optimizer, apart=self.recipe.memory.shard_weights)
        if self.saved is None:
            torch.manual_seed(self.seed + 1000 * place + ranks.rank())
            return adam
        for stream, state in zip(self.streams, self.saved["objectives"], strict=True):
            stream.objective.load_state_dict(state)
        adam.load_state_dict(divide_state(self.saved["optimizer"], adam))
        set_random_state(self.saved["random"][ranks.rank()], self.device)
        self.saved = None
        return adam

    def _train_steps(
        self, settings: StageSettings, adam: torch.optim.Optimizer, limits: StepLimits, signals: Signals
    ) -> None:
        """Step to the end of the stage, to an early stop or to a signal."""
        epochs, accumulate = settings.epochs or 1, settings.optimizer.accumulate
        total = settings.steps or max(1, round(epochs * self.streams[0].batches.count() / accumulate))
        meter = Meter(total)
        self.trained.train()
        if self.recipe.memory.graph_tokens is None:
            limits = fit_graphs(limits, self.trained, adam)
        several = DividedRanks if ranks.is_divided(self.trained) else ranks.Ranks
        for step in range(self.state.step, total):
            if self.selector.is_exhausted:  # also of a run that was interrupted after this
                since = min(choice.since for choice in self.selector.choices)
                self.report(f"stopped at step {self.state.overall}: no better dev score for {since} evaluations")
                break
            lr = optimizer.rate(step, total=total, settings=settings.optimizer)
            with signals.defer():
                result = train_step(
                    self.trained, self.streams, adam, limits, lr=lr, clip=settings.optimizer.clip,
                    accumulate=accumulate, where=f"step {self.state.overall + 1}",
                    ranks=several if ranks.world() > 1 else OneRank,
                )  # fmt: skip
                self._finish_step()  # the one before, so that an accelerator has this one to do meanwhile
                self.state.step = step + 1
                self.pending_report = partial(self._report_step, result, meter, settings.name, self.state.overall)
                if self.device.type == "cpu":
                    self._finish_step()
            last = step + 1 == total
            if self.state.overall == COLLAPSE_STEP or (last and self.state.overall < COLLAPSE_STEP):
                self._warn_of_collapse()
            if choices := self.selector.list_due(step + 1, last=last) if settings.select else []:
                self._evaluate(choices)
            every, ends = self.recipe.checkpoint_every, last or self.selector.is_exhausted
            if every is not None and (ends or (every and (step + 1) % every == 0) or (choices and not every)):
                self._save(adam)
            if received := max(ranks.exchange(signals.received))[0]:
                if every is not None and self.saved_step != self.state.overall:
                    self._save(adam)
                self._finish_step()
                signals.obey(received)
        self._finish_step()

    def _report_step(self, result: StepResult, meter: Meter, stage: str, step: int) -> None:
        """Write a step of the run to the log, and show it."""
        reports, norm = result.read()
        self.has_gradient |= norm > 0
        status = meter.read(reports, stage=stage, step=step - self.state.done, lr=result.lr, norm=norm)
        self.log.write(
            "step", step, stage=stage, losses=status.losses, lr=result.lr, norm=norm, padding=status.padding,
            negatives=status.negatives,
        )  # fmt: skip
        self.update(status)

    def _finish_step(self) -> None:
        """Wait for the newest step and report it, if it was not. Raises CheckpointError for a value that is not finite.

        Before anything is made of the encoder: an accelerator updates its weights before the host knows the loss.
        """
        report, self.pending_report = self.pending_report, None
        if report is not None:
            report()

    @contextmanager
    def _join_weights(self) -> Iterator[Encoder]:
        """The encoder with all its present weights, on the device. All ranks call it."""
        if self.trained is self.encoder:
            yield self.encoder
        else:
            yield gather(self.trained, self.encoder.to(self.device))
            self.encoder.cpu()
        self.trained.train()

    def _warn_of_collapse(self) -> None:
        """Warn if nothing was learnt so far, or all vectors are nearly equal, which dev scores do not explain."""
        self._finish_step()
        if not self.has_gradient:
            cause = "groups of one sentence, which have no positive (batching.views = 2 repeats them, SimCSE), or "
            cause += "batches of one group, which have no negative"
            self.log.write("warning", self.state.overall, warning="no gradient", cause=cause)
            self.report(f"warning: no loss has had a gradient, so nothing was learnt; a likely cause is {cause}")
        batch = self.streams[0].latest
        with self._join_weights() as encoder, torch.no_grad():
            if batch is None or ranks.rank() > 0:
                return
            first = (batch.group[:, None] == torch.unique(batch.group)[None, :]).int().argmax(dim=0)  # of each group
            tokens = batch.tokens.select(first[:64])
            vectors = encoder.eval()(tokens)
        if (spread := measure_collapse(vectors)) is not None:
            cause = 'first-token pooling (pooling = "cls") of a backbone cut by `layers`; use mean pooling'
            self.log.write("warning", self.state.overall, warning="collapsed vectors", spread=spread, cause=cause)
            self.report(
                f"warning: the vectors are collapsed: the cosines of {len(tokens)} sentences differ by {spread:.0e}; a "
                f"likely cause is {cause}"
            )

    def _evaluate(self, choices: Sequence[Choice]) -> None:
        """Score the encoder on the dev tasks that are due; keep it where it is the best so far."""
        self._finish_step()
        with self._join_weights() as encoder:
            self.selector.judge(choices, encoder)
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
        self._finish_step()
        random, moments = ranks.collect(random_state(self.device)), gather_state(adam.state_dict())
        with self._join_weights() as encoder:
            weights = encoder.state_dict()
        if ranks.rank() == 0:
            state = {
                "encoder": weights,
                "objectives": [stream.objective.state_dict() for stream in self.streams],
                "optimizer": moments,
                "selector": self.selector.snapshot(),
                "data": {name: entry.model_dump() for name, entry in self.data.items()},
                "random": random,
                "state": {**asdict(self.state), "positions": [astuple(stream.position) for stream in self.streams]},
            }
            checkpoint.save(self.output / "checkpoints", self.state.overall, state)
        ranks.wait()
        self.saved_step = self.state.overall


def measure_collapse(vectors: Tensor) -> float | None:
    """The standard deviation of the cosines between the rows (N, D), if all are nearly one; None for other vectors."""
    if len(vectors) < 3:
        return None
    unit = torch.nn.functional.normalize(vectors.double(), dim=1)
    cosines = (unit @ unit.T)[~torch.eye(len(unit), dtype=torch.bool, device=unit.device)]
    uniformity = torch.exp(-4 * (1 - cosines)).mean().log()  # Wang and Isola 2020: t = 2, squared distance 2 - 2 cosine
    spread = float(cosines.std())
    return spread if spread < 1e-3 and float(uniformity) > -1e-2 else None


class Signals:
    """SIGINT and SIGTERM, inside `with`: the first one that is received during `deferred` waits until it is obeyed. A
    second one does not wait, unless both are SIGTERM.

    Then the previous handler is called, or the process ends, as it would without this class. Does nothing in other
    threads than the main one, and leaves signals that are ignored.
    """

    def __init__(self) -> None:
        self.received = 0  # the number of the signal that waits
        self._deferring = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for code in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(code) not in (signal.SIG_IGN, None):
                    self._before[code] = signal.signal(code, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for code, handler in self._before.items():
            signal.signal(code, handler)

    @contextmanager
    def defer(self) -> Iterator[None]:
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
        if self.received == received == signal.SIGTERM:
            return  # of the group, and then of the parent that has received it too
        if not self._deferring or self.received:
            self.obey(received, frame)
        else:
            self.received = received
