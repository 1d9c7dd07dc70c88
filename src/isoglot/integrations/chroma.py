"""Chroma: `client.create_collection("name", embedding_function=IsoglotEmbeddingFunction(model))`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from chromadb.api.types import Documents, EmbeddingFunction, Embeddings, Space
from chromadb.utils.embedding_functions import register_embedding_function

from isoglot.integrations import open_model, stored_name
from isoglot.model import Model


@register_embedding_function
class IsoglotEmbeddingFunction(EmbeddingFunction[Documents]):
    """A model as an `EmbeddingFunction`. Once this module is imported, a stored collection opens its model itself."""

    def __init__(self, model: Model | str | Path | None = None) -> None:
        self.model = open_model(model)

    def __call__(self, input: Documents) -> Embeddings:
        """The vectors of documents."""
        return list(self.model.encode_document(input))

    def embed_query(self, input: Documents) -> Embeddings:
        """The vectors of queries."""
        return list(self.model.encode_query(input))

    @staticmethod
    def name() -> str:
        """The name under which a collection stores this class."""
        return "isoglot"

    def default_space(self) -> Space:
        """Cosine."""
        return "cosine"

    def get_config(self) -> dict[str, Any]:
        """What a collection stores."""
        return {"model": stored_name(self.model)}

    @staticmethod
    def build_from_config(config: dict[str, Any]) -> IsoglotEmbeddingFunction:
        """The function of a stored collection."""
        return IsoglotEmbeddingFunction(config["model"])
