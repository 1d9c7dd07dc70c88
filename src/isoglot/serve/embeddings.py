"""`POST /v1/embeddings` in the shape of OpenAI's interface: validation of the request and form of the answer."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from isoglot.model import Model
from isoglot.model.engine import engine, plan
from isoglot.serve.limits import Limits
from isoglot.serve.replies import Problem, as_json, integer, parse, require_text
from isoglot.serve.work import Job

Vector = NDArray[np.float32]
_VECTOR = 1024  # bytes of a vector that is written, about


def read(body: bytes, model: str, dim: int, limits: Limits) -> Job:
    """The request in a body. Raises `Problem` for what can't be answered, including any other model."""
    request = parse(body)
    if request.get("model") not in (None, model):
        message = f"The model does not exist here; this server has '{model}'."
        raise Problem(404, message, param="model", code="model_not_found")
    encoding = request.get("encoding_format")
    if encoding not in (None, "float", "base64"):
        raise Problem(400, "'encoding_format' must be 'float' or 'base64'.", param="encoding_format")
    texts = _texts(request, "input", limits)
    dimensions = integer(request, "dimensions", dim, 1, dim)
    as_base64 = encoding == "base64"
    return Job(texts, texts, len(texts) * _VECTOR, lambda encoded: answer(encoded, dimensions, as_base64, model))


def _texts(request: Mapping[str, Any], name: str, limits: Limits) -> tuple[str, ...]:
    value = request.get(name)
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not 1 <= len(texts) <= limits.texts:
        raise Problem(400, f"'{name}' must be a string, or a list of 1 to {limits.texts} strings.", param=name)
    if any(not isinstance(text, str) for text in texts):
        raise Problem(400, f"'{name}' must be strings; token numbers of other models mean nothing here.", param=name)
    return tuple(require_text(text, name, limits.text) for text in texts)


def read_similarity(body: bytes, limits: Limits) -> Job:
    """The texts of `POST /similarity`: `{"a": texts, "b": texts}`; without `b`, those of `a` twice. Raises `Problem`.

    At most `limits.texts` texts and as many times 64 values.
    """
    request = parse(body, ("a", "b"))
    rows = _texts(request, "a", limits)
    columns = _texts(request, "b", limits) if request.get("b") is not None else rows
    if len(rows) * len(columns) > 64 * limits.texts:
        raise Problem(400, f"At most {64 * limits.texts} similarities are computed at once; send fewer texts.")
    texts = (*rows, *columns)
    return Job(texts, texts, len(texts) * _VECTOR, lambda encoded: similarities(encoded, len(rows)))


def encode(encoder: Model, texts: Sequence[str]) -> list[tuple[Vector, int]]:
    """The unit vector of each text, as an index stores it, and its number of tokens; texts are tokenised once."""
    encoded: list[tuple[Vector, int]] = []
    with engine(encoder, plan(encoder, normalize_embeddings=True)) as blocks:
        for window, rows in blocks(texts):
            lengths = window.tokens.lengths
            if window.rows is not None:  # repeated texts
                lengths = lengths[window.rows]
            encoded += zip(rows.astype(np.float32, copy=False), lengths.tolist(), strict=True)
    return encoded


def similarities(encoded: Sequence[tuple[Vector, int]], rows: int) -> bytes:
    """The body of the answer: a row of cosines for each text of `a`."""
    table = np.stack([vector for vector, _ in encoded])
    values = (table[:rows] @ table[rows:].T).clip(-1, 1)
    return b'{"similarity": [%s]}' % b", ".join(as_json([round(value, 6) for value in row.tolist()]) for row in values)


def answer(encoded: Sequence[tuple[Vector, int]], dimensions: int, as_base64: bool, model: str) -> bytes:
    """The body of the answer from vectors and their numbers of tokens; base64 is of little-endian float32.

    It is written vector by vector: one call to `json` for all of them would keep every other thread waiting, the
    event loop's too, for as long as it takes.
    """
    data = b", ".join(
        b'{"object": "embedding", "index": %d, "embedding": %s}' % (place, _write(vector, dimensions, as_base64))
        for place, (vector, _) in enumerate(encoded)
    )
    tokens = sum(count for _, count in encoded)
    usage = b'{"prompt_tokens": %d, "total_tokens": %d}' % (tokens, tokens)
    return b'{"object": "list", "data": [%s], "model": %s, "usage": %s}' % (data, as_json(model), usage)


def _write(vector: Vector, dimensions: int, as_base64: bool) -> bytes:
    """The vector in the requested format, truncated and then scaled to unit length if dimensions are requested."""
    values = vector[:dimensions]
    if len(values) < len(vector) and (length := float(np.linalg.norm(values))):
        values = values / np.float32(length)
    if as_base64:
        return b'"%s"' % base64.b64encode(values.astype("<f4").tobytes())
    return orjson.dumps(np.ascontiguousarray(values), option=orjson.OPT_SERIALIZE_NUMPY)  # a tenth of the time of json
