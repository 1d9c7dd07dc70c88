"""Encoders: backbones and pooling, static tables, inference, the saved format, and named weights.

Importing this loads torch and not transformers, which takes seconds and is met when a transformer is opened.
"""

from __future__ import annotations

from isoglot.encoders.base import Encoder
from isoglot.encoders.inference import encode
from isoglot.encoders.loading import load
from isoglot.encoders.static import StaticEncoder
from isoglot.encoders.transformer import TransformerEncoder

__all__ = ["Encoder", "StaticEncoder", "TransformerEncoder", "encode", "load"]
