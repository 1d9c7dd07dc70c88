"""sentence-transformers, and packages that take nothing else, such as SetFit."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from sentence_transformers import SentenceTransformer

from isoglot.core.errors import EncoderError
from isoglot.integrations import open_model
from isoglot.model import Model, configs


def as_sentence_transformer(model: Model | str | Path | None = None) -> SentenceTransformer:
    """A copy of the model as a SentenceTransformer in float32, which may be trained and saved, on the model's device.

    Raises EncoderError without torch, or for a model with parts that sentence-transformers does not have.
    """
    model = open_model(model)
    with TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place, "model")
        model.save(folder)
        for module in configs.read(folder / "modules.json", list[configs.Entry]):
            if module.type.startswith("isoglot."):
                kind = module.type.rpartition(".")[2]
                raise EncoderError(f"sentence-transformers has no {kind}; pass it the vectors of {model.name or 'it'}")
        return SentenceTransformer(str(folder), device=str(model.device))
