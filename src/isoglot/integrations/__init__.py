"""A model for other packages: one module for each, which imports that package. See docs/integrations.md.

Every adapter takes a model, or what `isoglot.load` takes. Those for search encode queries and documents with the
model's prompts. Where a package stores an adapter, `Model.origin` is stored, from which the model is opened again.
"""

from __future__ import annotations

from pathlib import Path

from isoglot.core.errors import EncoderError
from isoglot.model import Model, load
from isoglot.model.loading import source_identity


def open_model(model: Model | str | Path | None) -> Model:
    """The model, or the one of this name, folder or hub id; None: the default model."""
    return model if isinstance(model, Model) else load(model)


def stored_name(model: Model) -> str:
    """`Model.origin` for a package to store. Raises EncoderError if another model would be opened from there."""
    copy = load(model.origin) if model.origin else model
    if copy is not model and (source_identity(copy), {**copy.prompts}) != (source_identity(model), {**model.prompts}):
        problem = "would be stored, and opens without what was set when the model was opened, or since"
        raise EncoderError(f"{model.origin}: {problem}; save the model, and pass its folder")
    return model.origin
