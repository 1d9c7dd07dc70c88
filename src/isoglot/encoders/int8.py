"""Runs a transformer in eight-bit integers on a CPU with ONNX Runtime, and exports it for that.

Weights of linear layers are rounded once, with a scale for each output channel; the inputs of a layer are rounded chunk
by chunk with one scale for the whole chunk. So a row depends, in its third digit, on the other texts of its chunk; the
same texts in the same order still give the same bytes. Word embeddings stay outside, in float32: they are most of a
multilingual model's weights and take part in no matmul. Weights use seven bits, because processors without VNNI add
pairs of products in 16 bits, where eight-bit weights overflow.

The inputs of the second layers of feed-forward blocks have a few values far greater than the rest, and one scale for
all would leave little of the rest. They and their weights have a scale for every 128 values of a row, and eight bits.
For the other layers such scales cost more time than they are worth.

Exporting takes some ten seconds, so it is done once per encoder: the result is kept in memory while the weights stay
the same, and in the cache folder under the digest of the weights.
"""

from __future__ import annotations

import copy
import hashlib
import logging
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from isoglot import environment
from isoglot.data.files import atomic_write
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.transformer import FIRST_LAYER, POOLINGS, TransformerEncoder
from isoglot.errors import EncoderError, IsoglotError
from isoglot.model.onnx import Graph, OnnxModel

_FORMAT = 2  # raised when the export changes, so that cached graphs are created again
_BLOCK = 128  # values that share a scale in the second layers of feed-forward blocks
_INT8 = 4  # accuracy_level of MatMulNBits for inputs of eight bits
_exporting = threading.Lock()
_known = WeakTensorKeyDictionary()  # word embeddings -> (state of all weights, graph)


def quantize(encoder: Encoder) -> OnnxModel:
    """The encoder in int8, exported once for its weights; it tokenises like its encoder.

    Raises EncoderError if it is not a transformer on a CPU, or the extra `onnx` is not installed.
    """
    if not isinstance(encoder, TransformerEncoder):
        raise EncoderError(f"int8 is for transformers, and this is a {type(encoder).__name__}; use float32")
    if encoder.device.type != "cpu":
        raise EncoderError(f"int8 needs a CPU and the encoder is on {encoder.device}; use bfloat16 there")
    words, state = encoder.backbone.get_input_embeddings().weight, _state(encoder)
    with _exporting:  # one export at a time: the exporter's settings, and the log meanwhile, are of the whole process
        known = _known.get(words)  # type: ignore[no-untyped-call]
        if known is None or known[0] != state:
            known = _known[words] = state, _graph(encoder)
    model = OnnxModel(
        known[1], encoder.tokenizer.backend_tokenizer, dim=encoder.dim, max_length=encoder.max_length, pad=encoder.pad,
        table=words.detach().numpy(), pooling=encoder.pooling, prompt=encoder.prompt, prompts=encoder.prompts,
        normalizes=encoder.normalizes,
    )  # fmt: skip
    model.name = encoder.name
    return model


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
    with (
        tempfile.TemporaryDirectory(prefix="isoglot-int8-") as folder,
        _quiet(),
        torch.inference_mode(False),
    ):
        data = _quantized(encoder, Path(folder))
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


class _FromWords(nn.Module):
    """The encoder after its word embeddings: (N, T, H) and mask (N, T) to vectors (N, D)."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        self.backbone, self.projections = encoder.backbone, encoder.projections
        self.pooling = encoder.pooling

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        layered = self.pooling in FIRST_LAYER
        output = self.backbone(inputs_embeds=words, attention_mask=mask, output_hidden_states=layered)
        states = output.hidden_states if layered else (output.last_hidden_state,)
        vectors = POOLINGS[self.pooling](states, mask)
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors


def _quantized(encoder: TransformerEncoder, folder: Path) -> bytes:
    try:
        from onnxruntime.quantization import QuantType, quantize_dynamic
    except ImportError as error:
        raise EncoderError('int8 needs onnx and onnxruntime: pip install "isoglot[onnx]"') from error
    plain, made = folder / "plain.onnx", folder / "int8.onnx"
    _export(encoder, plain)
    _round_in_blocks(plain)
    quantize_dynamic(
        plain,
        made,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gemm"],
    )
    return made.read_bytes()


def _round_in_blocks(path: Path) -> None:
    """Replace the products with weights of fewer outputs than inputs, the second ones of feed-forward blocks, by ONNX
    Runtime's product of blocks.
    """
    import onnx

    model = onnx.load(path)
    graph = model.graph
    weights = {weight.name: weight for weight in graph.initializer}
    for node in graph.node:
        weight = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if weight is None or len(weight.dims) != 2 or weight.dims[1] >= weight.dims[0]:
            continue
        values = onnx.numpy_helper.to_array(weight).T  # (outputs, inputs)
        outputs, inputs = values.shape
        blocks = np.pad(values, ((0, 0), (0, -inputs % _BLOCK))).reshape(outputs, -1, _BLOCK)
        scales = np.abs(blocks).max(axis=2) / 127
        scales[scales == 0] = 1
        rounded = (np.rint(blocks / scales[..., None]) + 128).astype(np.uint8)
        parts = {f"{node.name}_blocks": rounded, f"{node.name}_scales": scales.astype(np.float32)}
        graph.initializer.extend(onnx.numpy_helper.from_array(part, name) for name, part in parts.items())
        if weight in graph.initializer:  # not removed by another layer that shares it
            graph.initializer.remove(weight)
        del node.input[1]
        node.input.extend(parts)
        node.op_type, node.domain = "MatMulNBits", "com.microsoft"
        settings = {"K": inputs, "N": outputs, "bits": 8, "block_size": _BLOCK, "accuracy_level": _INT8}
        node.attribute.extend(onnx.helper.make_attribute(name, value) for name, value in settings.items())
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    onnx.save(model, path)


def _export(encoder: TransformerEncoder, path: Path) -> None:
    own = evaluating(encoder, always_copy=True)  # another thread may be encoding with it
    config: Any = copy.deepcopy(own.backbone.config)
    config._attn_implementation = "eager"  # plain standard operators, which any runtime has
    for module in own.modules():
        if getattr(module, "config", None) is encoder.backbone.config:
            module.config = config
    words = torch.zeros(2, 3, encoder.backbone.get_input_embeddings().weight.shape[1])
    free = {0: "rows", 1: "tokens"}
    torch.onnx.export(
        _FromWords(own).eval(),
        (words, torch.ones(2, 3, dtype=torch.long)),
        str(path),
        input_names=["words", "mask"],
        output_names=["vectors"],
        dynamic_axes={"words": free, "mask": free, "vectors": {0: "rows"}},
        opset_version=17,
        dynamo=False,
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence both libraries' advice on exporting, which does not concern our users."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
