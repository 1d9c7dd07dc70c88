"""Any encoder as a model of the package `mteb`, so that its tasks run on it unchanged.

    import isoglot, mteb

    model = isoglot.load("build/demo/model").for_mteb()
    results = mteb.evaluate(model, mteb.get_tasks(tasks=["Tatoeba"]))

A model saved by isoglot is a sentence-transformers folder, which `mteb` opens by itself; this is for encoders that are
not (GloVe, USE), and for isoglot's faster encoding.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.core.errors import naming_extras


class MtebModel:
    """What `mteb.evaluate` accepts: `encode`, two similarities and `mteb_model_meta`.

    Queries and documents of a task have the model's prompts for them, all other texts the model's own; `mteb`'s prompts
    are for models trained with them. `model` is an `isoglot.model.Model`. `name` is organisation/model in the results;
    without one the encoder's, or the kind of the encoder. Raises MissingExtraError without `mteb`.
    """

    def __init__(self, model: Any, *, name: str = "") -> None:
        name = name or model.name or type(model).__name__
        self.model, self.name = model, name if "/" in name else f"isoglot/{name}"
        self.mteb_model_meta = _meta(model, self.name)

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_settings: Any) -> NDArray[np.floating[Any]]:
        """Vectors (N, D) of the texts of all batches, of a role if `prompt_type` is query or document.

        The task and batch size that `mteb` passes are not needed.
        """
        role = None if prompt_type is None else self.model.role_prompt(prompt_type.value)
        texts = [text for batch in inputs for text in batch["text"]]
        vectors: NDArray[np.floating[Any]] = self.model.encode(texts, prompt=role)
        return vectors

    def similarity(self, first: Any, second: Any) -> Any:
        """Cosines (N, M) of N with M vectors."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Cosines (N,) of N pairs."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(first, second)


def _meta(model: Any, name: str) -> Any:
    with naming_extras():
        from mteb.models import ModelMeta
    # mteb reads the results of a revision again instead of computing them.
    made_of = repr([model.identity(), *map(model.role_prompt, ("query", "document"))]).encode()
    facts: dict[str, Any] = {"name": name, "revision": hashlib.sha256(made_of).hexdigest()[:16], "embed_dim": model.dim}
    facts |= {"max_tokens": model.max_length, "framework": ["PyTorch"], "similarity_fn_name": "cosine"}
    required = {field for field, info in ModelMeta.model_fields.items() if info.is_required()}
    return ModelMeta(**dict.fromkeys(required - set(facts)), **facts)
