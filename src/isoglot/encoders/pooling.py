"""How the states of a sentence's tokens become its vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# Poolings take the hidden states of all layers, first to last, each (N, T, D), and the mask (N, T), None where nothing
# is padded, and give (N, D). `states[0]` is the embedding layer's output, before any attention. "first-last" means two
# things in the literature: EASE and mSimCSE average that with the last layer, SimCSE today takes the output of layer 1
# instead. Both are here.
#
# A new pooling is a function and its row in `POOLINGS`. It is exported to ONNX by tracing one batch with a mask, so it
# must be made of tensor operations that opset 17 has, with sizes read from `.shape` (`len` becomes a constant). A loop
# over texts or tokens, an `if` on values or sizes, `int()` and `.item()` would be traced for that batch only.

Pooling = Callable[[Sequence[Tensor], Tensor | None], Tensor]


def cls(states: Sequence[Tensor], _mask: Tensor | None) -> Tensor:
    """The last layer's state of the first token."""
    return states[-1][:, 0]


def mean(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The mean of the last layer's states over a sentence's tokens."""
    return _mean(states[-1], mask)


def maximum(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The largest value of each dimension over a sentence's tokens."""
    if mask is None:
        return states[-1].amax(dim=1)
    hidden = mask[:, :, None] == 0
    return states[-1].masked_fill(hidden, torch.finfo(states[-1].dtype).min).amax(dim=1)


def first_last(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The mean over tokens of the embedding layer's output averaged with the last layer's."""
    return _mean((states[0] + states[-1]) / 2, mask)


def first1_last(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The mean over tokens of the first attention layer's output averaged with the last layer's."""
    return _mean((states[1] + states[-1]) / 2, mask)


def _mean(states: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return states.mean(dim=1)
    weight = mask[:, :, None].to(states.dtype)
    return (states * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)


POOLINGS: dict[str, Pooling] = {
    "cls": cls,
    "mean": mean,
    "max": maximum,
    "first-last": first_last,
    "first1-last": first1_last,
}
FIRST_LAYER = {"first-last": 0, "first1-last": 1}  # these need the states of all layers
