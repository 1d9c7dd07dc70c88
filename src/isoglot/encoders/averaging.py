"""Weighted means of the weights of encoders: of several runs (Wortsman et al. 2022), or of the start and the end of one
run. Averaging a fine-tuned encoder with its starting point often preserves the strengths of the starting point
(WiSE-FT).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from pathlib import Path

import torch

from isoglot.core.arguments import check_arguments
from isoglot.core.errors import EncoderError
from isoglot.encoders.adapters import find_adapters
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.loading import load
from isoglot.model import Model


@check_arguments()
def average(models: Sequence[str | Path | Model], weights: Sequence[float] | None = None) -> Encoder:
    """A copy of the first of two or more encoders with the weighted mean of all their weights, in evaluation mode.

    models   encoders, or what `isoglot.load` opens, which are opened one at a time
    weights  one for each model, with the sum 1, negative ones included; None: equal

    Everything else, such as prompt and pooling, is that of the first. Raises ValueError for impossible weights,
    EncoderError for models of different architectures or tokenizers.
    """
    if len(models) < 2:
        raise ValueError(f"average needs at least two models, got {len(models)}")
    shares = [1 / len(models)] * len(models) if weights is None else list(weights)
    if len(shares) != len(models):
        raise ValueError(f"weights: pass one for each of the {len(models)} models, got {len(shares)}")
    if not math.isclose(sum(shares), 1, abs_tol=1e-6):  # also rejects NaN and infinity
        raise ValueError(f"weights must have the sum 1, got {', '.join(map(str, shares))}")
    first = _open(models[0])
    mean = copy.deepcopy(first).eval()
    for part in mean.modules():
        if isinstance(part, Encoder):
            part.name = part.origin = ""
    made_of = ", ".join(_name(model, place) for place, model in enumerate(models))
    mean.card = first.card and first.card.derive(made_of)
    total = mean.state_dict()  # views, not copies: changed in place
    with torch.no_grad():
        for place, (model, share) in enumerate(zip(models, shares, strict=True)):
            encoder = first if place == 0 else _open(model)
            state = encoder.state_dict()
            _require_alike(first, encoder, name=_name(model, place))
            for name, weight in total.items():
                if weight.is_floating_point():
                    weight.copy_(weight * share if place == 0 else weight + share * state[name].to(weight))
                elif not torch.equal(weight, state[name].to(weight)):
                    raise EncoderError(f"{_name(model, place)}: {name} differs and can't be averaged")
    return mean


def _open(model: str | Path | Model) -> Encoder:
    encoder = model.trainable() if isinstance(model, Model) else load(model)
    if find_adapters(encoder):
        raise EncoderError("an adapter that is not merged can't be averaged; save the encoder and load it again")
    return encoder


def _name(model: str | Path | Model, place: int) -> str:
    return f"model {place + 1}" if isinstance(model, Model) else str(model)


def _require_alike(first: Encoder, other: Encoder, *, name: str) -> None:
    """Raise EncoderError for another class, other names or shapes of weights, or a tokenizer with other ids."""
    ours, theirs = ({k: tuple(v.shape) for k, v in encoder.state_dict().items()} for encoder in (first, other))
    why = ""
    if type(first) is not type(other):
        why = f"is a {type(other).__name__}, and the first is a {type(first).__name__}"
    elif different := sorted(key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)):
        shapes = f"{theirs.get(different[0])}, there {ours.get(different[0])}"
        why = f"its architecture differs from the first: {different[0]} has the shape {shapes}"
    else:
        view = evaluating(other, always_copy=True)
        for one, copied in zip(_innermost(first), _innermost(view), strict=True):  # which are no part of the tokenizer
            copied.max_length, copied.prompt = one.max_length, one.prompt
        why = "" if first.fingerprint == view.fingerprint else "its tokenizer differs from that of the first"
    if why:
        raise EncoderError(f"{name}: {why}; only models made from the same one can be averaged")


def _innermost(encoder: Encoder) -> list[Encoder]:
    """The encoders in an encoder, itself included, that contain no other."""
    encoders = [part for part in encoder.modules() if isinstance(part, Encoder)]
    return [part for part in encoders if sum(isinstance(inner, Encoder) for inner in part.modules()) == 1]
