"""Nearest neighbours, margins and mining: numpy in, numpy out."""

from isoglot.search.approximate import INDEXES, approximate, recall
from isoglot.search.checkpoint import Checkpoint
from isoglot.search.estimate import Estimate, estimate
from isoglot.search.margin import MARGINS, margins
from isoglot.search.mining import DIRECTIONS, Pairs, choose, mine
from isoglot.search.neighbours import Neighbours, Product, neighbours
from isoglot.search.threshold import Quality, quality, tune
from isoglot.search.within import choose_within, mine_within, others

__all__ = [
    "DIRECTIONS",
    "INDEXES",
    "MARGINS",
    "Checkpoint",
    "Estimate",
    "Neighbours",
    "Pairs",
    "Product",
    "Quality",
    "approximate",
    "choose",
    "choose_within",
    "estimate",
    "margins",
    "mine",
    "mine_within",
    "neighbours",
    "others",
    "quality",
    "recall",
    "tune",
]
