"""LangChain: `InMemoryVectorStore(IsoglotEmbeddings(model))`."""

from __future__ import annotations

from pathlib import Path

from langchain_core.embeddings import Embeddings

from isoglot.integrations import open_model
from isoglot.model import Model


class IsoglotEmbeddings(Embeddings):
    """A model as `Embeddings`."""

    def __init__(self, model: Model | str | Path | None = None) -> None:
        self.model = open_model(model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A vector for each document."""
        return self.model.encode_document(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return self.model.encode_query(text).tolist()
