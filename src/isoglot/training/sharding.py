"""Ranks that divide the weights of a transformer (FSDP2), which is also what its gradients and moments then are.

A rank holds its parts of all layers and, while a layer computes, the whole of that one. `torch.distributed.fsdp`
gathers the layers and sums the gradients, for which all ranks must make the same passes; the rest is here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn

from isoglot.core.errors import RecipeError
from isoglot.encoders.adapters import stack
from isoglot.encoders.base import Encoder
from isoglot.encoders.towers import Towers
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.training import ranks
from isoglot.training.step import Chunks, StepLimits, joint_norm


def divide(encoder: Encoder, device: torch.device) -> Encoder:
    """A copy of the encoder on a device, whose layers' weights are divided among the ranks. All ranks call it.

    Raises RecipeError for an encoder whose parts do not all take part in every pass, or with row-sparse gradients.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
        raise RecipeError(f"memory.shard_weights: PyTorch {torch.__version__} is too old; install 2.13 or newer")
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

    def divide(number: int, value: Any) -> Any:
        weight = weights[number]
        if not ranks.is_divided(weight) or not isinstance(value, Tensor) or not value.ndim:
            return value
        from torch.distributed.tensor import distribute_tensor

        return distribute_tensor(value.to(weight.device), weight.device_mesh, weight.placements, src_data_rank=None)

    return _each_moment(state, divide)


def _each_moment(state: dict[str, Any], change: Callable[[int, Any], Any]) -> dict[str, Any]:
    moments = {
        number: {name: change(number, value) for name, value in entry.items()}
        for number, entry in state["state"].items()
    }
    return {**state, "state": moments}


class DividedRanks(ranks.Ranks):
    """A step of ranks that divide the weights of an encoder (`divide`). All of them make the same passes."""

    encoder: Any

    def __init__(self, encoder: Any) -> None:
        super().__init__(encoder)
        self.is_summed = False

    def align(self, chunks: Chunks, limits: StepLimits) -> tuple[Chunks, StepLimits]:
        """As many chunks on every rank, and a limit by which as many keep their graph. All ranks call it.

        Chunks that make up for those of other ranks have an empty text and no rows. A weight is rounded by each chunk:
        its gradient is summed when the layer of the chunk is done.
        """
        count, graph_chunks = len(chunks.pieces), chunks.count_kept(limits.graph_tokens)
        numbers = ranks.exchange(count, graph_chunks)
        passes = max(pieces for pieces, _ in numbers)
        graph_chunks = min(passes if pieces == graphs else graphs for pieces, graphs in numbers)
        filler, more = self.encoder.prepared(self.encoder.tokenize([""])), passes - count
        rows = chunks.rows + [torch.arange(0)] * more
        pieces = [piece if len(piece) else filler for piece in chunks.pieces] + [filler] * more
        sizes = [size or len(filler.ids) for size in chunks.sizes] + [len(filler.ids)] * more
        return Chunks(rows, pieces, sizes), replace(limits, graph_tokens=sum(sizes[:graph_chunks]), rounds_once=False)

    @contextmanager
    def last_pass(self) -> Iterator[None]:
        """Sum the gradients of the passes so far and of the one in the block. All ranks call it."""
        self.encoder.set_requires_gradient_sync(True)
        yield
        self.encoder.set_requires_gradient_sync(False)
        self.is_summed = True

    def sum_gradients(self) -> None:
        """Sum them now if the last batch had nothing to learn from."""
        if not self.is_summed:
            with self.last_pass():
                (self.encoder(self.encoder.tokenize([""])).sum() * 0).backward()

    def measure(self, parameters: Iterable[nn.Parameter]) -> tuple[list[Tensor], Tensor]:
        """The gradients that every rank has and this rank's parts of the others; the norm is that of all parts."""
        weights = [*parameters]
        grads, norm = super().measure(weight for weight in weights if not ranks.is_divided(weight.grad))
        parts = [cast(Any, weight.grad).to_local() for weight in weights if ranks.is_divided(weight.grad)]
        squares = joint_norm(parts).to(self.encoder.device).square()
        dist.all_reduce(squares)
        return grads + parts, torch.hypot(norm.to(squares.device), squares.sqrt())
