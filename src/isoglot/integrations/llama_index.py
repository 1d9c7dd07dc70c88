"""LlamaIndex: `VectorStoreIndex.from_documents(documents, embed_model=IsoglotEmbedding(model))`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from isoglot.integrations import open_model
from isoglot.model import Model


class IsoglotEmbedding(BaseEmbedding):
    """A model as a `BaseEmbedding`; `settings` are fields of that class."""

    _model: Any = PrivateAttr()

    def __init__(self, model: Model | str | Path | None = None, **settings: Any) -> None:
        model = open_model(model)
        super().__init__(**{"model_name": model.origin or model.name, "embed_batch_size": 1024, **settings})
        self._model = model

    @classmethod
    def class_name(cls) -> str:
        """The name in traces."""
        return "IsoglotEmbedding"

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._model.encode_document(texts).tolist()

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._model.encode_query(query).tolist()

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
