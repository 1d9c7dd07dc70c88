"""Nearest neighbours, margins and pairs of vectors: numpy in, numpy out. `isoglot.mine` is the whole pipeline."""

from isoglot.search.binary import search_binary
from isoglot.search.checkpoint import Checkpoint
from isoglot.search.exact import Neighbours, neighbours
from isoglot.search.faiss_index import KINDS, approximate, recall
from isoglot.search.pairs import (
    DIRECTIONS,
    MARGINS,
    Pairs,
    choose,
    hard_negatives,
    margins,
    mine,
    others,
)
from isoglot.search.threshold import Estimate, Quality, estimate, quality, tune

__all__ = [
    "DIRECTIONS", "KINDS", "MARGINS", "Checkpoint", "Estimate", "Neighbours", "Pairs", "Quality", "approximate",
    "choose", "estimate", "hard_negatives", "margins", "mine", "neighbours", "others", "quality", "recall",
    "search_binary", "tune",
]  # fmt: skip
