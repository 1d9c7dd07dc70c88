"""BERTopic: `BERTopic(embedding_model=Embedder(model))`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bertopic.backend import BaseEmbedder

from isoglot.integrations import open_model
from isoglot.model import Model


class Embedder(BaseEmbedder):
    """A model for topics; BERTopic compares documents, words and search terms with each other: no prompt of a role."""

    def __init__(self, model: Model | str | Path | None = None) -> None:
        super().__init__(embedding_model=open_model(model))

    def embed(self, documents: list[str], verbose: bool = False) -> Any:
        """Vectors (N, D) of N documents or words."""
        return self.embedding_model.encode(documents, show_progress_bar=verbose)
