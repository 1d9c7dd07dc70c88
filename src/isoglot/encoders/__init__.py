"""Encoders: transformers and static tables, inference, the saved format, and named weights.

Importing this loads torch but not transformers, which takes seconds and is imported when a transformer is opened.
"""

from __future__ import annotations

from isoglot.encoders.averaging import average
from isoglot.encoders.base import Encoder, encode
from isoglot.encoders.fitting import fit_flow, fit_whitening
from isoglot.encoders.loading import load
from isoglot.encoders.packaged import DEFAULT
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.encoders.vocabulary import trim

__all__ = [
    "DEFAULT",
    "Encoder",
    "StaticEncoder",
    "TransformerEncoder",
    "average",
    "encode",
    "fit_flow",
    "fit_whitening",
    "load",
    "trim",
]
