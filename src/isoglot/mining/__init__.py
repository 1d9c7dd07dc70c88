"""Translation pairs of sentences in lists or files: mined, aligned in order, and filtered."""

from isoglot.mining.alignment import Alignment, Alignments, align
from isoglot.mining.filtering import Filtered, filter_pairs
from isoglot.mining.formats import MinedPair
from isoglot.mining.negatives import add_hard_negatives
from isoglot.mining.pipeline import Computation, Filters, MinedPairs, Output, mine

__all__ = [
    "Alignment", "Alignments", "Computation", "Filtered", "Filters", "MinedPair", "MinedPairs", "Output",
    "add_hard_negatives", "align", "filter_pairs", "mine",
]  # fmt: skip
