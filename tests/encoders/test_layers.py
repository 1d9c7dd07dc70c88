"""Dense layers, flows, and encoders with one of them: what they compute, and that saved ones come back."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import oracle
from conftest import SENTENCES, save_and_open, save_and_open_elsewhere
from isoglot.core.errors import EncoderError
from isoglot.encoders import layers, load
from isoglot.encoders.layers import Dense, Flow, WithLayer, read_flow
from isoglot.model import encode, layout


@pytest.mark.parametrize("activation", layers.ACTIVATIONS)
def test_a_dense_layer_comes_back(activation, tmp_path):
    layer = layers.Dense(4, 3, bias=False, activation=activation)
    layer.save(tmp_path)
    rows = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layers.read_dense(tmp_path)(rows), layer(rows))


@pytest.mark.parametrize(("first", "name"), [(0, "first-last"), (1, "first1-last")])
def test_the_mean_of_two_layers_is_known_by_its_weights(first, name, tmp_path):
    layers.write_layer_mean(tmp_path, (first, -1), 3, 8)
    assert layers.read_layer_mean(tmp_path, 3) == name
    with pytest.raises(EncoderError, match="mean of 3 layers, and the model has 2"):
        layers.read_layer_mean(tmp_path, 2)
    layers.write_layer_mean(tmp_path, (2, -1), 3, 8)
    with pytest.raises(EncoderError, match="only the mean of the first and the last layer"):
        layers.read_layer_mean(tmp_path, 3)


def drawn(dim, seed=0, rows=24):
    draw = torch.Generator().manual_seed(seed)
    mixing = torch.randn(dim, dim, generator=draw, dtype=torch.float64)
    return torch.randn(rows, dim, generator=draw, dtype=torch.float64) @ mixing + 3


def disturbed(dim, seed=0, **sizes):
    """A flow in float64 whose actnorms are set and whose every parameter has moved from its first value."""
    flow = Flow(dim, seed=seed, **sizes).double()
    flow.train()(drawn(dim, seed))
    draw = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for weight in flow.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=draw, dtype=weight.dtype)
    return flow.eval()


sizes = st.fixed_dictionaries(
    {
        "levels": st.integers(1, 3),
        "depth": st.integers(1, 3),
        "width": st.integers(1, 5),
        "permutation": st.sampled_from(["random", "reversed"]),
    }
)


@settings(max_examples=12)
@given(dim=st.integers(5, 11), seed=st.integers(0, 99), chosen=sizes)
def test_volume_and_likelihood(dim, seed, chosen):
    flow, x = disturbed(dim, seed, **chosen), drawn(dim, seed + 7, rows=2)
    with torch.no_grad():
        likelihood = flow.log_likelihood(x)
    for row, value in zip(x, likelihood, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow(v[None])[0], row)
        z = flow(row[None])[0].tolist()
        expected = oracle.normal_log_density(z) + float(jacobian.det().abs().log())
        assert float(value) == pytest.approx(expected, rel=1e-9)


def test_it_is_the_loops():
    flow, x = disturbed(7, levels=2, depth=2, width=3), drawn(7, 5, rows=4)
    weights = {name: value.tolist() for name, value in flow.state_dict().items()}
    for row, value in zip(x.tolist(), flow.log_likelihood(x).tolist(), strict=True):
        assert value == pytest.approx(oracle.glow_log_likelihood(row, weights, levels=2, depth=2), rel=1e-9)


def test_the_first_batch_sets_the_norms_and_no_other():
    flow, first = Flow(8, levels=1, depth=1).double(), drawn(8)
    z = flow.train()(first)
    torch.testing.assert_close(z.mean(0), torch.zeros(8, dtype=z.dtype), atol=1e-6, rtol=0)
    torch.testing.assert_close(z.std(0, unbiased=False), torch.ones(8, dtype=z.dtype), atol=1e-5, rtol=0)
    before = {name: value.clone() for name, value in flow.state_dict().items()}
    flow.train()(drawn(8, 3))
    assert all(torch.equal(before[name], value) for name, value in flow.state_dict().items())
    untouched = Flow(8)
    untouched.eval()(first.float())
    assert not any(bool(step.norm.ready) for level in untouched.levels for step in level)


def test_seeds_and_permutations():
    def order(**given):
        return Flow(9, **given).levels[0][0].order.tolist()

    assert order() == order(seed=0) != order(seed=1)
    assert order(permutation="reversed") == list(range(9))[::-1]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"permutation": "conv"}, "permutation is 'conv'; use one of random, reversed"),
        ({"depth": 0}, "depth is 0; it must be at least 1"),
        ({"dim": 4}, "vectors of 4 dimensions cannot be halved for 3 levels"),
    ],
)
def test_what_cannot_be_a_flow(settings, words):
    with pytest.raises(ValueError, match=words):
        Flow(**{"dim": 16, **settings})


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({}, r"config\.json: dim"),
        ({"dim": 9, "depth": 2}, "the flow: can't be read"),
        ({"dim": 9, "levels": 1000}, "the flow: can't be read"),
        ({"dim": 1 << 23}, "the flow: can't be read"),
        ({"dim": 9, "shape": 1}, r"config\.json: shape"),
        ({"dim": "wide"}, r"config\.json: dim"),
    ],
)
def test_a_damaged_folder_is_one_line(config, place, tmp_path):
    Flow(9).save(tmp_path)
    layout.write_json(tmp_path / "config.json", config)
    with pytest.raises(EncoderError, match=place):
        read_flow(tmp_path)


def flow(dim, seed=0):
    made = Flow(dim, levels=2, depth=2, width=4, seed=seed)
    made.train()(torch.randn(32, dim, generator=torch.Generator().manual_seed(seed)))
    return made.eval()


def kinds(folder):
    return [module.kind for module in layout.read_modules(folder)]


def test_a_flow_behind_a_transformer(toy_transformer, tmp_path):
    encoder = WithLayer(toy_transformer(pooling="first-last", prompt="q: ", normalizes=True), flow(16))
    opened = save_and_open(encoder, tmp_path / "model", atol=0)
    assert kinds(tmp_path / "model") == ["Transformer", "WeightedLayerPooling", "Pooling", "Flow", "Normalize"]
    assert (opened.prompt, opened.normalizes, opened.max_length) == ("q: ", True, encoder.max_length)
    vectors = encode(encoder, SENTENCES)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    raw = torch.from_numpy(encode(encoder.own, SENTENCES, normalize_embeddings=False))
    expected = encoder.layer(raw).detach().numpy()
    np.testing.assert_allclose(encode(opened, SENTENCES, normalize_embeddings=False), expected, atol=1e-5)
    assert encode(opened, SENTENCES, prompt="").tolist() != vectors.tolist()
    assert opened.prompt == "q: "


def test_an_adapter_is_not_saved_without_the_layer_after_it(toy_transformer, tmp_path):
    toy_transformer().save(tmp_path / "base")
    encoder = load(tmp_path / "base", adapter={"rank": 2})
    for module, has_adapter in ((encoder, True), (WithLayer(encoder, flow(16)), False)):
        module.save(tmp_path / "model")
        assert (tmp_path / "model" / "adapter").is_dir() == has_adapter


def test_sentence_transformers_imports_the_flow(toy_transformer, tmp_path):
    encoder = WithLayer(toy_transformer(normalizes=True), flow(16))
    theirs = save_and_open_elsewhere(encoder, tmp_path / "model", trust_remote_code=True)
    theirs.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(encode(load(tmp_path / "theirs"), SENTENCES), encode(encoder, SENTENCES), atol=1e-6)


def test_layers_in_a_row_keep_their_order(toy_transformer, toy_static, tmp_path):
    for number, encoder in enumerate((toy_transformer(), toy_static)):
        dim = encoder.dim
        stack = WithLayer(WithLayer(WithLayer(encoder, flow(dim)), Dense(dim, 5, activation="Identity")), flow(5))
        save_and_open(stack, tmp_path / str(number))
        layers_in_it = [kind for kind in kinds(tmp_path / str(number)) if kind in ("Flow", "Dense")]
        assert layers_in_it == ["Flow", "Dense", "Flow"]


def test_the_key_of_kept_vectors_knows_layer_and_pooling(toy_transformer):
    cases = [WithLayer(toy_transformer(pooling=pooling), flow(16, s)) for pooling in ("cls", "mean") for s in (0, 1)]
    assert len({encoder.identity() for encoder in cases}) == 4


def test_settings_that_were_changed_are_those_of_the_encoder_inside(toy_transformer, tmp_path):
    encoder = WithLayer(toy_transformer(), flow(16))
    before = encoder.encode(SENTENCES)
    encoder.prompts, encoder.pooling, encoder.normalizes = {"query": "the "}, "max", True
    expected = encoder.encode(SENTENCES, prompt_name="query")
    assert np.abs(encoder.encode(SENTENCES, normalize_embeddings=False) - before).max() > 0.01
    encoder.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.prompts, again.pooling, again.normalizes) == ({"query": "the "}, "max", True)
    np.testing.assert_allclose(again.encode(SENTENCES, prompt_name="query"), expected, atol=1e-5)


def test_a_layer_must_fit(toy_static, tmp_path):
    with pytest.raises(ValueError, match="takes 9 dimensions and the encoder gives 8"):
        WithLayer(toy_static, flow(9))
    WithLayer(toy_static, flow(8)).save(tmp_path / "model")
    place = next(module.folder for module in layout.read_modules(tmp_path / "model") if module.kind == "Flow")
    flow(9).save(place)
    with pytest.raises(
        EncoderError, match="1_Flow: can't be read: the layer takes 9 dimensions and the encoder gives 8"
    ):
        load(tmp_path / "model")
    (place / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="1_Flow"):
        load(tmp_path / "model")
