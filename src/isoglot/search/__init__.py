"""Nearest neighbours, margins and pairs of vectors: numpy in, numpy out. `isoglot.mine` is the whole pipeline."""

from isoglot.search.checkpoint import Checkpoint
from isoglot.search.exact import Neighbours, neighbours
from isoglot.search.faiss_index import KINDS, approximate, recall
from isoglot.search.pairs import (
    DIRECTIONS,
    MARGINS,
    Pairs,
    choose,
    choose_within,
    hard_negatives,
    margins,
    mine,
    mine_within,
    others,
)
from isoglot.search.threshold import Estimate, Quality, estimate, quality, tune

__all__ = [
    "DIRECTIONS",
    "KINDS",
    "MARGINS",
    "Checkpoint",
    "Estimate",
    "Neighbours",
    "Pairs",
    "Quality",
    "approximate",
    "choose",
    "choose_within",
    "estimate",
    "hard_negatives",
    "margins",
    "mine",
    "mine_within",
    "neighbours",
    "others",
    "quality",
    "recall",
    "tune",
]
