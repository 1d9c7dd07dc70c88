"""LanceDB: `get_registry().get("isoglot").create(name=...)`, or `embedding_function(model)`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lancedb.embeddings import TextEmbeddingFunction, register

from isoglot.integrations import open_model, stored_name
from isoglot.model import Model


@register("isoglot")
class IsoglotEmbeddings(TextEmbeddingFunction):
    """A model by name or folder. Once this module is imported, a stored table opens its model itself."""

    name: str
    _model: Any = None

    @property
    def model(self) -> Any:
        """The model, opened when first used."""
        self._model = open_model(self.name if self._model is None else self._model)
        return self._model

    def ndims(self) -> int:
        """Width of the vectors."""
        return int(self.model.dim)

    def generate_embeddings(self, texts: Any, *_args: Any, **_settings: Any) -> Any:
        """The vectors of documents."""
        return self.model.encode_document(list(texts)).tolist()

    def compute_query_embeddings(self, query: Any, *_args: Any, **_settings: Any) -> Any:
        """The vectors of queries."""
        return self.model.encode_query(self.sanitize_input(query)).tolist()


def embedding_function(model: Model | str | Path | None = None) -> IsoglotEmbeddings:
    """The function of a model that is open."""
    model = open_model(model)
    function: IsoglotEmbeddings = IsoglotEmbeddings.create(name=stored_name(model))
    function._model = model
    return function
