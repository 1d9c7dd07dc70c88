"""Weights in bfloat16 that autocast would otherwise round again for each chunk.

Autocast keeps what it rounded only for trained weights and only during one pass. Weights that do not change between
two chunks are rounded once here, to the same values, until they are changed or moved.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from isoglot.encoders.base import evaluating

if TYPE_CHECKING:
    from isoglot.encoders.base import Encoder

_CASTING = ("cpu", "cuda", "xpu")  # types of devices on which autocast casts the inputs of linear layers
_weights: Any = WeakIdKeyDictionary()  # frozen weights: their state and the rounded copy
_encoders: WeakKeyDictionary[Encoder, tuple[object, Encoder]] = WeakKeyDictionary()
_lock = threading.Lock()


def state_of(weight: Tensor) -> tuple[int, int, torch.dtype]:
    """The memory of a weight and the count of changes made in it."""
    return weight.data_ptr(), 0 if weight.is_inference() else weight._version, weight.dtype


def rounded(weight: Tensor) -> Tensor:
    """A frozen weight as autocast rounds it, computed once; the weight itself without autocast."""
    kind = weight.device.type
    is_casting = kind in _CASTING and torch.is_autocast_enabled(kind)
    if not is_casting or weight.requires_grad or weight.dtype != torch.float32:
        return weight
    state, dtype = state_of(weight), torch.get_autocast_dtype(kind)
    with _lock:
        entry = _weights.get(weight)
        if entry is None or entry[0] != (state, dtype):
            with torch.inference_mode(mode=False):  # or the copy could not be used in training
                entry = _weights[weight] = (state, dtype), weight.detach().to(dtype)
    copy: Tensor = entry[1]
    return copy


def rounded_encoder(encoder: Encoder) -> Encoder:
    """The encoder for inference in bfloat16: a copy whose linear layers are rounded and that shares all else."""
    if encoder.device.type not in _CASTING:
        return encoder
    state = [encoder.training, *map(state_of, encoder.parameters())]
    with _lock:
        entry = _encoders.get(encoder)
        if entry is None or entry[0] != state:
            copy = evaluating(encoder, always_copy=True)
            for part in copy.modules():
                if isinstance(part, nn.Linear):
                    part._parameters = {name: _half(weight) for name, weight in part._parameters.items()}
            entry = _encoders[encoder] = state, copy
    return entry[1]


def _half(weight: nn.Parameter | None) -> nn.Parameter | None:
    if weight is None or weight.dtype != torch.float32:
        return weight
    return nn.Parameter(weight.detach().to(torch.bfloat16), requires_grad=False)
