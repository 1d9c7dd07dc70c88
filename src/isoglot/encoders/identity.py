"""Which encoder this is, told by everything that its vectors depend on: the key under which vectors are kept."""

from __future__ import annotations

import hashlib

import torch

from isoglot.encoders.base import Encoder
from isoglot.encoders.transformer import TransformerEncoder

_SETTINGS = ("dim", "pads", "pooling", "normalizes", "pad")  # in this order, which kept vectors depend on


def identity(encoder: Encoder) -> str:
    """Hexadecimal digest of weights, tokenizer, truncation, prompt and pooling; a second for a billion weights' bytes.

    Two encoders of one identity give the same vectors up to rounding; the device and the batch size are no part of it.
    """
    known = [f"{type(encoder).__qualname__} {encoder.fingerprint}"]
    settings: dict[str, object] = {"dim": encoder.dim, "pads": encoder.pads, "normalizes": encoder.normalizes}
    if encoder.pooling:
        settings["pooling"] = encoder.pooling
    if isinstance(encoder, TransformerEncoder):
        settings["pad"] = encoder.pad
    known += [f"{name}={settings[name]}" for name in _SETTINGS if name in settings]
    checksum = hashlib.sha256("\n".join(known).encode())
    for name, weight in sorted(encoder.state_dict().items()):
        checksum.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        checksum.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return checksum.hexdigest()
