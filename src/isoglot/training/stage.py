"""The steps of one stage: gradients of all streams, one move, and what is due after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from isoglot.encoders.device import bf16_pays
from isoglot.errors import CheckpointError
from isoglot.settings import StageSettings
from isoglot.training import optimizer, ranks
from isoglot.training.best import Choice, number
from isoglot.training.progress import Meter
from isoglot.training.setup import Stream
from isoglot.training.step import StepLimits, StepReport, backward, together

if TYPE_CHECKING:
    from isoglot.training.loop import Run


class Stage:
    """The steps of one stage."""

    def __init__(
        self, run: Run, settings: StageSettings, streams: list[Stream], adam: torch.optim.Optimizer, total: int
    ) -> None:
        self.run_, self.settings, self.streams, self.adam, self.total = run, settings, streams, adam, total
        precision = settings.optimizer.precision
        bf16 = bf16_pays(run.device) if precision == "auto" else precision == "bf16"
        self.limits = StepLimits(run.recipe.memory.chunk_tokens, run.recipe.memory.graph_tokens, bf16=bf16)
        self.meter = Meter(total)

    def run(self) -> None:
        """Step to the end, or to an early stop."""
        run = self.run_
        run.encoder.train()
        for step in range(run.state.step, self.total):
            lr = optimizer.rate(step, total=self.total, settings=self.settings.optimizer)
            reports, norm = self.step(lr)
            run.state.step = step + 1
            self.tell(reports, lr, norm)
            last = step + 1 == self.total
            due = run.selector.due(step + 1, last=last)
            if due:
                self.evaluate(due)
            every = run.recipe.checkpoint_every
            if last or (every and (step + 1) % every == 0) or (due and not every):
                run.save(self.streams, self.adam)
            if run.selector.exhausted:
                since = min(choice.since for choice in run.selector.choices)
                run.watch(f"stopped at step {run.state.overall}: no better dev score for {since} evaluations")
                return

    def step(self, lr: float) -> tuple[dict[str, StepReport], float]:
        """Gradients of all streams over as many batches as are accumulated, then one move of the parameters."""
        for group in self.adam.param_groups:
            group["lr"] = lr
        self.adam.zero_grad(set_to_none=True)
        rounds = self.settings.optimizer.accumulate
        done: dict[str, list[StepReport]] = {stream.name: [] for stream in self.streams}
        for stream in self.streams * rounds:
            batch = stream.next().to(self.run_.device)
            done[stream.name].append(
                backward(self.run_.encoder, stream.objective, batch, self.limits, share=1 / rounds)
            )
        ranks.sum_gradients(self.run_.encoder)  # of all streams at once: a sum that is summed again counts double
        parameters = [p for group in self.adam.param_groups for p in group["params"]]
        norm = optimizer.clip(parameters, self.settings.optimizer.clip)
        losses = [float(loss) for reports in done.values() for report in reports for loss in report.losses.values()]
        if not all(map(math.isfinite, [norm, *losses])):
            raise CheckpointError(
                f"step {self.run_.state.overall + 1}: the loss or its gradient is no longer finite; lower optimizer.lr "
                f"(now {lr:g}) or raise the temperature; what was saved before is intact"
            )
        self.adam.step()
        with torch.no_grad():
            for stream in self.streams:
                for report in done[stream.name]:
                    stream.objective.after_step(self.run_.encoder, report.batch)
        return {name: together(reports) for name, reports in done.items()}, norm

    def tell(self, reports: dict[str, StepReport], lr: float, norm: float) -> None:
        """Write the step to the log and show it."""
        progress = self.meter.read(reports, stage=self.settings.name, step=self.run_.state.step, lr=lr, norm=norm)
        if ranks.rank() == 0:
            self.run_.log.write(
                "step", self.run_.state.overall, stage=progress.stage, losses=progress.losses, lr=lr, norm=norm,
                padding=progress.padding, negatives=progress.negatives,
            )  # fmt: skip
        self.run_.watch(progress)

    def evaluate(self, choices: Sequence[Choice]) -> None:
        """Score the encoder on the dev tasks that are due; keep it where it is the best so far."""
        run = self.run_
        run.selector.judge(choices, run.encoder)
        run.encoder.train()
        for choice in choices:
            named: dict[str, Any] = {"name": choice.name} if choice.name else {}
            named |= {"lower_is_better": True} if choice.lower else {}
            if ranks.rank() == 0:
                run.log.write(
                    "evaluation", run.state.overall, **named,
                    score=number(choice.latest), best=choice.best, scores=choice.records,
                )  # fmt: skip
            told = f"dev {choice.name}".rstrip()
            best = "none yet" if choice.best is None else f"best {choice.best:.4f}"
            way = ", lower is better" if choice.lower else ""
            run.watch(f"step {run.state.overall}: {told} {choice.latest:.4f} ({best}{way})")
