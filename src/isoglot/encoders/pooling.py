"""How the states of a sentence's tokens become its vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Pooling(NamedTuple):
    """A function, and the numbers of the layers whose states it takes: 0 is the embedding layer, before any attention,
    1 the first layer of attention, -1 the last one.

    The function takes the states of these layers, each (N, T, D), and the mask (N, T), None where nothing is padded,
    and gives (N, D). It is exported to ONNX by tracing one batch with a mask, so it must be made of tensor operations
    that opset 17 has, with sizes read from `.shape` (`len` of a tensor becomes a constant). A loop over texts or
    tokens, an `if` on values or sizes, `int()` and `.item()` would be traced for that batch only.
    """

    function: Callable[[Sequence[Tensor], Tensor | None], Tensor]
    layers: tuple[int, ...] = (-1,)

    @property
    def is_layered(self) -> bool:
        """Whether it needs states of other layers than the last."""
        return self.layers != (-1,)

    def __call__(self, states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
        """The vectors (N, D) from the states of all layers, or of the last alone if it is not layered."""
        return self.function([states[layer] for layer in self.layers], mask)


def cls(states: Sequence[Tensor], _mask: Tensor | None) -> Tensor:
    """The state of the first token."""
    return states[0][:, 0]


def mean(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The mean of the layers, and of that the mean over a sentence's tokens."""
    state = states[0] if len(states) == 1 else sum(states[1:], states[0]) / len(states)
    if mask is None:
        return state.mean(dim=1)
    weight = mask[:, :, None].to(state.dtype)
    return (state * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)


def maximum(states: Sequence[Tensor], mask: Tensor | None) -> Tensor:
    """The largest value of each dimension over a sentence's tokens."""
    if mask is None:
        return states[0].amax(dim=1)
    hidden = mask[:, :, None] == 0
    return states[0].masked_fill(hidden, torch.finfo(states[0].dtype).min).amax(dim=1)


# "first-last" means two things in the literature: EASE and mSimCSE average the output of the embedding layer with that
# of the last layer, SimCSE today takes the output of layer 1 instead. Both are here. A new pooling is a row.
POOLINGS = {
    "cls": Pooling(cls),
    "mean": Pooling(mean),
    "max": Pooling(maximum),
    "first-last": Pooling(mean, (0, -1)),
    "first1-last": Pooling(mean, (1, -1)),
}
