"""Mining: from sentences, in lists or files, to the pairs that translate each other."""

from isoglot.mining.formats import MinedPair
from isoglot.mining.negatives import add_hard_negatives
from isoglot.mining.pipeline import MinedPairs, mine

__all__ = ["MinedPair", "MinedPairs", "add_hard_negatives", "mine"]
