"""Twins."""

from __future__ import annotations

from isoglot.encoders.base import Encoder


class Twins(Encoder):
    """Two copies."""

    def __init__(self, first: Encoder, second: Encoder) -> None:
        super().__init__()
