"""The training loop: stages, steps, evaluations and checkpoints, in the order in which they happen.

A run lives in one folder: `run.json` (what was run), `log.jsonl`, `checkpoints/` and `model/`, which holds the best
encoder by the dev score, or the last one where there is none. A run that is killed and resumed gives the same
model, bit for bit on one device, as one that is not: whatever changes from step to step is in the checkpoint.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isoglot.data.batching import Position
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import resolve
from isoglot.errors import CheckpointError
from isoglot.settings import Recipe
from isoglot.training import checkpoint, optimizer, ranks
from isoglot.training.best import Selector
from isoglot.training.encoder import make_encoder
from isoglot.training.log import RunLog
from isoglot.training.progress import Watch, silent
from isoglot.training.setup import Stream, alone, begun, make_streams, write_run
from isoglot.training.stage import Stage


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
    """Where the run stands; with the modules' own state, all of a checkpoint."""

    stage: int = 0
    step: int = 0  # of the stage
    done: int = 0  # steps of the stages before
    positions: list[Position] = field(default_factory=list)

    @property
    def overall(self) -> int:
        """Steps of the whole run."""
        return self.done + self.step


def train(
    recipe: Recipe,
    output: str | Path,
    *,
    seed: int | None = None,
    resume: bool = False,
    device: torch.device | None = None,
    watch: Watch = silent,
) -> Outcome:
    """Run a recipe into the folder `output`; with `resume`, go on from its newest whole checkpoint.

    Raises CheckpointError if the folder holds a run already and `resume` is False, or a run of another recipe, and
    OutputError while another run writes there or if something else is in the place of what will be written.
    """
    began, output = time.monotonic(), Path(output)
    models = [choice.folder for choice in Selector(recipe, output).choices] or [output / "model"]
    with ranks.group(), alone(recipe, output, models):
        run = Run(recipe, output, seed=recipe.seed if seed is None else seed, device=device or resolve(), watch=watch)
        run.open(resume=resume)
        try:
            for number in range(run.state.stage, len(recipe.stages)):
                if run.selector.exhausted:
                    break
                run.stage(number)
            run.finish()
        finally:
            run.log.close()
    best, seconds = run.selector.best, time.monotonic() - began
    return Outcome(output / "model", best, run.state.overall, seconds, run.selector.lower_is_better)


class Run:
    """One run of a recipe: the encoder, where it stands, and what it writes."""

    def __init__(self, recipe: Recipe, output: Path, *, seed: int, device: torch.device, watch: Watch) -> None:
        self.recipe, self.output, self.seed, self.device = recipe, output, seed, device
        self.watch = watch if ranks.rank() == 0 else silent
        self.state = State()
        self.saved: dict[str, Any] | None = None
        self.selector = Selector(recipe, output)  # first, so that a mistake in [evaluation] is found at once
        torch.manual_seed(seed)
        recipe.check_text()  # before a tokenizer is trained or a table is built
        with ranks.first_alone():
            self.encoder: Encoder = make_encoder(recipe, seed=seed, watch=self.watch).to(device)

    def open(self, *, resume: bool) -> None:
        """Begin the folder, or take up what its newest checkpoint holds."""
        folder = self.output / "checkpoints"
        there = ranks.from_first(float(begun(self.output)))
        if there and not resume:
            raise CheckpointError(
                f"{self.output}: holds a run already; add --resume to go on with it, or name another folder"
            )
        self.saved, problems = checkpoint.load(folder) if resume else (None, [])
        for problem in problems:
            self.watch(f"{problem}; going back to the checkpoint before it")
        if ranks.rank() == 0:
            write_run(self.recipe, self.output, seed=self.seed, resume=resume)
        if self.saved is not None:
            self.encoder.load_state_dict(self.saved["encoder"])
            self.selector.restore(self.saved["selector"])
            place = self.saved["state"]
            self.state = State(place["stage"], place["step"], place["done"], [Position(*p) for p in place["positions"]])
            self.watch(f"resumed at step {self.state.overall}")
        self.log = RunLog(self.output, resumed_at=self.state.overall if resume else None)

    def stage(self, number: int) -> None:
        """Train one stage from where the run stands to its end."""
        settings = self.recipe.stages[number]
        if self.state.stage != number:
            self.state = State(number, 0, self.state.overall)
        streams = make_streams(
            self.recipe, settings, self.encoder, seed=self.seed, positions=self.state.positions, watch=self.watch
        )
        modules = [self.encoder, *(stream.objective.to(self.device) for stream in streams)]
        adam = optimizer.build(modules, settings.optimizer)
        if self.saved is not None:
            for stream, state in zip(streams, self.saved["objectives"], strict=True):
                stream.objective.load_state_dict(state)
            adam.load_state_dict(self.saved["optimizer"])
            set_chance(self.saved["random"][ranks.rank()], self.device)
            self.saved = None
        else:
            torch.manual_seed(self.seed + 1000 * number + ranks.rank())
        batches = (settings.epochs or 1) * streams[0].batches.count()
        total = settings.steps or max(1, round(batches / settings.optimizer.accumulate))
        try:
            Stage(self, settings, streams, adam, total).run()
        finally:
            for stream in streams:
                stream.close()

    def save(self, streams: list[Stream], adam: torch.optim.Optimizer) -> None:
        """Write a checkpoint of everything that changes from step to step."""
        random = ranks.collect(chance(self.device))
        if ranks.rank() == 0:
            state = {
                "encoder": self.encoder.state_dict(),
                "objectives": [stream.objective.state_dict() for stream in streams],
                "optimizer": adam.state_dict(),
                "selector": self.selector.snapshot(),
                "random": random,
                "state": {
                    "stage": self.state.stage,
                    "step": self.state.step,
                    "done": self.state.done,
                    "positions": [(p.epoch, p.pool, p.batch) for p in (stream.position for stream in streams)],
                },
            }
            checkpoint.save(self.output / "checkpoints", self.state.overall, state)
        ranks.wait()

    def finish(self) -> None:
        """Leave the encoder in `model/` unless a better one of an earlier step is there."""
        if self.recipe.evaluation and self.selector.best is None:
            self.watch("no dev score was a finite number; model/ holds the encoder of the last step")
        if ranks.rank() == 0 and self.selector.best is None:
            self.encoder.exports()[0].save(self.output / "model")
        ranks.wait()


def chance(device: torch.device) -> dict[str, Tensor]:
    """The state of the generators that dropout draws from."""
    state = {"cpu": torch.get_rng_state()}
    return state | ({"cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {})


def set_chance(state: dict[str, Tensor], device: torch.device) -> None:
    """Put the generators back; a state without a GPU's leaves that one as it is."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)
