"""How the memory of accelerators is used: for as many graphs as it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from isoglot.encoders.base import Encoder
from isoglot.encoders.device import same_randomness_after
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
