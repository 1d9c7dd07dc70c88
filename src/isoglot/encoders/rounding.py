"""Fewer operations for the same products: weights rounded once, and linear layers of the same input as one.

Autocast keeps what it rounded only for trained weights and only during one pass. Weights that do not change between
two chunks are rounded and joined once here, to the same values, until they are changed or moved.
"""

from __future__ import annotations

import threading
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.weak import WeakIdKeyDictionary

from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.device import joined_weights

_CASTING = ("cpu", "cuda", "xpu")  # types of devices on which autocast casts the inputs of linear layers
_weights: Any = WeakIdKeyDictionary()  # frozen weights: their state and the rounded copy
_encoders: WeakKeyDictionary[Encoder, tuple[object, Encoder]] = WeakKeyDictionary()
_lock = threading.Lock()


def read_state(weight: Tensor) -> tuple[int, int, torch.dtype]:
    """The memory of a weight and the count of changes made in it.

    PyTorch does not count those of fused optimizers, nor on CUDA those of operations on lists (`torch._foreach_lerp_`):
    who changes weights by them has to call `torch.autograd.graph.increment_version`.
    """
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version, weight.dtype


def round_weights(*weights: Tensor) -> Tensor:
    """Weights, one below the other, in the dtype of autocast; of one trained weight it is autocast that rounds it.

    They are computed once for a pass or, if they are frozen, until they are changed.
    """
    first, is_alone = weights[0], len(weights) == 1
    if is_alone and (first.requires_grad or first.dtype != torch.float32):
        return first
    dtype, kind, is_trained = first.dtype, first.device.type, any(weight.requires_grad for weight in weights)
    if kind in _CASTING and dtype == torch.float32 and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    if (is_alone and dtype == first.dtype) or torch.compiler.is_compiling():
        return first if is_alone else torch.cat(weights)
    if is_trained:
        joined, key = joined_weights(), (torch.is_grad_enabled(), *map(id, weights))
        if key not in joined:
            joined[key] = torch.cat(weights).to(dtype)
        return joined[key]
    state = [dtype, *map(read_state, weights)]
    with _lock:
        entry = _weights.get(first)
        if entry is None or entry[0] != state:
            with torch.inference_mode(mode=False):  # or the copy could not be used in training
                entry = _weights[first] = state, torch.cat([weight.detach().to(dtype) for weight in weights])
    return cast(Tensor, entry[1])


class Linear(nn.Linear):
    """A linear layer that autocast rounds once if it is frozen."""

    def forward(self, x: Tensor) -> Tensor:
        """(..., d_in) to (..., d_out)."""
        bias = self.bias
        return F.linear(x, round_weights(self.weight), None if bias is None else round_weights(bias))


class Joining(nn.Module):
    """A module with linear layers that read the same input, whose copy for inference has one layer instead."""

    def join(self) -> None:
        """Put one layer in the place of several."""
        raise NotImplementedError


def for_inference(encoder: Encoder, precision: str) -> Encoder:
    """A copy that shares all but linear layers: in bfloat16 they are rounded, and those of the same input are joined.

    The encoder itself where neither saves anything: on a CPU in float32, joined layers take as long. The copy is kept
    until a weight changes, but not while weights have gradients: the changes of an optimizer may not be counted.
    """
    kind = encoder.device.type
    is_rounding = precision == "bfloat16" and kind in _CASTING
    if not is_rounding and kind == "cpu":
        return encoder
    state = [is_rounding, encoder.training, *map(read_state, encoder.parameters())]
    with _lock:
        entry = _encoders.get(encoder)
        if entry is None or entry[0] != state or any(weight.grad is not None for weight in encoder.parameters()):
            copy = evaluating(encoder, always_copy=True)
            for part in reversed([*copy.modules()]):  # a layer is joined after its parts are rounded
                if is_rounding and isinstance(part, nn.Linear):
                    part._parameters = {name: _half(weight) for name, weight in part._parameters.items()}
                elif isinstance(part, Joining):
                    part.join()
            entry = _encoders[encoder] = state, copy
        whole, copies = ([part for part in each.modules() if isinstance(part, Encoder)] for each in (encoder, entry[1]))
        for part, twin in zip(whole, copies, strict=True):  # their settings, such as max_length, may have changed since
            weights = {name: twin.__dict__[name] for name in ("_modules", "_parameters", "training")}
            twin.__dict__ = {**part.__dict__, **weights}
    return entry[1]


def _half(weight: nn.Parameter | None) -> nn.Parameter | None:
    if weight is None or weight.dtype != torch.float32:
        return weight
    return nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
