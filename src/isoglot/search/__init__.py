"""Nearest neighbours, margins and mining: numpy in, numpy out."""

from isoglot.search.margin import MARGINS, margins
from isoglot.search.mining import DIRECTIONS, Pairs, mine
from isoglot.search.neighbours import Neighbours, neighbours
from isoglot.search.threshold import Quality, quality, tune

__all__ = [
    "DIRECTIONS",
    "MARGINS",
    "Neighbours",
    "Pairs",
    "Quality",
    "margins",
    "mine",
    "neighbours",
    "quality",
    "tune",
]
