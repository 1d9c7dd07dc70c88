"""`POST /v1/embeddings` in the shape of OpenAI's interface: what a request may hold, and how the answer looks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoglot.cli.serve.replies import Problem, Reply, as_json, integer, require_text
from isoglot.data.vectors import unit

TEXTS = 2048  # of one request, as at OpenAI

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Request:
    """Texts to encode, the width of the answer, and whether vectors go back as base64 of little-endian float32."""

    texts: tuple[str, ...]
    dimensions: int
    as_base64: bool


def read(found: dict[str, Any], model: str, dim: int) -> Request:
    """A request as it came. Raises `Problem` for what cannot be answered, among it any other model."""
    asked = found.get("model", model)
    if asked != model:
        raise Problem(
            404,
            f"The model does not exist here; this server has '{model}'.",
            param="model",
            code="model_not_found",
        )
    encoding = found.get("encoding_format", "float")
    if encoding not in ("float", "base64"):
        raise Problem(400, "'encoding_format' must be 'float' or 'base64'.", param="encoding_format")
    return Request(_texts(found.get("input")), integer(found, "dimensions", dim, 1, dim), encoding == "base64")


def _texts(found: object) -> tuple[str, ...]:
    texts = [found] if isinstance(found, str) else found
    if not isinstance(texts, list) or not 1 <= len(texts) <= TEXTS:
        raise Problem(400, f"'input' must be a string, or a list of 1 to {TEXTS} strings.", param="input")
    if any(not isinstance(text, str) for text in texts):
        raise Problem(400, "'input' must hold strings; token numbers of other models mean nothing here.", param="input")
    return tuple(require_text(text, "input") for text in texts)


def reply(request: Request, vectors: Sequence[Vector], tokens: int, model: str) -> Reply:
    """The answer; vectors that are cut to fewer dimensions are of length one again."""
    data = [
        {"object": "embedding", "index": place, "embedding": _written(_cut(vector, request.dimensions), request)}
        for place, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return as_json({"object": "list", "data": data, "model": model, "usage": usage})


def _cut(vector: Vector, dimensions: int) -> Vector:
    if dimensions == len(vector):
        return vector
    return np.asarray(unit(vector[None, :dimensions])[0])


def _written(vector: Vector, request: Request) -> str | list[float]:
    if request.as_base64:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii")
    return [float(value) for value in vector.tolist()]
