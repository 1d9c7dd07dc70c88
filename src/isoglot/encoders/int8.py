"""Runs a transformer in eight-bit integers on a CPU with ONNX Runtime: the graph of onnx_export.py without its words.

Word embeddings stay outside, in float32: they are most of a multilingual model's weights and take part in no matmul.
The same texts in the same order give the same bytes.

Exporting takes some ten seconds, so it is done once per encoder: the result is kept in memory while the weights stay
the same, and in the cache folder under the digest of the weights.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from contextlib import suppress

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from isoglot.core import environment
from isoglot.core.errors import EncoderError, IsoglotError
from isoglot.data.files import atomic_write
from isoglot.encoders.base import Encoder, add_tensors
from isoglot.encoders.onnx_export import build_graph, tokens_to_measure
from isoglot.encoders.rounding import read_state
from isoglot.model.onnx import Graph, OnnxModel

_FORMAT = 5  # raised when the export changes, so that cached graphs are created again
_exporting = threading.Lock()
_graphs = WeakTensorKeyDictionary()  # word embeddings -> (state of all weights, graph)


def quantize(encoder: Encoder) -> OnnxModel:
    """The encoder in int8, exported once for its weights; it tokenises like its encoder.

    Raises EncoderError if it is not a transformer on a CPU, or the extra `onnx` is not installed.
    """
    if encoder.device.type != "cpu":
        raise EncoderError(f"int8 needs a CPU and the encoder is on {encoder.device}; use bfloat16 there")
    words, state = encoder.backbone.get_input_embeddings().weight, _state(encoder)
    with _exporting:  # one export at a time: the filter of warnings is the whole process's
        cached = _graphs.get(words)  # type: ignore[no-untyped-call]
        if cached is None or cached[0] != state:
            cached = _graphs[words] = state, _graph(encoder)
    model = OnnxModel(
        cached[1], encoder.tokenizer.backend_tokenizer, dim=encoder.dim, max_length=encoder.max_length,
        pad=encoder.pad or 0, table=words.detach().numpy(),
    )  # fmt: skip
    for setting in ("name", "pooling", "prompt", "prompts", "normalizes"):
        setattr(model, setting, getattr(encoder, setting))
    return model


def _state(encoder: Encoder) -> object:
    """What the graph depends on: settings, and each weight by its memory and the count of changes made in it."""
    weights = [*encoder.backbone.parameters(), *encoder.projections.parameters()]
    settings = encoder.pooling, encoder.max_length, encoder.prompt, {**encoder.prompts}
    return settings, [read_state(weight) for weight in weights]


def _graph(encoder: Encoder) -> Graph:
    """The graph of the encoder, from the cache folder or exported and put there."""
    path = environment.cache_folder() / "int8" / f"{_digest(encoder)}.onnx"
    with suppress(OSError):
        graph = Graph(path.read_bytes())
        with suppress(Exception):  # a damaged file is exported again
            _ = graph.session
            return graph
    logging.getLogger(__name__).info("exporting the encoder to int8, once for its weights")
    data = build_graph(encoder, words=None)
    # A cache that can't be written costs time, not the result.
    with suppress(OSError, IsoglotError), atomic_write(path, binary=True) as stream:
        stream.write(data)
    return Graph(data)


def _digest(encoder: Encoder) -> str:
    """Hexadecimal digest of what is exported: all but words that the inputs are not measured with."""
    config = encoder.backbone.config.to_json_string(use_diff=False)
    layers = [str(projection.activation) for projection in encoder.projections]
    checksum = hashlib.sha256(f"{_FORMAT} {torch.__version__} {encoder.pooling} {config} {layers}".encode())
    words = encoder.backbone.get_input_embeddings().weight
    add_tensors(checksum, {name: weight for name, weight in encoder.backbone.named_parameters() if weight is not words})
    add_tensors(checksum, dict(encoder.projections.named_parameters()))
    ids = tokens_to_measure(encoder).ids
    add_tensors(checksum, {"ids": torch.from_numpy(ids), "words": words[np.unique(ids)]})
    return checksum.hexdigest()
