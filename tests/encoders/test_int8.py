"""Eight-bit integers: near the float rows, the same bytes again, and clear words where they cannot be had."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_transformer
from isoglot.encoders import int8
from isoglot.encoders.int8 import quantize
from isoglot.errors import EncoderError
from isoglot.model import encode

onnx = pytest.mark.skipif(
    any(__import__("importlib.util").util.find_spec(name) is None for name in ("onnx", "onnxruntime")),
    reason="needs the extra `onnx`",
)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ISOGLOT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@onnx
@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "distilbert"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "first-last"])
def test_rows_are_near_those_in_float(family, pooling):
    encoder = build_transformer(family=family, pooling=pooling, prompt="query: ").train()
    modes = [module.training for module in encoder.modules()]
    small = quantize(encoder)
    assert [module.training for module in encoder.modules()] == modes
    full, rows = encode(encoder, SENTENCES), encode(small, SENTENCES)
    assert rows.shape == full.shape
    assert not np.array_equal(full, rows)
    cosine = (full * rows).sum(1) / np.linalg.norm(full, axis=1) / np.linalg.norm(rows, axis=1)
    assert cosine.min() > 0.98
    np.testing.assert_array_equal(rows, encode(encoder, SENTENCES, precision="int8"))
    np.testing.assert_allclose(encode(small, SENTENCES, prompt=""), encode(encoder, SENTENCES, prompt=""), atol=0.2)
    assert encoder.prompt == small.prompt == "query: "


@onnx
def test_every_layer_is_rounded_and_those_that_narrow_in_blocks():
    from onnx import load_model_from_string

    encoder = build_transformer(family="bert")
    depth = encoder.backbone.config.num_hidden_layers
    graph = load_model_from_string(quantize(encoder).graph.source).graph
    weights = {weight.name for weight in graph.initializer}
    assert not [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in weights]
    rounded = [node for node in graph.node if node.op_type == "MatMulInteger"]
    assert len(rounded) == 5 * depth  # query, key, value, what follows the attention, and the first of the block
    blocks = [node for node in graph.node if node.op_type == "MatMulNBits"]
    sizes = [{part.name: part.i for part in node.attribute} for node in blocks]
    assert [(size["K"], size["N"]) for size in sizes] == [
        (encoder.backbone.config.intermediate_size, encoder.dim)
    ] * depth


@onnx
@pytest.mark.parametrize("inputs", [64, 128, 200, 512])
def test_a_product_in_blocks_is_that_of_a_loop(tmp_path, inputs):
    """Each 128 values of a row of inputs and of a column of weights are rounded to eight bits with their own scale."""
    from onnx import TensorProto, helper, numpy_helper, save
    from onnxruntime import InferenceSession

    random = np.random.default_rng(inputs)
    rows, outputs = 5, 24
    x = random.normal(size=(rows, inputs)).astype(np.float32)
    x[:, 3] *= 300
    weight = random.normal(size=(inputs, outputs)).astype(np.float32)
    weight[:, 7] = 0
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], "one",
        [value("x", shape=["rows", inputs])], [value("y", shape=["rows", outputs])],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    path = tmp_path / "one.onnx"
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    int8._round_in_blocks(path)
    (found,) = InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})

    wanted = np.zeros((rows, outputs))
    for row in range(rows):
        for column in range(outputs):
            for start in range(0, inputs, 128):
                own, other = x[row, start : start + 128], weight[start : start + 128, column]
                scales = [max(np.abs(part).max(), 1e-30) / 127 for part in (own, other)]
                a, b = (np.rint(part / scale) for part, scale in zip((own, other), scales, strict=True))
                wanted[row, column] += scales[0] * scales[1] * (a @ b)
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=0.02 * np.abs(wanted).mean())
    assert np.abs(found[:, 7]).max() < 0.01


@onnx
def test_one_in_int8_travels_and_says_what_it_is(tmp_path):
    encoder = build_transformer()
    small = quantize(encoder)
    assert small.at("int8") is small
    assert small.fingerprint == encoder.fingerprint
    assert small.identity() != encoder.identity()
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(encode(again, SENTENCES), encode(small, SENTENCES))
    assert encode(small, []).shape == (0, 16)
    with pytest.raises(EncoderError, match="no folder"):
        small.save(tmp_path / "model")


def test_only_transformers(toy_static):
    with pytest.raises(EncoderError, match="int8 is for transformers, and this is a StaticEncoder"):
        quantize(toy_static)


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime.quantization", None)
    with pytest.raises(EncoderError, match=r'pip install "isoglot\[onnx\]"'):
        quantize(build_transformer())
    assert torch.is_grad_enabled()


@pytest.fixture
def exports(monkeypatch):
    """The exports that are made."""
    made = []
    export = int8._export
    monkeypatch.setattr(int8, "_export", lambda *given: (made.append(1), export(*given)))
    return made


@onnx
def test_an_encoder_is_exported_once_for_its_weights(exports, cache, caplog):
    encoder = build_transformer()
    with caplog.at_level("INFO", logger="isoglot"):
        first = encode(encoder, SENTENCES, precision="int8")
        encode(encoder.train(), SENTENCES, precision="int8")
    assert len(exports) == 1
    assert caplog.text.count("exporting the encoder to int8") == 1
    with torch.no_grad():
        encoder.backbone.encoder.layer[0].output.dense.weight.mul_(-1)
    changed = encode(encoder, SENTENCES, precision="int8")
    assert len(exports) == 2
    assert not np.array_equal(first, changed)
    assert len(list((cache / "int8").iterdir())) == 2


@onnx
def test_settings_are_those_of_the_call_and_not_of_the_export(exports):
    encoder = build_transformer()
    encode(encoder, SENTENCES, precision="int8")
    encoder.prompt = "query: "
    own, none = (encode(encoder, SENTENCES, precision="int8", prompt=prompt) for prompt in (None, ""))
    assert not np.array_equal(own, none)
    assert len(exports) == 1


@onnx
def test_another_process_finds_the_export_in_the_cache(exports, cache):
    first = encode(build_transformer(), SENTENCES, precision="int8")
    np.testing.assert_array_equal(encode(build_transformer(), SENTENCES, precision="int8"), first)
    assert len(exports) == 1
    (file,) = (cache / "int8").iterdir()
    file.write_bytes(file.read_bytes()[:-1000])
    np.testing.assert_array_equal(encode(build_transformer(), SENTENCES, precision="int8"), first)
    assert len(exports) == 2


@onnx
def test_threads_export_once(exports):
    encoder = build_transformer()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: encode(encoder, SENTENCES, precision="int8"), range(4)))
    assert len(exports) == 1
    for other in rows[1:]:
        np.testing.assert_array_equal(rows[0], other)


@onnx
def test_a_cache_that_cannot_be_written_is_no_fault(cache):
    cache.write_text("a file")
    assert encode(build_transformer(), SENTENCES, precision="int8").shape == (len(SENTENCES), 16)
