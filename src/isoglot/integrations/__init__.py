"""A model for other packages: one module for each, which imports that package. See docs/integrations.md.

Every adapter takes a model, or what `isoglot.load` takes. Those for search encode queries and documents with the
model's prompts. Where a package stores an adapter, `Model.origin` is stored, from which the model is opened again.
"""

from __future__ import annotations

from pathlib import Path

from isoglot.model import Model, load


def open_model(model: Model | str | Path | None) -> Model:
    """The model, or the one of this name, folder or hub id; None: the default model."""
    return model if isinstance(model, Model) else load(model)
