"""How the memory of accelerators is used: for as many graphs as it holds, and for parts of the weights (FSDP2).

Ranks that divide the weights hold the parts of all layers, of their gradients and of the moments, and while a layer
computes the whole of it. `torch.distributed.fsdp` gathers the layers and sums the gradients; the step does the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import torch
from torch import Tensor

from isoglot.core.errors import RecipeError
from isoglot.encoders.adapters import stack
from isoglot.encoders.base import Encoder
from isoglot.encoders.device import same_randomness_after
from isoglot.encoders.towers import Towers
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.training import ranks
from isoglot.training.step import Chunks, StepLimits

_GRAPH_SHARE = 0.7  # the rest is for the logits, for a chunk without a graph and for what allocations leave between


def fit_graphs(limits: StepLimits, encoder: Encoder, optimizer: torch.optim.Optimizer) -> StepLimits:
    """The limits with the `graph_tokens` that an accelerator has memory for; unchanged where it can't be asked.

    What a token takes is measured, on the encoder in its present mode, unless its weights are divided. Gradients and,
    before the first step, the two moments of the optimizer have yet to find a place; of the rest, _GRAPH_SHARE is for
    graphs.
    """
    device = encoder.device
    memory: Any = torch.get_device_module(device)
    if not hasattr(memory, "mem_get_info") or ranks.is_divided(encoder):
        return limits
    tokens = encoder.tokenize(["7 " * 64] * 32)
    with same_randomness_after(device), limits.autocast(encoder):
        first = encoder(tokens)  # after which weights are rounded, and libraries have their workspace
        before = memory.memory_allocated(device)
        second = encoder(tokens)
        used = memory.memory_allocated(device) - before
        del first, second
    free = memory.mem_get_info(device)[0] + memory.memory_reserved(device) - memory.memory_allocated(device)
    weights = sum(each.nbytes for group in optimizer.param_groups for each in group["params"])
    free -= weights * (1 if optimizer.state else 3)
    share = max(0.0, _GRAPH_SHARE * free / max(used, 1))
    return replace(limits, graph_tokens=int(share * Chunks.of(encoder, tokens, limits).padded))


def divide(encoder: Encoder, device: torch.device) -> Encoder:
    """A copy of the encoder on a device, whose layers' weights are divided among the ranks. All ranks call it.

    Raises RecipeError for an encoder whose parts do not all take part in every pass, or with row-sparse gradients.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    divided: Any = copy.deepcopy(encoder)
    transformers = [part for part in divided.modules() if isinstance(part, TransformerEncoder)]
    is_sparse = any(getattr(part, "sparse", False) for part in divided.modules())
    if not transformers or is_sparse or isinstance(divided, Towers):
        kind = f"{type(encoder).__name__}{' with sparse_embeddings' if is_sparse else ''}"
        raise RecipeError(f"memory.shard_weights: the weights of a {kind} cannot be divided; write false")
    mesh = init_device_mesh(device.type, (ranks.world(),))
    for part in [*chain(*(stack(each.backbone) for each in transformers)), divided]:
        fully_shard(part, mesh=mesh)
        part.set_gradient_divide_factor(1.0)  # gradients are summed
        part.set_force_sum_reduction_for_comms(True)
    divided.set_requires_gradient_sync(False)  # except in the last pass of a step
    return cast(Encoder, divided)


def gather(divided: Any, encoder: Encoder) -> Encoder:
    """The encoder with a copy of the weights of `divided`. All ranks call it."""
    divided.reshard()
    with torch.no_grad():
        for whole, parts in zip(encoder.parameters(), divided.parameters(), strict=True):
            whole.copy_(parts.full_tensor())
    return encoder


def gather_state(state: dict[str, Any]) -> dict[str, Any]:
    """The state of an optimizer with whole tensors. All ranks call it."""
    return _each_moment(state, lambda _, value: value.full_tensor().cpu() if ranks.is_divided(value) else value)


def divide_state(state: dict[str, Any], optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The opposite, for the weights of an optimizer."""
    weights: list[Any] = [weight for group in optimizer.param_groups for weight in group["params"]]

    def divided(number: int, value: Any) -> Any:
        weight = weights[number]
        if not ranks.is_divided(weight) or not isinstance(value, Tensor) or not value.ndim:
            return value
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(value.to(weight.device), weight.device_mesh, weight.placements, src_data_rank=None)

    return _each_moment(state, divided)


def _each_moment(state: dict[str, Any], change: Callable[[int, Any], Any]) -> dict[str, Any]:
    moments = {
        number: {name: change(number, value) for name, value in entry.items()}
        for number, entry in state["state"].items()
    }
    return {**state, "state": moments}
