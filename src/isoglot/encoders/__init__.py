"""Encoders of torch, which can be trained: transformers, static tables, towers, and what changes their weights.

Importing this loads torch but not transformers, which takes seconds and is imported when a transformer is opened. What
training does not need is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from isoglot.encoders.base import Encoder, to_tensor
from isoglot.encoders.loading import load
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder

if TYPE_CHECKING:
    from isoglot.encoders.averaging import average
    from isoglot.encoders.fitting import fit_flow, fit_whitening
    from isoglot.encoders.vocabulary import trim

_LATER = {"average": "averaging", "fit_flow": "fitting", "fit_whitening": "fitting", "trim": "vocabulary"}

__all__ = [
    "Encoder",
    "StaticEncoder",
    "TransformerEncoder",
    "average",
    "fit_flow",
    "fit_whitening",
    "load",
    "to_tensor",
    "trim",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'isoglot.encoders' has no attribute {name!r}")
    return getattr(importlib.import_module(f"isoglot.encoders.{_LATER[name]}"), name)
