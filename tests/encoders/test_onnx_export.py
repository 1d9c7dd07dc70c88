"""Transformers as ONNX: the vectors of torch, the weights again, and the same bytes every time."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_transformer
from isoglot.core.errors import EncoderError, IsoglotError, MissingExtraError
from isoglot.encoders import TransformerEncoder, load, onnx_export
from isoglot.encoders.bert import Bert
from isoglot.encoders.onnx_export import build_graph, read_graph, write_onnx
from isoglot.model.layout import FILES, GRAPH

onnx = pytest.importorskip("onnx", reason="needs the extra `onnx`")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
FAMILIES = ["bert", "own bert", "xlm-roberta", "distilbert", "mpnet"]


def each(values, fast):
    """Each value with each family; slow tests but for those of `fast`, since each exports twice."""
    every = [(value, family) for value in values for family in FAMILIES]
    return [pytest.param(*pair, marks=[] if pair in fast else [pytest.mark.slow]) for pair in every]


@pytest.fixture
def build(tmp_path):
    def built(family, **settings):
        if family == "own bert":
            build_transformer(**settings).save(tmp_path / "own")
            encoder = load(tmp_path / "own")
            assert isinstance(encoder.backbone, Bert)
            return encoder
        return build_transformer(family=family, **settings).eval()

    return built


def run(data, encoder, texts=SENTENCES):
    """Vectors, states and the mask of the texts."""
    table, filled = encoder.tokenize(texts).pad(encoder.pad)
    ids = torch.from_numpy(table)
    mask = torch.ones_like(ids) if filled is None else torch.from_numpy(filled)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert [part.name for part in session.get_inputs()] == ["input_ids", "attention_mask"]
    assert [part.name for part in session.get_outputs()] == ["sentence_embedding", "last_hidden_state"]
    return *session.run(None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}), ids, mask


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def weights_of(encoder):
    own = {name: value for name, value in encoder.backbone.state_dict().items() if not name.startswith("pooler.")}
    return own | {f"projections.{name}": value for name, value in encoder.projections.state_dict().items()}


def written(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("family", FAMILIES)
def test_in_float32_vectors_states_and_weights_are_those_of_torch(build, family, tmp_path):
    encoder, folder = build(family), tmp_path / "model"
    write_onnx(encoder, folder, words="float32", layers="float32", compress=True)
    assert not (folder / "tokenizer.json").exists()
    np.testing.assert_allclose(load(folder).encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-6)
    data = (folder / GRAPH).read_bytes()
    vectors, states, ids, mask = run(data, encoder)
    np.testing.assert_allclose(vectors, encoder.encode(SENTENCES), atol=2e-5)
    with torch.inference_mode():
        wanted = encoder.backbone(input_ids=ids, attention_mask=mask).last_hidden_state.numpy()
    np.testing.assert_allclose(states[mask.numpy() > 0], wanted[mask.numpy() > 0], atol=2e-5)
    alone = run(data, encoder, SENTENCES[:1])[0]
    np.testing.assert_allclose(alone, vectors[:1], atol=2e-5)
    found, known = read_graph(folder / GRAPH), weights_of(encoder)
    assert found.keys() == known.keys()  # equal ones, such as the zeros of biases, are all there
    for name, value in known.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("words", "family"), each(["int8", "int4"], {("int8", "bert"), ("int8", "mpnet"), ("int4", "own bert")})
)
@pytest.mark.slow
def test_rounded_weights_are_read_as_the_graph_computes_with_them(build, family, words, tmp_path):
    """And a row does not depend on its batch."""
    encoder = build(family)
    data = build_graph(encoder, words=words)
    vectors = run(data, encoder)[0]
    assert cosines(vectors, encoder.encode(SENTENCES)).min() > 0.99
    alone, together = (run(data, encoder, [*SENTENCES[:1] * 2, *others])[0] for others in ([], ["x"] * 3))
    np.testing.assert_allclose(alone[0], together[0], rtol=0, atol=1e-6)
    found, known = read_graph(written(tmp_path / "graph.onnx", data)), weights_of(encoder)
    assert found.keys() == known.keys()
    table = next(name for name in known if "word_embeddings" in name)
    for name, value in known.items():
        rounded = value.ndim == 2 and ("embeddings" not in name and "relative" not in name)
        limit = {"int8": 0.01, "int4": 0.1}[words] if name == table else 0.02 if rounded else 0
        assert (found[name] - value).norm() <= limit * value.norm() + 1e-6, name  # biases: as near as float32 adds
        assert found[name].is_contiguous(), name  # or its training could not be divided among ranks
    # The lookup, without the rounding of inputs: an encoder with the weights that were read gives the same.
    plain = build_graph(encoder, words=words, layers="float32")
    rows = run(plain, encoder)[0]
    with torch.no_grad():
        encoder.backbone.get_input_embeddings().weight.copy_(found[table])
    np.testing.assert_allclose(rows, encoder.encode(SENTENCES), atol=2e-5)


@pytest.mark.parametrize("block", [16, 32, 64])
@pytest.mark.slow
def test_a_table_on_a_grid_of_four_bits_is_kept(block, tmp_path):
    encoder = build_transformer()
    table = encoder.backbone.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(0)
    whole = torch.randint(-7, 8, table.shape, generator=generator)
    whole[:, 5] = -8
    scales = (torch.rand(len(table), 1, generator=generator) / 100 + 0.001).half().float()
    with torch.no_grad():
        table.copy_(whole * scales)
    data = build_graph(encoder, words="int4", block=block)
    found = read_graph(written(tmp_path / "graph.onnx", data))["embeddings.word_embeddings.weight"]
    torch.testing.assert_close(found, table.detach(), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("frequent", "family"), each([1, 40, 10_000], {(1, "own bert"), (40, "mpnet"), (10_000, "bert")})
)
@pytest.mark.slow
def test_rows_of_rare_words_are_looked_up_by_their_centroids(build, family, frequent, tmp_path):
    pytest.importorskip("faiss", reason="needs the extra `faiss`")
    encoder = build(family)
    table = encoder.backbone.get_input_embeddings().weight
    data = build_graph(encoder, words="int8", layers="float32", frequent=frequent)
    weights = read_graph(written(tmp_path / "graph.onnx", data))
    assert weights.keys() == weights_of(encoder).keys()
    read = next(values for name, values in weights.items() if "word_embeddings" in name)
    whole = next(
        values
        for name, values in read_graph(written(tmp_path / "w.onnx", build_graph(encoder, words="int8"))).items()
        if "word_embeddings" in name
    )
    assert read.shape == table.shape
    assert torch.equal(read[:frequent], whole[:frequent])
    # Fewer rows than the 256 centroids: each is one of them, so nothing is lost.
    torch.testing.assert_close(read[frequent:], table.detach()[frequent:], rtol=0, atol=1e-6)
    vectors = run(data, encoder)[0]
    with torch.no_grad():
        table.copy_(read)
    np.testing.assert_allclose(vectors, encoder.encode(SENTENCES), atol=2e-5)


@pytest.mark.parametrize("pooling", ["cls", "max", "first-last", "first1-last"])
def test_pooling_and_dense_layers_are_in_the_graph(pooling):
    encoder = build_transformer(pooling=pooling, dim=8).eval()
    data = build_graph(encoder, words="float32", layers="float32")
    vectors = run(data, encoder)[0]
    assert vectors.shape == (len(SENTENCES), 8)
    np.testing.assert_allclose(vectors, encoder.encode(SENTENCES), atol=2e-5)


def test_every_linear_layer_is_rounded_and_the_table_not_expanded():
    encoder = build_transformer()
    model = onnx.load_model_from_string(build_graph(encoder))
    kinds = [node.op_type for node in model.graph.node]
    counts = [kinds.count(kind) for kind in ("MatMulIntegerToFloat", "MatMulNBits", "GatherBlockQuantized")]
    assert counts == [10, 2, 1]
    onnx.checker.check_model(model)
    shapes = {weight.name: list(weight.dims) for weight in model.graph.initializer}
    name = "embeddings.word_embeddings.weight"
    assert (shapes[f"{name}.quantized"], shapes[f"{name}.scales"]) == ([220, 8], [220, 1])
    assert name not in shapes
    assert not [name for name in shapes if name.startswith("backbone.")]


def layer_of(random, outputs, inputs):
    weight = random.normal(size=(outputs, inputs)).astype(np.float32)
    weight[7] = 0
    return weight, random.normal(size=outputs).astype(np.float32)


def linear(weight, bias):
    """A traced model that is one linear layer, with weights `w` and `bias`."""
    from onnx import TensorProto, helper, numpy_helper

    def value(name, width):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["rows", width])

    nodes = [helper.make_node("Transpose", ["w"], ["t"]), helper.make_node("MatMul", ["x", "t"], ["product"])]
    nodes += [] if bias is None else [helper.make_node("Add", ["bias", "product"], ["y"])]
    weights = [numpy_helper.from_array(weight, "w")] + ([] if bias is None else [numpy_helper.from_array(bias, "bias")])
    result = value("product" if bias is None else "y", len(weight))
    graph = helper.make_graph(nodes, "one", [value("x", weight.shape[1])], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rounded(weight, bias, x):
    """Of a linear layer whose weights are rounded: kinds of its nodes, weights that are read, and what it computes."""
    model = linear(weight, bias)
    onnx_export._Graph(model).round_layers({"w": np.stack([x.min(0), x.max(0)])})
    (computed,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    read = {name: values.numpy() for name, values in onnx_export._weights(model)}
    return [node.op_type for node in model.graph.node], read, computed


@pytest.mark.parametrize("inputs", [64, 128, 200, 512])
def test_a_product_in_blocks_is_that_of_a_loop(inputs):
    """Of a layer with fewer outputs than inputs, each 128 values of a row have their own scale, also of the inputs."""
    random = np.random.default_rng(inputs)
    rows, outputs = 5, 24
    x = random.normal(size=(rows, inputs)).astype(np.float32)
    x[:, 3] *= 300
    weight, bias = layer_of(random, outputs, inputs)
    kinds, weights_read, computed = rounded(weight, bias, x)
    read = weights_read["w"]
    assert kinds == ["MatMulNBits", "Add"]
    assert np.linalg.norm(read - weight) < 0.01 * np.linalg.norm(weight)

    wanted = np.zeros((rows, outputs))
    for row in range(rows):
        for column in range(outputs):
            for start in range(0, inputs, 128):
                values, weights = x[row, start : start + 128], read[column, start : start + 128]
                scale = max(np.abs(values).max(), 1e-30) / 127
                wanted[row, column] += scale * (np.rint(values / scale) @ weights)
    np.testing.assert_allclose(computed, wanted + bias, rtol=1e-3, atol=0.005 * np.abs(wanted).mean())


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("inputs", [3, 50, 80])
def test_a_rounded_layer_is_that_of_a_loop(inputs, has_bias):
    """Inputs are centred, divided by a factor each (SmoothQuant, equation 4) and rounded with one scale."""
    random = np.random.default_rng(inputs)
    rows, outputs = 5, 80
    x = random.normal(size=(rows, inputs)).astype(np.float32)
    x[:, 1] = 300 + 20 * x[:, 1]  # one far greater than the rest, and never near zero
    x[:, 2] = 0  # and one that does not vary
    weight, bias = layer_of(random, outputs, inputs)
    kinds, read, computed = rounded(weight, bias if has_bias else None, x)
    assert kinds == ["Mul", "Sub", "QuantizeLinear", "MatMulIntegerToFloat"]
    assert np.linalg.norm(read["w"] - weight) < 0.1 * np.linalg.norm(weight)
    assert not has_bias or np.abs(read["bias"] - bias).max() < 1e-3  # in float32, beside 300 times a weight

    share = onnx_export._SMOOTHING
    spans, centres = (x.max(0) - x.min(0)) / 2, (x.max(0) + x.min(0)) / 2
    spans = [max(span, max(spans) / 64) for span in spans]
    factors = [spans[j] ** share / np.abs(weight[:, j]).max() ** (1 - share) for j in range(inputs)]
    step = max(spans[j] / factors[j] for j in range(inputs)) / 127
    wanted = np.zeros((rows, outputs))
    for row in range(rows):
        for column in range(outputs):
            for j in range(inputs):
                whole = np.rint((x[row, j] - centres[j]) / factors[j] / step)
                wanted[row, column] += (whole * step * factors[j] + centres[j]) * read["w"][column, j]
            wanted[row, column] += bias[column] * has_bias
    np.testing.assert_allclose(computed, wanted, rtol=1e-3, atol=0.02 * np.abs(wanted).mean())


def test_the_encoder_is_not_changed_by_its_export():
    encoder = build_transformer(adapter={"rank": 2}).train()
    parts = dict(encoder.named_modules())
    modes = [module.training for module in encoder.modules()]
    with torch.no_grad():
        for name, weight in encoder.named_parameters():
            if name.endswith("up"):
                weight.normal_(std=0.1)
    wanted = encoder.encode(SENTENCES)
    vectors = run(build_graph(encoder, words="float32", layers="float32"), encoder)[0]  # with the adapter merged
    np.testing.assert_allclose(vectors, wanted, atol=2e-5)
    assert dict(encoder.named_modules()) == parts
    assert [module.training for module in encoder.modules()] == modes
    assert encoder.backbone.config._attn_implementation != "eager"
    np.testing.assert_array_equal(encoder.encode(SENTENCES), wanted)


def test_a_folder_opens_as_a_trainable_encoder(tmp_path):
    encoder = build_transformer(dim=8, prompt="query: ", prompts={"document": "d: "}, normalizes=True).eval()
    encoder.save(tmp_path / "model", name="toy", weights="onnx")
    files = {path.relative_to(tmp_path / "model").as_posix() for path in (tmp_path / "model").rglob("*")}
    assert "model.safetensors" not in files
    assert {GRAPH, "modules.json", "config.json", "config_sentence_transformers.json", "1_Pooling/config.json"} <= files
    assert {"sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"} <= files
    again = load(tmp_path / "model")
    assert (again.name, again.prompt, again.prompts["document"]) == ("toy", "query: ", "d: ")
    assert (again.dim, again.max_length, again.normalizes) == (8, encoder.max_length, True)
    assert cosines(again.encode(SENTENCES), encoder.encode(SENTENCES)).min() > 0.98
    again.train()(again.tokenize(SENTENCES)).sum().backward()
    assert again.backbone.get_input_embeddings().weight.grad.abs().sum() > 0
    again.save(tmp_path / "plain")
    np.testing.assert_allclose(load(tmp_path / "plain").encode(SENTENCES), again.eval().encode(SENTENCES), atol=1e-6)


@pytest.mark.slow
def test_equal_encoders_are_equal_files(tmp_path):
    for place in ("a", "b"):
        build_transformer(dim=8).save(tmp_path / place, name="toy", weights="onnx")
    names = {path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()}
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
    assert b"site-packages" not in (tmp_path / "a" / GRAPH).read_bytes()


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path):
    build_transformer().save(tmp_path / "model")
    code = (
        "import sys, hashlib, isoglot; from isoglot.encoders.onnx_export import build_graph; "
        "print(hashlib.sha256(build_graph(isoglot.load(sys.argv[1]))).hexdigest())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2))
    assert len(first.strip()) == 64
    assert first == second


def test_impossible_settings_and_models(toy_static, tmp_path):
    encoder = build_transformer()
    for name, value in (("words", "int3"), ("layers", "int4"), ("block", 24), ("frequent", -1), ("frequent", 9)):
        with pytest.raises(ValueError, match=f"^{name} "):
            build_graph(encoder, **{"words": "float32", name: value})
    with pytest.raises(ValueError, match="words is 'float16'"):
        encoder.save(tmp_path / "model", weights="onnx", words="float16")
    with pytest.raises(EncoderError, match="only transformers can be exported to ONNX, and this is a StaticEncoder"):
        toy_static.save(tmp_path / "model", weights="onnx")
    with torch.no_grad():
        encoder.backbone.get_input_embeddings().weight[3, 3] = torch.nan
    with pytest.raises(EncoderError, match="not finite"):
        build_graph(encoder)
    assert not (tmp_path / "model").exists()


def test_files_that_cannot_be_read(tmp_path):
    write_onnx(build_transformer(), tmp_path / "model")
    path = tmp_path / "model" / GRAPH
    data = path.read_bytes()
    path.write_bytes(data[:-500])
    with pytest.raises(EncoderError, match=r"model_quantized.onnx: can't be read"):
        load(tmp_path / "model")
    model = onnx.load_model_from_string(data)
    model.producer_name = "pytorch"
    onnx.save(model, path)
    with pytest.raises(EncoderError, match="was not written by isoglot"):
        load(tmp_path / "model")
    model.producer_name = "isoglot"
    weight = next(weight for weight in model.graph.initializer if weight.name.endswith("LayerNorm.bias"))
    model.graph.initializer.remove(weight)
    onnx.save(model, path)
    with pytest.raises(IsoglotError, match=r"LayerNorm\.bias"):
        load(tmp_path / "model")
    assert (tmp_path / "model" / FILES).exists()


def test_the_missing_extra_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    for call in (lambda: read_graph(tmp_path / "graph"), lambda: write_onnx(build_transformer(), tmp_path / "other")):
        with pytest.raises(MissingExtraError, match=r'pip install "isoglot\[torch\]"'):
            call()


def test_a_model_whose_graph_would_fit_one_length_is_refused():
    encoder = build_transformer()
    encoder.backbone.config.model_type = "longformer"
    with pytest.raises(EncoderError, match="a longformer can't be exported to ONNX"):
        build_graph(encoder)


@pytest.mark.slow
def test_an_exported_squeezebert_opens(tmp_path):
    """Its network calls a pooler, which no graph has."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "embedding_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    groups = {"vocab_size": 220, "intermediate_size": 32, "max_position_embeddings": 64}
    backbone = transformers.SqueezeBertModel(transformers.SqueezeBertConfig(q_groups=2, **sizes, **groups))
    encoder = TransformerEncoder(backbone, build_transformer().tokenizer).eval()
    write_onnx(encoder, tmp_path / "made", words="float32", layers="float32")
    np.testing.assert_allclose(load(tmp_path / "made").encode(SENTENCES), encoder.encode(SENTENCES), atol=1e-4)
