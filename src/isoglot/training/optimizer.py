"""AdamW for dense parameters and, in the same step, its row-sparse counterpart for embedding tables.

The word table of a multilingual model is most of its parameters, and a batch touches a fraction of its rows. With a
row-sparse gradient only these rows, their moments included, are read and written. Other rows and their moments are
unchanged ("lazy" Adam; torch's SparseAdam has the same rule and takes several times as long, since it builds sparse
tensors of the moments at every step).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from isoglot.core.errors import RecipeError
from isoglot.objectives import Objective
from isoglot.training import ranks
from isoglot.training.settings import OptimizerSettings


class AdamW(torch.optim.AdamW):
    """Decoupled weight decay Adam (Loshchilov and Hutter 2019); parameters with sparse gradients are updated by row.

    The bias correction of a row counts the steps of its table, not of the row. Row-sparse tables have no decay.
    """

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        sparse: list[tuple[Tensor, Tensor]] = []
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    self._step_rows(parameter, parameter.grad.coalesce(), group)
                    sparse.append((parameter, parameter.grad))
                    parameter.grad = None
        super().step()
        # A fused step does not count as a change of weights, after which copies of them are made anew (rounding.py).
        updated = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        torch.autograd.graph.increment_version(updated)
        for parameter, grad in sparse:
            parameter.grad = grad

    def _step_rows(self, parameter: Tensor, whole: Tensor, group: dict[str, Any]) -> None:
        rows, grad = whole.indices()[0], whole.values()
        state = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        state["step"] = state["step"].cpu() + 1  # a resumed state of a fused optimizer is on the device
        beta1, beta2 = group["betas"]
        step = float(state["step"])
        mean = state["exp_avg"][rows].lerp_(grad, 1 - beta1)
        square = state["exp_avg_sq"][rows].mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        state["exp_avg"][rows], state["exp_avg_sq"][rows] = mean, square
        root = square.sqrt_().div_(math.sqrt(1 - beta2**step)).add_(group["eps"])
        parameter.index_add_(0, rows, mean.div_(root), alpha=-float(group["lr"]) / (1 - beta1**step))


def build(modules: Sequence[nn.Module], settings: OptimizerSettings, *, apart: bool = False) -> torch.optim.Optimizer:
    """An optimiser over the trainable parameters of all modules; biases, norms and vectors are not decayed.

    apart  parameters of two modules are in different groups, since a group has divided weights or whole ones

    The first step of RMSprop raises RecipeError if a table has row-sparse gradients.
    """
    # The table of an objective is not its only matrix.
    sparse = [part for module in modules for part in module.modules() if getattr(part, "sparse", False)]
    tables = {id(p) for part in sparse if not isinstance(part, Objective) for p in part.parameters(recurse=False)}
    groups, decays = [], False
    for part in [[module] for module in modules] if apart else [[*modules]]:
        trained = [p for module in part for p in module.parameters() if p.requires_grad]
        decayed = [p for p in trained if p.ndim > 1]
        plain = [p for p in trained if p.ndim <= 1]
        decays |= any(id(p) not in tables for p in decayed)
        groups += [{"params": decayed, "weight_decay": settings.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if settings.weight_decay and not decays and ranks.is_first():
        problem = "no weight that is trained decays: all are biases, norms or row-sparse tables"
        logging.getLogger("isoglot").warning("warning: optimizer.weight_decay changes nothing: %s", problem)
    if settings.kind == "rmsprop":
        rmsprop = torch.optim.RMSprop(groups, lr=settings.lr, eps=settings.eps)
        rmsprop.register_step_pre_hook(_refuse_sparse)
        return rmsprop
    return AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)


def _refuse_sparse(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    """Raise before a step: torch's RMSprop does not support sparse gradients."""
    if any(p.grad is not None and p.grad.is_sparse for group in optimizer.param_groups for p in group["params"]):
        raise RecipeError(
            'optimizer.kind: "rmsprop" cannot train row-sparse tables, as in static encoders and entity tables; '
            'write kind = "adamw"'
        )


def rate(step: int, *, total: int, settings: OptimizerSettings) -> float:
    """Learning rate of a step counted from 0: linear warm-up, then decay to zero at `total`, or the stair it is on."""
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    if settings.schedule == "stairs":
        return settings.stairs[min((step - settings.warmup) // settings.stair, len(settings.stairs) - 1)]
    progress = (step - settings.warmup) / max(1, total - settings.warmup)
    if settings.schedule == "linear":
        return settings.lr * max(0.0, 1 - progress)
    if settings.schedule == "cosine":
        return settings.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return settings.lr
