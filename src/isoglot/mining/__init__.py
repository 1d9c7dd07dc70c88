"""Mining of translation pairs from sentences in lists or files, and filtering of noisy pairs."""

from isoglot.mining.filtering import Filtered, filter_pairs
from isoglot.mining.formats import MinedPair
from isoglot.mining.negatives import add_hard_negatives
from isoglot.mining.pipeline import Computation, Filters, MinedPairs, Output, mine

__all__ = [
    "Computation",
    "Filtered",
    "Filters",
    "MinedPair",
    "MinedPairs",
    "Output",
    "add_hard_negatives",
    "filter_pairs",
    "mine",
]
