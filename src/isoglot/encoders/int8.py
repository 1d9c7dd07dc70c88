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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from isoglot import environment
from isoglot.data.batch import Tokens
from isoglot.data.files import atomic_write
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.onnx_export import OUTPUTS, build_graph
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError, IsoglotError

_FORMAT = 3  # raised when the export changes, so that cached graphs are created again
_making, _exporting = threading.Lock(), threading.Lock()
_known = WeakTensorKeyDictionary()  # word embeddings -> (state of all weights, graph)


class Graph:
    """An exported model as bytes, and the session that runs it, which is made when first used in a process."""

    def __init__(self, data: bytes) -> None:
        self.data, self._session = data, None

    @property
    def session(self) -> Any:
        """The ONNX Runtime session."""
        with _making:
            if self._session is None:
                self._session = _session(self.data)
            return self._session

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "_session": None}


class Int8Encoder(Encoder):
    """The result of `quantize`: for `encode` only, it cannot be trained or saved. It tokenises like its encoder."""

    concurrent = True
    own: TransformerEncoder

    def __init__(self, encoder: TransformerEncoder, graph: Graph) -> None:
        super().__init__()
        self.own, self.graph = cast(TransformerEncoder, evaluating(encoder)), graph
        self.dim, self.max_length, self.normalizes = encoder.dim, encoder.max_length, encoder.normalizes
        self.prompt, self.prompts, self.pooling = encoder.prompt, encoder.prompts, encoder.pooling
        self.name = encoder.name
        self.eval()

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids as the encoder that was quantised gives them."""
        return self.own.tokenize(texts, prompt=self.prompt if prompt is None else prompt)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) in float32, without a gradient."""
        if not len(tokens):
            return torch.zeros(0, self.dim)
        ids, mask = tokens.padded(self.own.pad)
        mask = torch.ones_like(ids) if mask is None else mask
        words = self.own.backbone.get_input_embeddings()(ids)
        found = self.graph.session.run(OUTPUTS[:1], {"words": words.detach().numpy(), "mask": mask.numpy()})
        return torch.from_numpy(found[0])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder that was quantised, marked."""
        return f"int8-{self.own.fingerprint}"

    def write(self, folder: Path, *, name: str | None = None) -> None:  # noqa: ARG002 - nothing is saved
        """Raise EncoderError: only the float32 encoder can be saved."""
        raise EncoderError(
            f"{folder}: an encoder computing in int8 can't be saved; save the encoder it was made from, "
            'with weights="int8" for a small file'
        )


def quantize(encoder: Encoder) -> Encoder:
    """The encoder in int8, exported once for its weights; an encoder in int8 is returned unchanged.

    Raises EncoderError if it is not a transformer on a CPU, or the extra `onnx` is not installed.
    """
    if isinstance(encoder, Int8Encoder):
        return encoder
    if not isinstance(encoder, TransformerEncoder):
        raise EncoderError(f"int8 is for transformers, and this is a {type(encoder).__name__}; use float32")
    if encoder.device.type != "cpu":
        raise EncoderError(f"int8 needs a CPU and the encoder is on {encoder.device}; use bfloat16 there")
    words, state = encoder.backbone.get_input_embeddings().weight, _state(encoder)
    with _exporting:  # one export at a time: the exporter's settings, and the log meanwhile, are of the whole process
        known = _known.get(words)  # type: ignore[no-untyped-call]
        if known is None or known[0] != state:
            known = _known[words] = state, _graph(encoder)
    return Int8Encoder(encoder, known[1])


def _state(encoder: TransformerEncoder) -> object:
    """What the graph depends on: the pooling, and each weight by its memory and the count of changes made in it."""
    weights = [*encoder.backbone.parameters(), *encoder.projections.parameters()]
    versions = [0 if weight.is_inference() else weight._version for weight in weights]
    return encoder.pooling, [weight.data_ptr() for weight in weights], versions


def _graph(encoder: TransformerEncoder) -> Graph:
    """The graph of the encoder, from the cache folder or exported and put there."""
    path = environment.cache_folder() / "int8" / f"{_digest(encoder)}.onnx"
    with suppress(OSError):
        graph = Graph(path.read_bytes())
        with suppress(Exception):  # a damaged file is exported again
            _ = graph.session
            return graph
    logging.getLogger(__name__).info("exporting the encoder to int8, once for its weights")
    data = build_graph(encoder, words="input")
    with suppress(OSError, IsoglotError):  # a cache that can't be written costs time, not the result
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, binary=True) as stream:
            stream.write(data)
    return Graph(data)


def _digest(encoder: TransformerEncoder) -> str:
    """Hexadecimal digest of what is exported: all but the word embeddings."""
    config = encoder.backbone.config.to_json_string(use_diff=False)
    layers = [str(projection.activation) for projection in encoder.projections]
    checksum = hashlib.sha256(f"{_FORMAT} {torch.__version__} {encoder.pooling} {config} {layers}".encode())
    words = encoder.backbone.get_input_embeddings().weight
    for name, weight in [*encoder.backbone.named_parameters(), *encoder.projections.named_parameters()]:
        if weight is not words:
            checksum.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
            checksum.update(weight.detach().contiguous().flatten().view(torch.uint8).numpy())
    return checksum.hexdigest()


def _session(graph: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # `encode` computes a chunk in each thread
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
