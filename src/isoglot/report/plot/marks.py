"""Colours and shapes of the kinds of sentences in a map: a kind has both, so that neither is needed alone.

The colours are those of Okabe and Ito (2008), told apart with any kind of colour vision. There are eight of them and
eleven shapes, and 88 pairs before one is met again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from isoglot.report.page.figures import COLOURS


@dataclass(frozen=True, slots=True)
class Mark:
    """A colour, the name of a shape in `SHAPES`, and how many sentences have them."""

    colour: str
    shape: str
    count: int


def marks(kinds: Iterable[str]) -> dict[str, Mark]:
    """The mark of every kind, in the order of first appearance."""
    counts: dict[str, int] = {}
    for kind in kinds:
        counts[kind] = counts.get(kind, 0) + 1
    names = list(SHAPES)
    return {
        kind: Mark(COLOURS[place % len(COLOURS)], names[place % len(names)], count)
        for place, (kind, count) in enumerate(counts.items())
    }


def _polygon(corners: int, *, turn: float = 0.0, inner: float | None = None) -> str:
    """A regular polygon around 0, a corner at the top before it is turned by so many degrees; a star with `inner`."""
    radii = [1.2] if inner is None else [1.35, inner]
    number = corners * len(radii)
    path = []
    for place in range(number):
        angle = math.radians(turn + 360 * place / number)
        radius = radii[place % len(radii)]
        path.append(f"{radius * math.sin(angle):.2f} {-radius * math.cos(angle):.2f}")
    return f"M{'L'.join(path)}Z"


_PLUS = "M-.45-1.2H.45V-.45H1.2V.45H.45V1.2H-.45V.45H-1.2V-.45H-.45Z"

# Outlines around 0 of a size that looks alike, about 2 units wide. The keys are matplotlib's names of the same shapes.
SHAPES = {
    "o": "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z",
    "s": "M-.9-.9H.9V.9H-.9Z",
    "^": _polygon(3),
    "D": _polygon(4),
    "v": _polygon(3, turn=180),
    "P": _PLUS,
    "X": _polygon(4, turn=45, inner=0.55),
    "*": _polygon(5, inner=0.6),
    "<": _polygon(3, turn=270),
    ">": _polygon(3, turn=90),
    "p": _polygon(5),
}
