"""Towers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isoglot.encoders.base import Encoder


class Towers(Encoder):
    """Several encoders."""

    def __init__(self, towers: Mapping[str, Encoder], scripts: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
