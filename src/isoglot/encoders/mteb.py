"""Any encoder in the shape that the package `mteb` asks of a model, so that its tasks run on it unchanged.

    import isoglot, mteb

    model = isoglot.for_mteb("build/demo/model")
    results = mteb.evaluate(model, mteb.get_tasks(tasks=["Tatoeba"]))

`mteb` is not imported until this is called. A model saved by isoglot is a sentence-transformers folder, which `mteb`
opens by itself; this is for the encoders that are none (GloVe, USE), and for isoglot's faster encoding.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.encoders.base import Encoder
from isoglot.encoders.identity import identity
from isoglot.encoders.inference import encode
from isoglot.encoders.loading import load
from isoglot.errors import EncoderError


class MtebModel:
    """What `mteb.evaluate` accepts: `encode`, two similarities and `mteb_model_meta`.

    The encoder's own prompt is used, whatever the task; `mteb`'s prompts are for models trained with them.
    """

    def __init__(self, encoder: Encoder, *, name: str) -> None:
        self.encoder, self.name = encoder, name
        self.mteb_model_meta = _meta(encoder, name)

    def encode(self, inputs: Any, **_settings: Any) -> NDArray[np.floating[Any]]:
        """Vectors (N, D) of the texts of all batches; what `mteb` says of task and batch size is not needed."""
        return encode(self.encoder, [text for batch in inputs for text in batch["text"]])

    def similarity(self, first: Any, second: Any) -> Any:
        """Cosines (N, M) of N with M vectors."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Cosines (N,) of N pairs."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(first, second)


def for_mteb(model: str | Path | Encoder, *, name: str = "") -> MtebModel:
    """An encoder, or what `isoglot.load` opens, as a model for `mteb.evaluate`.

    `name` stands in its results, `organisation/model`; without one, what a string said, or the kind of the encoder.
    Raises EncoderError when there is no such model or `mteb` is not installed.
    """
    encoder = model if isinstance(model, Encoder) else load(model)
    told = name or (type(encoder).__name__ if isinstance(model, Encoder) else Path(model).name)
    return MtebModel(encoder, name=told if "/" in told else f"isoglot/{told}")


def _meta(encoder: Encoder, name: str) -> Any:
    try:
        from mteb.models import ModelMeta
    except ImportError as error:
        raise EncoderError('mteb is not installed: pip install "isoglot[interop]"') from error
    known: dict[str, Any] = {"name": name, "revision": identity(encoder)[:16], "embed_dim": encoder.dim}
    known |= {"max_tokens": encoder.max_length, "framework": ["PyTorch"], "similarity_fn_name": "cosine"}
    required = {field for field, info in ModelMeta.model_fields.items() if info.is_required()}
    return ModelMeta(**dict.fromkeys(required - set(known)), **known)
