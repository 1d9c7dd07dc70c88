"""The model of an index and its settings: all that is needed to encode a query for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoglot.core.arguments import PositiveInt, check_fields
from isoglot.core.errors import EncoderError, SearchError
from isoglot.core.processes import run_ahead
from isoglot.model import load
from isoglot.model.base import Model, encode
from isoglot.model.loading import source_identity


@check_fields
@dataclass(frozen=True, slots=True)
class Origin:
    """The model that an index was built with.

    name          folder, packaged name or hub id that it is loaded by
    identity      digest of the encoder with its settings, the same for all engines (`source_identity`)
    dim           width of its vectors
    pooling       instead of the model's own; None keeps that
    prompt        text before every sentence, instead of the model's own; None keeps that
    query_prompt  text before a query; None: the same as before a sentence
    """

    name: str
    identity: str
    dim: PositiveInt
    pooling: str | None = None
    prompt: str | None = None
    query_prompt: str | None = None

    @classmethod
    def of(cls, encoder: Model, name: str = "", **settings: str | None) -> Origin:
        """The record of an encoder; `name` is made absolute if it is a folder, and defaults to where the
        encoder was loaded from, or else its name. `settings`: pooling, prompt and query_prompt.
        """
        name = name or encoder.origin or encoder.name or "model"
        full = str(Path(name).resolve()) if Path(name).is_dir() else name
        return cls(full, source_identity(encoder), encoder.dim, **settings)

    def load(self, model: str | None = None, *, device: str = "auto") -> Model:
        """The encoder, loaded by its name or from `model`. Raises `SearchError` if it is another one."""
        try:
            encoder = load(model or self.name, pooling=self.pooling, prompt=self.prompt, device=device)
        except EncoderError as error:
            if model is not None:
                raise
            advice = "if it has moved, pass its new place (model=, --model)"
            raise SearchError(f"{error}; the index was built with this model: {advice}") from error
        self.require(encoder, model or self.name)
        return encoder

    def require(self, encoder: Model, name: str) -> None:
        """Raise `SearchError` unless the encoder is the one whose vectors are in the index."""
        identity = encoder.identity()
        if identity != self.identity and source_identity(encoder) != self.identity:
            problem = f"{name}: is not the model of this index: it is {identity[:12]}"
            built = f"the index was built with {self.identity[:12]}, then called {self.name}"
            raise SearchError(f"{problem}, and {built}; pass that model, or build a new index")


def encode_sentences(encoder: Model, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors (N, D) as stored in an index; zero for a text without tokens."""
    return np.asarray(encode(encoder, texts, normalize_embeddings=True), np.float32)


def encode_queries(encoder: Model, texts: Sequence[str], origin: Origin) -> NDArray[np.float32]:
    """Unit vectors (N, D) of queries, with the prompt that queries have in this index."""
    return np.asarray(encode(encoder, texts, prompt=origin.query_prompt, normalize_embeddings=True), np.float32)


def encode_lists(encoder: Model, lists: Iterable[list[str]]) -> Iterator[NDArray[np.float32]]:
    """The unit vectors of each list; on an accelerator the next list is computed while one is stored.

    Not on a CPU, which is busy anyway, and where an interrupt would wait for minutes until a list is done.
    """
    if str(encoder.device) == "cpu":
        yield from (encode_sentences(encoder, each) for each in lists)
        return
    with ThreadPoolExecutor(1, thread_name_prefix="encode") as pool:
        yield from run_ahead(lambda texts: pool.submit(encode_sentences, encoder, texts).result, 2, lists)
