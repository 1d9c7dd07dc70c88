"""What an encoder is: anything that turns texts into tokens, and tokens into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor, nn

from isoglot.data.batch import Tokens


class Encoder(nn.Module):
    """Texts to tokens to vectors. Inference, batching, caching and saving are built on these members alone.

    dim          width D of the vectors
    max_length   most tokens kept of a sentence, special tokens included
    pads         whether forward pads its rows to the longest, so that rows of like length should meet
    concurrent   whether several threads may call forward at once, each with one of torch's threads; on a CPU that is
                 faster than one call with all of them, unless forward is no work for a thread
    tokenize     texts -> ragged `Tokens`, truncated to max_length, special tokens added
    forward      `Tokens` of N sentences -> (N, D), not normalised; padding is the encoder's own affair
    fingerprint  changes when the ids of any text would change: the key of token caches
    save         writes a folder that `isoglot.load` and sentence-transformers open
    exports      what training may leave behind: itself, or the parts among which the dev score chooses
    """

    dim: int
    max_length: int
    pads: bool = True
    concurrent: bool = False

    def tokenize(self, texts: Sequence[str]) -> Tokens:
        """Token ids of each text; an empty text gives a row too."""
        raise NotImplementedError

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) vectors of N tokenised sentences."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """Hexadecimal digest of tokenizer and truncation."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write the encoder to `folder` in the sentence-transformers layout, atomically."""
        raise NotImplementedError

    def exports(self) -> Sequence[Encoder]:
        """The encoders that training may leave behind; the first one where there is no dev score."""
        return (self,)
