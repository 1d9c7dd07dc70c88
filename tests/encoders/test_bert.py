"""Our BERT and its kin against those of transformers: outputs, gradients and files."""

import json
from functools import partial

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from conftest import SENTENCES
from isoglot.core.errors import EncoderError
from isoglot.encoders import bert, load
from isoglot.encoders.layers import write_weights
from isoglot.objectives import InfoNCE
from isoglot.training.step import StepLimits, backward
from toys import toy_batch

SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 32,
    "max_position_embeddings": 24,
}


DISTIL = {"dim": 16, "n_layers": 3, "n_heads": 4, "hidden_dim": 32, "vocab_size": 40, "max_position_embeddings": 24}


@pytest.fixture(params=sorted(bert.FAMILIES))
def pair(request):
    """A model of transformers with random weights, also in biases and norms, and ours with the same weights."""
    torch.manual_seed(5)
    config = transformers.AutoConfig.for_model(request.param, **(DISTIL if request.param == "distilbert" else SIZES))
    theirs = transformers.AutoModel.from_config(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight += torch.randn_like(weight) / 4
    ours = bert.build(theirs.config.to_dict(), {name: value.clone() for name, value in theirs.state_dict().items()})
    assert ours is not None
    assert bert.fits(theirs.config.to_dict())
    return ours, theirs


def inputs(*, masked: bool = True):
    """Ids (5, 7), and a mask in which the rows have 1 to 7 tokens."""
    ids = torch.randint(1, 40, (5, 7), generator=torch.Generator().manual_seed(2))
    mask = (torch.arange(7)[None] < torch.tensor([1, 3, 7, 6, 2])[:, None]).long() if masked else None
    return {"input_ids": ids, "attention_mask": mask}


@pytest.mark.parametrize("masked", [True, False])
def test_states_of_every_layer_agree(pair, masked):
    ours, theirs = (model(**inputs(masked=masked), output_hidden_states=True) for model in pair)
    keep = inputs()["attention_mask"].bool() if masked else torch.ones(5, 7, dtype=torch.bool)
    assert len(ours.hidden_states) == len(theirs.hidden_states) == 4
    for own, their in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(own[keep], their[keep], atol=1e-6, rtol=1e-5)
    assert torch.equal(ours.last_hidden_state, ours.hidden_states[-1])


@pytest.mark.parametrize("pair", ["mpnet"], indirect=True)
@pytest.mark.parametrize("masked", [True, False])
def test_fused_attention_of_cuda_can_read_the_distances(pair, masked, monkeypatch):
    """The last axis has to have a stride of one there, or attention is a dozen operations."""
    strides = []
    attend = torch.nn.functional.scaled_dot_product_attention

    def seen(*args, attn_mask, **options):
        strides.append(attn_mask.stride(-1))
        return attend(*args, attn_mask=attn_mask, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", seen)
    pair[0](**inputs(masked=masked))
    assert strides == [1] * SIZES["num_hidden_layers"]


def test_segments_and_word_embeddings_as_input_agree(pair):
    given = inputs()
    segments = torch.randint(0, 2, (5, 7), generator=torch.Generator().manual_seed(3))
    words = torch.randn(5, 7, 16, generator=torch.Generator().manual_seed(4))
    keep = given["attention_mask"].bool()
    for change in ({"token_type_ids": segments}, {"input_ids": None, "inputs_embeds": words}):
        ours, theirs = (model(**{**given, **change}).last_hidden_state[keep] for model in pair)
        torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=1e-5)


def test_dropout_draws_the_same_and_gradients_agree(pair):
    """In training mode with one seed: the same order of random draws."""
    found = []
    for model in pair:
        model.train()
        torch.manual_seed(1)
        states = model(**inputs()).last_hidden_state
        states[:, 0].square().sum().backward()
        found.append({name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None})
    ours, theirs = found
    assert ours.keys() == theirs.keys()
    assert len(ours) > 50
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], atol=1e-4, rtol=1e-4)


def test_files_are_those_of_transformers(pair, tmp_path):
    ours, theirs = pair
    theirs.save_pretrained(tmp_path / "theirs")
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "config.json").write_text(ours.config.to_json_string())
    write_weights(tmp_path / "ours", ours.state_dict())
    own, their = (load_file(tmp_path / name / "model.safetensors") for name in ("ours", "theirs"))
    assert own.keys() == their.keys()
    assert all(torch.equal(own[name], their[name]) for name in own)
    reread = transformers.AutoModel.from_pretrained(tmp_path / "ours").eval()
    assert type(reread) is type(theirs)
    for name, value in theirs.state_dict().items():  # the pooler is kept for others
        assert torch.equal(reread.state_dict()[name], value)


def test_saving_does_not_change_the_encoder(toy_transformer, tmp_path):
    """Its config is a part of the digest under which a graph in int8 is kept in the cache."""
    toy_transformer().save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    del config["architectures"]
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    encoder = load(tmp_path / "model")
    before = encoder.backbone.config.to_json_string()
    encoder.save(tmp_path / "copy")
    assert encoder.backbone.config.to_json_string() == before


def test_unusual_settings_are_left_to_transformers(pair):
    config = pair[1].config.to_dict()
    for change in (
        *({"model_type": "electra"}, {"hidden_act": "relu", "activation": "relu"}, {"dtype": "float16"}),
        *({"position_embedding_type": "relative_key"}, {"is_decoder": True}, {"quantization_config": {"bits": 4}}),
    ):
        assert not bert.fits({**config, **change}), change
    assert not bert.fits({})


@pytest.mark.parametrize("pair", ["bert"], indirect=True)
def test_unusual_weights_are_left_to_transformers(pair):
    config, weights = pair[1].config.to_dict(), pair[1].state_dict()
    name = "encoder.layer.1.output.dense.weight"
    assert bert.build(config, {**weights, name: weights[name].half()}) is None
    assert bert.build(config, {**weights, name: weights[name][:-1]}) is None
    assert bert.build(config, {**weights, "more": weights[name]}) is None
    assert bert.build(config, {key: value for key, value in weights.items() if key != name}) is None
    assert bert.build({**config, "pad_token_id": 40}, weights) is None
    assert bert.build({**config, "num_attention_heads": 5}, weights) is None


def test_names_of_models_with_a_head_and_of_old_versions(pair):
    config, weights = pair[1].config.to_dict(), pair[1].state_dict()
    prefix = pair[1].base_model_prefix
    old = {
        f"{prefix}.{name}".replace(".LayerNorm.weight", ".LayerNorm.gamma"): value
        for name, value in weights.items()
        if not name.startswith("pooler")
    }
    more = {f"{prefix}.embeddings.position_ids": torch.arange(24)[None], "lm_head.bias": torch.zeros(40)}
    found = bert.build(config, {**old, **more})
    assert found is not None
    assert found.pooler is None
    states = found(**inputs()).last_hidden_state
    assert torch.equal(states, pair[0](**inputs()).last_hidden_state)


@pytest.mark.parametrize("family", sorted(bert.FAMILIES))
def test_missing_keys_have_the_values_of_transformers(family):
    """But for sizes, which the shapes of weights show."""
    usual = transformers.AutoConfig.for_model(family).to_dict()
    ours = bert.Config(**bert._settings({"model_type": family})).to_dict()
    named = {name for name in ours if "vocab_size" not in name and "layers" not in name} & usual.keys()
    assert {name: ours[name] for name in named} == {name: usual[name] for name in named}
    assert len(named) > 7


def test_saved_models_open_as_ours_and_half_precision_does_not(toy_transformer, tmp_path):
    toy = toy_transformer()
    toy.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert type(again.backbone) is bert.Bert
    assert (again.encode(["ab cd", "e"]) == toy.eval().encode(["ab cd", "e"])).all()
    path = tmp_path / "m" / "model.safetensors"
    save_file({name: value.half() for name, value in load_file(path).items()}, path, metadata={"format": "pt"})
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps({**config, "dtype": "float16"}))
    assert type(load(tmp_path / "m").backbone) is transformers.BertModel


def test_distances_have_the_buckets_of_transformers():
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    places = torch.arange(300)
    expected = MPNetEncoder.relative_position_bucket(places[None] - places[:, None])
    assert torch.equal(bert._buckets(300, torch.device("cpu")), expected)


@pytest.mark.slow
def test_compiled_layers_have_few_graphs_and_give_the_same(toy_transformer, tmp_path, monkeypatch):
    """Graphs are those of padded and whole chunks with and without gradient, for all layers, shapes and copies."""
    from torch._dynamo.utils import counters  # takes two seconds

    toy_transformer().save(tmp_path)
    models = [load(tmp_path, dropout=0.0, compile=compiled) for compiled in (False, True)]
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    bert._compile.cache_clear()
    counters.clear()
    for chunk, graph in ((40, 0), (60, 10**9), (90, 0), (10**9, 0)):
        gradients = []
        for encoder in models:
            encoder.train().zero_grad()
            backward(encoder, InfoNCE(), toy_batch([2, 2, 3, 1, 4, 4]), StepLimits(chunk, graph))
            gradients.append([weight.grad for weight in encoder.parameters() if weight.grad is not None])
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other)
    assert 2 <= counters["stats"]["unique_graphs"] <= 4
    for size in (1, 2, 3, 7):
        vectors = [encoder.eval().encode(SENTENCES, batch_size=size) for encoder in models]
        assert abs(vectors[0] - vectors[1]).max() < 1e-6
    assert counters["stats"]["unique_graphs"] <= 6
    assert not counters["graph_break"]
    bert._compile.cache_clear()


def test_only_our_layers_are_compiled(toy_transformer):
    with pytest.raises(EncoderError, match="BertModel"):
        toy_transformer(compile=True)
