"""What an encoder is: anything that turns texts into tokens, and tokens into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from isoglot.data.batch import Tokens


class Encoder(nn.Module):
    """Texts to tokens to vectors. Inference, batching, caching and saving are built on these members alone.

    dim          width D of the vectors
    max_length   most tokens kept of a sentence, special tokens included
    prompt       put before every text unless a call passes another; None: the parts each have their own
    pooling      how a vector is made of a sentence's token states, a key of `POOLINGS`; "" where there is no choice
    normalizes   whether the model was saved with a Normalize module: `encode` then gives unit vectors by default
    pads         whether forward pads its rows to the longest, so that rows of like length should meet
    concurrent   whether several threads may call forward at once, each with one of torch's threads; on a CPU that is
                 faster than one call with all of them, unless forward is no work for a thread
    tokenize     texts -> ragged `Tokens`, truncated to max_length, special tokens added; `prompt`, if not None, takes
                 the place of the encoder's own for this call. Any number of threads may call it
    forward      `Tokens` of N sentences -> (N, D), not normalised; padding is the encoder's own affair
    fingerprint  changes when the ids of any text would change: the key of token caches
    save         writes a folder that `isoglot.load` and sentence-transformers open
    exports      what training may leave behind: itself, or the parts among which the dev score chooses
    """

    dim: int
    max_length: int
    prompt: str | None = ""
    pooling: str = ""
    normalizes: bool = False
    pads: bool = True
    concurrent: bool = False

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
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

    @property
    def device(self) -> torch.device:
        """Where the encoder's weights are; the CPU if it has none."""
        return next((weight.device for weight in self.parameters()), torch.device("cpu"))

    def exports(self) -> Sequence[Encoder]:
        """The encoders that training may leave behind; the first one where there is no dev score."""
        return (self,)


def evaluating(encoder: Encoder, *, always_copy: bool = False) -> Encoder:
    """The encoder in evaluation mode: itself if all of it is, else a copy that shares everything but the mode.

    So nobody's mode is changed: another thread may be training the encoder or encoding with it meanwhile.
    """
    if not always_copy and not any(module.training for module in encoder.modules()):
        return encoder
    copies: dict[nn.Module, nn.Module] = {}

    def copied(module: nn.Module) -> nn.Module:
        if module not in copies:
            new = copies[module] = module.__new__(type(module))
            new.__dict__ = {**module.__dict__, "training": False}
            new.__dict__["_modules"] = {
                name: child if child is None else copied(child) for name, child in module._modules.items()
            }
        return copies[module]

    return cast(Encoder, copied(encoder))
