"""Haystack: components of a pipeline for queries and documents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from haystack import Document, component, default_to_dict

from isoglot.integrations import open_model, stored_name
from isoglot.model import Model


@component
class IsoglotTextEmbedder:
    """A model that gives the vector of a query. A saved pipeline opens it again by its name or folder."""

    def __init__(self, model: Model | str | Path | None = None) -> None:
        self.model = open_model(model)

    def to_dict(self) -> dict[str, Any]:
        """What a saved pipeline contains."""
        return default_to_dict(self, model=stored_name(self.model))

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        """`embedding`, the vector of the query."""
        return {"embedding": self.model.encode_query(text).tolist()}


@component
class IsoglotDocumentEmbedder:
    """A model that gives documents their vectors. A saved pipeline opens it again by its name or folder."""

    def __init__(self, model: Model | str | Path | None = None) -> None:
        self.model = open_model(model)

    def to_dict(self) -> dict[str, Any]:
        """What a saved pipeline contains."""
        return default_to_dict(self, model=stored_name(self.model))

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        """`documents`, copies with the vectors of their content."""
        rows = self.model.encode_document([document.content or "" for document in documents])
        pairs = zip(documents, rows.tolist(), strict=True)
        return {"documents": [replace(document, embedding=row) for document, row in pairs]}
