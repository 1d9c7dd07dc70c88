"""A transformer as one ONNX file that any ONNX Runtime opens, and the weights in such a file.

The graph takes `input_ids` and `attention_mask` (N, T) and gives `sentence_embedding` (N, D), the vector after pooling
and dense layers, not normalised, and `last_hidden_state` (N, T, H). Every initializer has the name that the parameter
has in the model, so `read_graph` finds the weights again, and a model that is shipped as ONNX can be trained further.

All rounding is symmetric, with the scales of least squared error (`packing.fit`):

* The word table has 4 or 8 bits, and a scale for each 32 values of a row. `GatherBlockQuantized` looks words up without
  expanding the table. Rows of rare words can have 2.7 bits a value instead: a product quantizer (Jégou et al. 2011)
  has 256 centroids for every 3 values (4, where 3 do not divide a row), and a row is the numbers of its centroids.
  With 4 values the error is twice as large, and similarity loses what can be measured (docs/results.md).
* Weights of linear layers have a scale for each output, and seven bits, because processors without VNNI add pairs of
  products in 16 bits, where eight-bit weights overflow.
* The inputs of linear layers have eight bits and one scale, which is fixed when the graph is made, from the packaged
  sentences. Some inputs are far greater than the rest, and
  one scale would leave little of these; so the middle of each input's range is moved to zero, and the inputs are
  divided, and the weights multiplied, by a factor for each input, as SmoothQuant does (Xiao et al. 2023, equation 4).
* The inputs of the second layers of feed-forward blocks have values far greater than the rest in all places. They and
  their weights have eight bits and a scale for every 128 values of a row. That takes more time than the other form.
* Vectors, position tables and the layers after the pooling stay float32.
"""

from __future__ import annotations

import copy
import tempfile
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isoglot.core.arguments import NonNegativeInt, check_arguments
from isoglot.core.errors import EncoderError, naming_extras
from isoglot.data.files import BUNDLED, read_lines
from isoglot.data.tokens import Tokens, pack
from isoglot.encoders import adapters, packing
from isoglot.encoders.base import Encoder, evaluating
from isoglot.encoders.pooling import POOLINGS
from isoglot.model import configs, layout, pieces

INPUTS, OUTPUTS = ("input_ids", "attention_mask"), ("sentence_embedding", "last_hidden_state")
Words: TypeAlias = Literal["float32", "int8", "int4"]
Layers: TypeAlias = Literal["float32", "int8"]
BLOCK = 32  # values of a row of the word table that share a scale

_SECOND = 128  # values that share a scale in the second layers of feed-forward blocks
_INT8_INPUTS = 4  # accuracy_level of MatMulNBits
_LEVEL = 64  # rounded weights of linear layers lie in [-64, 64)
_SMOOTHING = 0.75  # the exponent alpha of SmoothQuant: the share of the rounding that is moved from inputs to weights
_TINY = 1e-12  # added to spans, which are all zero for a layer of constant inputs
_SENTENCES, _PARAGRAPH = 8, 40  # of each packaged file, to measure the inputs of layers
_CHUNK = 4096  # tokens that are computed together for that
_QUANTIZED, _SCALES, _UNIT = ".quantized", ".scales", ".unit"
_ONE, _ZERO = "input_scale", "input_zero"
_FACTORS, _CENTRES, _SHIFTED = ".factors", ".centres", ".shifted"
_CODES, _CENTROIDS, _STARTS = ".codes", ".centroids", ".starts"
_PARTS = (3, 4)  # values of a row of a rare word that share a centroid: the first that divide it
_SAMPLE = 20_000  # rows that centroids are made of
_MICROSOFT = "com.microsoft"
_BY_LENGTH = {"longformer"}  # kinds of models whose attention is cut by the length of a text, which a graph fixes


@check_arguments()
def build_graph(
    encoder: Encoder,
    *,
    words: Words | None = "int4",
    layers: Layers = "int8",
    block: int = BLOCK,
    frequent: NonNegativeInt = 0,
    source: str = "",
) -> bytes:
    """The ONNX model of a transformer; the same encoder gives the same bytes.

    words    the word table: float32, int8 or int4; None: there is none, and the graph takes `words` (N, T, H), the rows
             of the table, instead of `input_ids`
    layers   the linear layers of the backbone: int8 or float32
    block    values of a row of the word table that share a scale: 16 times a power of two
    frequent rows of the word table, from the first, that have the form `words` (int8 or int4); those after them are
             product-quantized. 0: all rows have that form
    source   a note of the encoder in the file, by which an index knows both as one model

    Raises MissingExtraError without the package onnx (and faiss, for rare words), EncoderError if the model can't be
    exported, ValueError for other settings.
    """
    if block < 16 or block & (block - 1):
        raise ValueError(f"block must be 16 times a power of two, got {block}")
    if frequent and words not in packing.BITS:
        raise ValueError(f"frequent must be 0 unless words are in int8 or int4, got {frequent} with {words!r}")
    with naming_extras():
        import onnx
    backbone = adapters.merge_adapters(encoder.backbone)
    if (kind := getattr(backbone.config, "model_type", "")) in _BY_LENGTH:
        problem = f"a {kind} can't be exported to ONNX, nor compute in int8: its graph would be of one length"
        raise EncoderError(f"{problem}; compute in float32, and save it with weights='int8'")
    table = backbone.get_input_embeddings().weight.detach().cpu().float()
    model = onnx.load_model_from_string(_trace(encoder, backbone, from_ids=words is not None))
    graph = _Graph(model)
    if words is not None:
        graph.set_table(_table_name(backbone), table, words, block, frequent or len(table))
    if layers != packing.FULL:
        graph.round_layers(_input_ranges(encoder, backbone))
    model.producer_name, model.producer_version = "isoglot", ""
    if source:
        model.metadata_props.add(key=layout.SOURCE, value=source)
    try:
        return cast(bytes, model.SerializeToString(deterministic=True))
    except Exception as error:  # a message of more than 2 GB, reported in several ways
        raise EncoderError(f"the model is too large for one ONNX file: {error}; use words='int8'") from error


def write_onnx(
    encoder: Encoder,
    folder: str | Path,
    *,
    name: str | None = None,
    words: Words = "int4",
    layers: Layers = "int8",
    compress: bool = False,
    **settings: Any,
) -> None:
    """Write a model folder whose weights are `onnx/model_quantized.onnx`, atomically.

    `isoglot.load` opens it, and any ONNX Runtime runs its graph. `compress` writes tokenizer.json.xz, a quarter of the
    size, which other programs don't read; the other settings are those of `build_graph`.

    Raises OutputError if the folder can't be replaced.
    """
    source = f"{encoder.fingerprint} {encoder.dim} {encoder.identity()}"
    data = build_graph(encoder, words=words, layers=layers, source=source, **settings)
    with layout.replacing(folder) as new:
        encoder.write_settings(new, name=name)
        pieces.write(new)
        if compress:
            packing.compress_tokenizer(new / "tokenizer.json")
        (new / layout.GRAPH).parent.mkdir()
        (new / layout.GRAPH).write_bytes(data)
        encoder.write_card(new, name=name, weights=f"ONNX, layers {layers}, words {words}")


def read_graph(path: str | Path) -> dict[str, Tensor]:
    """The weights in a file of `build_graph`, in float32, under the names that they have in the backbone.

    Those of layers after the pooling are among them, as `projections.0.linear.weight`; a pooler is not.

    Raises MissingExtraError without the package onnx, EncoderError if the file is damaged or was not written by this
    library.
    """
    with naming_extras():
        import onnx
    with configs.reading(path):
        model = onnx.load_model(path, load_external_data=False)
        weights = dict(_weights(model))
    if model.producer_name != "isoglot":
        raise EncoderError(f"{path}: was not written by isoglot, so its weights have other names; save the model again")
    return weights


# Tracing


def _input_ranges(encoder: Encoder, backbone: Any) -> dict[str, NDArray[np.float32]]:
    """The least and greatest (2, D) inputs of each linear layer over packaged text, by the name of its weight."""
    ranges: dict[str, Tensor] = {}
    observed: Any = evaluating(backbone, always_copy=True)  # another thread may be encoding with it

    def observe(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def update(_module: nn.Module, inputs: tuple[Any, ...]) -> None:
            rows = inputs[0].flatten(0, -2)
            rows = torch.cat([rows, ranges[name]]) if name in ranges else rows
            ranges[name] = torch.stack([rows.amin(0), rows.amax(0)])

        return update

    for name, module in observed.named_modules(remove_duplicate=False):
        if isinstance(module, nn.Linear):
            module._forward_pre_hooks = OrderedDict()  # the copy shares those of the encoder
            module.register_forward_pre_hook(observe(f"{name}.weight"))
    tokens = tokens_to_measure(encoder)
    for rows in pack(tokens.lengths, _CHUNK):
        ids, mask = tokens.select(rows).pad(encoder.pad or 0)
        tables = [torch.from_numpy(table) for table in (ids, np.ones_like(ids) if mask is None else mask)]
        with torch.inference_mode():
            observed(**{name: table.to(encoder.device) for name, table in zip(INPUTS, tables, strict=True)})
    return {name: values.float().cpu().numpy() for name, values in ranges.items()}


def tokens_to_measure(encoder: Encoder) -> Tokens:
    """Those of sentences and paragraphs in sixteen languages, after the encoder's prompts in turn."""
    texts: list[str] = []
    for path in sorted((BUNDLED / "pairs").glob("*.tsv.xz")):
        lines = [line.split("\t") for _, line in islice(read_lines(path), 1, 1 + _PARAGRAPH)]
        texts += [text for line in lines[:_SENTENCES] for text in line[:2]]
        texts.append(" ".join(line[0] for line in lines))
    prompts = cycle(dict.fromkeys([encoder.prompt, *encoder.prompts.values()]))
    return encoder.tokenize([prompt + text for prompt, text in zip(prompts, texts, strict=False)], prompt="")


class _Traced(nn.Module):
    """What is exported: ids, or the rows of their words, and a mask to vectors and states."""

    projections: nn.ModuleList

    def __init__(self, backbone: nn.Module, projections: nn.ModuleList, pooling: str, *, from_ids: bool) -> None:
        super().__init__()
        # The parts of the backbone are parts of this module: so weights have the names that they have in the backbone.
        for parts in ("_parameters", "_buffers", "_non_persistent_buffers_set"):
            setattr(self, parts, getattr(backbone, parts))
        self._modules = {**backbone._modules, "projections": projections}
        self.run_backbone, self.pooling = backbone.forward, pooling
        self.key = "input_ids" if from_ids else "inputs_embeds"

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        layered = POOLINGS[self.pooling].is_layered
        output = self.run_backbone(**{self.key: words}, attention_mask=mask, output_hidden_states=layered)
        states = output.hidden_states if layered else (output.last_hidden_state,)
        vectors = POOLINGS[self.pooling](states, mask)
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors, states[-1]


def _trace(encoder: Encoder, backbone: Any, *, from_ids: bool) -> bytes:
    """The plain graph, in which the word table has two rows: it is traced only for its place."""
    copied: Any = evaluating(backbone, always_copy=True)  # another thread may be encoding with it
    config = copy.deepcopy(copied.config)
    config._attn_implementation = "eager"  # plain standard operators, which any runtime has
    for module in copied.modules():
        if getattr(module, "config", None) is backbone.config:
            module.config = config
    width = copied.get_input_embeddings().weight.shape[1]
    if from_ids:
        copied.set_submodule(_table_name(copied), nn.Embedding(2, width))
    projections = evaluating(cast(Any, encoder.projections), always_copy=True)
    traced = _Traced(copied, cast(nn.ModuleList, projections), encoder.pooling, from_ids=from_ids)
    if any((weight.device.type, weight.dtype) != ("cpu", torch.float32) for weight in traced.parameters()):
        traced = copy.deepcopy(traced).to("cpu", torch.float32)
    traced.training = True  # equal weights stay apart, as in training, and so have their own names
    free = {0: "rows", 1: "tokens"}
    inputs = INPUTS if from_ids else ("words", "mask")
    example = torch.ones(2, 3, dtype=torch.long) if from_ids else torch.zeros(2, 3, width)
    with (
        tempfile.TemporaryDirectory(prefix="isoglot-onnx-") as folder,
        torch.inference_mode(False),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")  # the exporter's advice does not concern our users
        path = Path(folder, "plain.onnx")
        torch.onnx.export(
            traced, (example, torch.ones(2, 3, dtype=torch.long)), str(path),
            input_names=list(inputs), output_names=list(OUTPUTS), opset_version=17, dynamo=False,
            dynamic_axes={**dict.fromkeys((*inputs, OUTPUTS[1]), free), OUTPUTS[0]: {0: "rows"}},
            do_constant_folding=False,  # folded weights lose their names
            training=torch.onnx.TrainingMode.PRESERVE,
        )  # fmt: skip
        return path.read_bytes()


def _table_name(backbone: Any) -> str:
    """The name of the module that is the word table."""
    table = backbone.get_input_embeddings()
    return next(str(name) for name, module in backbone.named_modules() if module is table)


# Rounding


class _Graph:
    """A traced model, of which nodes are replaced."""

    def __init__(self, model: Any) -> None:
        import onnx

        self.helper = onnx.helper
        self.from_array, self.to_array = onnx.numpy_helper.from_array, onnx.numpy_helper.to_array
        self.model, self.graph = model, model.graph
        self.weights = {weight.name: weight for weight in self.graph.initializer}

    def add(self, name: str, values: NDArray[Any]) -> str:
        """A new initializer, unless there is one of this name; its name."""
        if name not in self.weights:
            self.graph.initializer.append(self.from_array(np.ascontiguousarray(values), name))
            self.weights[name] = self.graph.initializer[-1]
        return name

    def node(self, kind: str, inputs: list[str], outputs: list[str], **settings: Any) -> Any:
        """A node that is not yet in the graph, named after its first output."""
        return self.helper.make_node(kind, inputs, outputs, name=f"{outputs[0]}_{kind}", **settings)

    def replace(self, nodes: Mapping[int, list[Any]]) -> None:
        """Put other nodes in the places of those with these numbers, and remove what nothing uses any more."""
        nodes_left = [new for place, node in enumerate(self.graph.node) for new in nodes.get(place, [node])]
        used = {name for node in nodes_left for name in node.input} | {output.name for output in self.graph.output}
        nodes_left = [node for node in nodes_left if used.intersection(node.output)]
        used = {name for node in nodes_left for name in node.input}
        weights = [weight for weight in self.graph.initializer if weight.name in used]
        del self.graph.node[:], self.graph.initializer[:]
        self.graph.node.extend(nodes_left)
        self.graph.initializer.extend(weights)
        if all(opset.domain != _MICROSOFT for opset in self.model.opset_import):
            self.model.opset_import.append(self.helper.make_opsetid(_MICROSOFT, 1))

    def set_table(self, module: str, table: Tensor, form: str, block: int, frequent: int) -> None:
        """Give the table of words its rows: the `frequent` first in this form, the others product-quantized."""
        name = f"{module}.weight"
        if form == packing.FULL:
            self.weights[name].CopyFrom(self.from_array(table.numpy(), name))
            return
        self._add_rounded(name, table[:frequent], packing.BITS[form], block)
        if len(table) > frequent:
            self._add_centroids(name, table[frequent:])
        settings = {"gather_axis": 0, "quantize_axis": 1, "block_size": block, "bits": packing.BITS[form]}
        wide, scaled = f"{name}.wide", f"{name}.scaled"
        new = {}
        for place, node in enumerate(self.graph.node):
            if name in node.input:
                ids, (rows,) = node.input[1], node.output
                before: list[Any] = []
                after: list[Any] = []
                if len(table) > frequent:
                    before, after, ids, rows = self._split(name, ids, rows, frequent)
                inputs = [name + _QUANTIZED, ids, scaled]
                new[place] = [
                    self.node("Cast", [name + _SCALES], [wide], to=1),  # done once, when a session begins
                    self.node("Mul", [wide, name + _UNIT], [scaled]),
                    *before,
                    self.node("GatherBlockQuantized", inputs, [rows], domain=_MICROSOFT, **settings),
                    *after,
                ]
        self.replace(new)

    def _add_rounded(self, name: str, rows: Tensor, bits: int, block: int) -> None:
        if rows.shape[1] % 2:
            raise EncoderError(f"a word table of odd width, {rows.shape[1]}, can't be rounded; use words='float32'")
        level = 1 << (bits - 1)
        integers, scales, unit = packing.fit_blocks(rows, block, level, power_of_two=True)
        stored = (integers.reshape(len(rows), -1)[:, : rows.shape[1]].short() + level).to(torch.uint8)
        if bits == 4:
            stored = stored[:, 0::2] | (stored[:, 1::2] << 4)
        self.add(name + _QUANTIZED, stored.numpy())
        self.add(name + _SCALES, scales.numpy())
        self.add(name + _UNIT, np.float32(unit))

    def _add_centroids(self, name: str, rows: Tensor) -> None:
        width = next((part for part in _PARTS if rows.shape[1] % part == 0), 0)
        if not width:
            raise EncoderError(f"rows of {rows.shape[1]} values can't be product-quantized; use frequent=0")
        with naming_extras():
            import faiss
        values, parts = np.ascontiguousarray(rows.numpy()), rows.shape[1] // width
        quantizer = faiss.ProductQuantizer(rows.shape[1], parts, 8)
        quantizer.train(values[np.linspace(0, len(values) - 1, max(256, min(_SAMPLE, len(values)))).astype(np.int64)])
        self.add(name + _CODES, quantizer.compute_codes(values))
        self.add(name + _CENTROIDS, faiss.vector_to_array(quantizer.centroids).reshape(-1, width))
        self.add(name + _STARTS, np.arange(parts, dtype=np.int32) * 256)

    def _split(self, name: str, ids: str, rows: str, frequent: int) -> tuple[list[Any], list[Any], str, str]:
        """Nodes before and after a look-up of the frequent words, the ids it is given, and the rows that it makes."""
        first = self.add(f"{name}.first_rare", np.int64(frequent))
        last = self.add(f"{name}.last_frequent", np.int64(frequent - 1))
        zero, axis = self.add(f"{name}.zero", np.int64(0)), self.add(f"{name}.axis", np.array([-1]))
        shape = self.add(f"{name}.shape", np.array([0, 0, -1]))
        before = [self.node("Min", [ids, last], [f"{rows}.frequent_ids"])]
        after = [
            self.node("Sub", [ids, first], [f"{rows}.signed"]),
            self.node("Max", [f"{rows}.signed", zero], [f"{rows}.rare_ids"]),
            self.node("Gather", [name + _CODES, f"{rows}.rare_ids"], [f"{rows}.codes"]),
            self.node("Cast", [f"{rows}.codes"], [f"{rows}.numbers"], to=6),
            self.node("Add", [f"{rows}.numbers", name + _STARTS], [f"{rows}.places"]),
            self.node("Gather", [name + _CENTROIDS, f"{rows}.places"], [f"{rows}.parts"]),
            self.node("Reshape", [f"{rows}.parts", shape], [f"{rows}.rare"]),
            self.node("Less", [ids, first], [f"{rows}.is_frequent"]),
            self.node("Unsqueeze", [f"{rows}.is_frequent", axis], [f"{rows}.choice"]),
            self.node("Where", [f"{rows}.choice", f"{rows}.frequent", f"{rows}.rare"], [rows]),
        ]
        return before, after, f"{rows}.frequent_ids", f"{rows}.frequent"

    def round_layers(self, ranges: Mapping[str, NDArray[np.float32]]) -> None:
        """Compute in eight bits what multiplies by these weights, given the least and greatest (2, D) of its inputs."""
        turned = {node.output[0]: node.input[0] for node in self.graph.node if node.op_type == "Transpose"}
        sums = {
            name: (place, node, bias)
            for place, node in enumerate(self.graph.node) if node.op_type == "Add"
            for name, bias in (node.input, node.input[::-1]) if bias in self.weights
        }  # fmt: skip
        new: dict[int, list[Any]] = {}
        for place, node in enumerate(self.graph.node):
            name = turned.get(node.input[1], "") if node.op_type == "MatMul" else ""
            if name not in ranges:
                continue
            outputs, inputs = self.weights[name].dims
            if outputs < inputs:
                new[place] = [self._layer_in_blocks(node, name)]
                continue
            (rows, _), (output,), bias = node.input, node.output, ""
            if output in sums:
                later, addition, bias = sums[output]
                output, new[later] = addition.output[0], []
            self._round_weight(name, bias, *ranges[name])
            new[place] = self._layer(name, (bias or name) + _SHIFTED, rows, output)
        self.replace(new)

    def _layer_in_blocks(self, node: Any, name: str) -> Any:
        """The node of a layer whose inputs and weights have a scale for every 128 values of a row."""
        if name + _QUANTIZED not in self.weights:
            values = torch.from_numpy(self.to_array(self.weights[name]).copy())
            integers, scales, unit = packing.fit_blocks(values, _SECOND, 128)
            self.add(name + _QUANTIZED, (integers.short() + 128).to(torch.uint8).numpy())
            self.add(name + _SCALES, (scales.float() * unit).numpy())
        outputs, inputs = self.weights[name].dims
        settings = {"K": inputs, "N": outputs, "bits": 8, "block_size": _SECOND, "accuracy_level": _INT8_INPUTS}
        operands = [node.input[0], name + _QUANTIZED, name + _SCALES]
        return self.node("MatMulNBits", operands, list(node.output), domain=_MICROSOFT, **settings)

    def _layer(self, name: str, shifted: str, rows: str, output: str) -> list[Any]:
        """The nodes of a layer with a rounded weight."""
        spread, centred, whole = f"{output}.spread", f"{output}.centred", f"{output}.whole"
        one, zero = self.add(_ONE, np.float32(1)), self.add(_ZERO, np.uint8(128))
        factors = [whole, name + _QUANTIZED, one, name + _SCALES, zero, "", shifted]
        return [
            self.node("Mul", [rows, name + _FACTORS], [spread]),
            self.node("Sub", [spread, name + _CENTRES], [centred]),
            self.node("QuantizeLinear", [centred, one, zero], [whole]),
            self.node("MatMulIntegerToFloat", factors, [output], domain=_MICROSOFT),
        ]

    def _round_weight(self, name: str, bias: str, lowest: NDArray[np.float32], highest: NDArray[np.float32]) -> None:
        """Add the parts of a layer with a rounded weight (outputs, inputs), unless they are there."""
        if name + _QUANTIZED in self.weights:
            return
        weight, centres, spans = self.to_array(self.weights[name]), (highest + lowest) / 2, (highest - lowest) / 2
        columns = np.abs(weight).max(axis=0)
        # An input that hardly varies in the packaged text may do so elsewhere: its weights are not rounded to zeros.
        spans, columns = (np.maximum(values, values.max() / _LEVEL) + _TINY for values in (spans, columns))
        factors = (columns ** (1 - _SMOOTHING) / spans**_SMOOTHING).astype(np.float32)
        factors *= 127 / (spans * factors).max()
        integers, scales, unit = packing.fit_blocks(torch.from_numpy(weight / factors), weight.shape[1], _LEVEL)
        whole, scale = integers[:, 0].T.numpy(), (scales[:, 0].float() * unit).numpy()
        shifted = (centres * factors) @ whole * scale
        self.add(name + _FACTORS, factors)
        self.add(name + _CENTRES, centres * factors)
        self.add(name + _QUANTIZED, whole)
        self.add(name + _SCALES, scale)
        self.add((bias or name) + _SHIFTED, shifted + (self.to_array(self.weights[bias]) if bias else 0))


# Reading


def _weights(model: Any) -> Iterator[tuple[str, Tensor]]:
    from onnx import numpy_helper

    stored = {weight.name: numpy_helper.to_array(weight) for weight in model.graph.initializer}
    weights: dict[str, NDArray[Any]] = {}
    for node in model.graph.node:
        name = next((name.removesuffix(_QUANTIZED) for name in node.input if name.endswith(_QUANTIZED)), "")
        if name + _QUANTIZED not in stored:  # an ordinary node, or a part of a layer that was read
            continue
        settings = {part.name: part.i for part in node.attribute}
        parts = {other.removeprefix(name): stored.pop(other) for other in [*stored] if other.startswith(f"{name}.")}
        if node.op_type == "MatMulIntegerToFloat":
            values, shifted = parts[_QUANTIZED].T * parts[_SCALES][:, None], node.input[6]
            if shifted in stored:  # of a layer without bias it is among the parts
                weights[shifted.removesuffix(_SHIFTED)] = stored.pop(shifted) - values @ parts[_CENTRES]
            weights[name] = values * parts[_FACTORS]
        elif node.op_type == "MatMulNBits":
            integers = parts[_QUANTIZED].astype(np.float32) - 128
            weights[name] = (integers * parts[_SCALES][:, :, None]).reshape(len(integers), -1)[:, : settings["K"]]
        else:
            weights[name] = _read_table(parts, settings["bits"], settings["block_size"])
    for name, values in {**stored, **weights}.items():
        if name not in (_ONE, _ZERO):
            # Not transposed: weights divided among ranks, and fused optimizers, need them row by row.
            yield name, torch.from_numpy(np.array(values, np.float32, order="C"))


def _read_table(parts: Mapping[str, NDArray[Any]], bits: int, block: int) -> NDArray[np.float32]:
    """The table of words from its parts by their endings."""
    integers = parts[_QUANTIZED]
    if bits == 4:
        integers = np.stack([integers & 15, integers >> 4], axis=2).reshape(len(integers), -1)
    values = integers.astype(np.float32) - (1 << (bits - 1))
    values *= np.repeat(parts[_SCALES].astype(np.float32) * parts[_UNIT], block, axis=1)[:, : values.shape[1]]
    if _CODES in parts:
        codes = parts[_CODES] + parts[_STARTS]
        values = np.concatenate([values, parts[_CENTROIDS][codes].reshape(len(codes), -1)])
    return values
