"""A transformer in eight-bit integers on a CPU, through ONNX Runtime, exported here and nowhere else.

Weights of linear layers are rounded once, a scale for each output channel; what comes into a layer is rounded chunk by
chunk with one scale for the whole chunk. So a row depends, in its third digit, on the company it is computed in; the
same texts in the same order still give the same bytes. Word embeddings stay outside, in float32: they are most of a
multilingual model's weights and nothing is multiplied with them. The second layers of feed-forward blocks stay in
float32 too: rounding them would gain a tenth in speed, and takes more from the rows than all the others do. Seven bits
of each weight are used, because processors without VNNI add pairs of products in 16 bits, and full weights would
overflow there.
"""

from __future__ import annotations

import copy
import logging
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from isoglot.data.batch import Tokens
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.pooling import FIRST_LAYER, POOLINGS
from isoglot.encoders.transformer import TransformerEncoder
from isoglot.errors import EncoderError

_making, _exporting = threading.Lock(), threading.Lock()


class Int8Encoder(Encoder):
    """What `quantize` gives: for `encode` only, it cannot be trained or saved. Texts are tokenised as ever."""

    concurrent = True
    own: TransformerEncoder

    def __init__(self, encoder: TransformerEncoder, graph: bytes) -> None:
        super().__init__()
        self.own, self.graph = cast(TransformerEncoder, evaluating(encoder)), graph
        self.dim, self.max_length, self.normalizes = encoder.dim, encoder.max_length, encoder.normalizes
        self.prompt, self.prompts, self.pooling = encoder.prompt, encoder.prompts, encoder.pooling
        self.name = encoder.name
        self._session: Any = None  # made when first used, in the process that uses it
        self.eval()

    def tokenize(self, texts: Sequence[str], *, prompt: str | None = None) -> Tokens:
        """Token ids as the encoder that was quantised gives them."""
        return self.own.tokenize(texts, prompt=self.prompt if prompt is None else prompt)

    def forward(self, tokens: Tokens) -> Tensor:
        """(N, D) in float32, without a gradient."""
        if not len(tokens):
            return torch.zeros(0, self.dim)
        with _making:
            self._session = self._session or _session(self.graph)
        ids, mask = tokens.padded(self.own.pad)
        words = self.own.backbone.get_input_embeddings()(ids)
        found = self._session.run(None, {"words": words.detach().numpy(), "mask": mask.numpy()})
        return torch.from_numpy(found[0])

    @property
    def fingerprint(self) -> str:
        """That of the encoder that was quantised, marked."""
        return f"int8-{self.own.fingerprint}"

    def save(self, folder: Path) -> None:
        """Raise EncoderError: the float32 encoder is what is saved."""
        raise EncoderError(f"{folder}: an encoder in int8 cannot be saved; save the one that it was made from")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_session": None}


def quantize(encoder: Encoder) -> Encoder:
    """The encoder in int8; takes some seconds, so keep the result if you encode often. One in int8 is given back.

    Raises EncoderError if it is not a transformer on a CPU, or the extra `onnx` is not installed.
    """
    if isinstance(encoder, Int8Encoder):
        return encoder
    if not isinstance(encoder, TransformerEncoder):
        raise EncoderError(f"int8 is for transformers, and this is a {type(encoder).__name__}; use float32")
    if encoder.backbone.device.type != "cpu":
        raise EncoderError(f"int8 runs on a CPU and the encoder is on {encoder.backbone.device}; take bf16 there")
    with (
        _exporting,  # the exporter's settings, and what is logged meanwhile, are of the whole process
        tempfile.TemporaryDirectory(prefix="isoglot-int8-") as folder,
        _quiet(),
        torch.inference_mode(False),
    ):
        graph = _quantized(encoder, Path(folder))
    return Int8Encoder(encoder, graph)


class _FromWords(nn.Module):
    """The encoder behind its word embeddings: (N, T, H) and mask (N, T) to vectors (N, D)."""

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
    quantize_dynamic(
        plain,
        made,
        per_channel=True,
        reduce_range=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gemm"],
        nodes_to_exclude=_narrowing(plain),
    )
    return made.read_bytes()


def _narrowing(path: Path) -> list[str]:
    """Names of the products with weights of fewer outputs than inputs: the second ones of feed-forward blocks.

    What comes into these has a few values far greater than the rest, and one scale for all leaves little of the rest.
    """
    import onnx

    graph = onnx.load(path).graph
    shapes = {weight.name: tuple(weight.dims) for weight in graph.initializer}
    weighted = [(node.name, shapes.get(node.input[1], ())) for node in graph.node if node.op_type == "MatMul"]
    return [name for name, shape in weighted if len(shape) == 2 and shape[1] < shape[0]]


def _export(encoder: TransformerEncoder, path: Path) -> None:
    own = cast(TransformerEncoder, evaluating(encoder, always_copy=True))  # another thread may be encoding with it
    config = copy.deepcopy(own.backbone.config)
    config._attn_implementation = "eager"  # plain products, which any runtime knows
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


def _session(graph: bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # `encode` computes a chunk in each thread
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


@contextmanager
def _quiet() -> Iterator[None]:
    """Neither library's advice on exporting is for the user of this one."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
