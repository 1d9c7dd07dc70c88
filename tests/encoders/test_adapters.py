"""Low-rank adapters and frozen layers: what is trained, that merging changes no vector, and the adapter's folder."""

import json

import numpy as np
import pytest
import torch

from conftest import SENTENCES, save_and_open, save_and_open_elsewhere
from isoglot.core.errors import EncoderError
from isoglot.encoders import TransformerEncoder, load
from isoglot.encoders.adapters import LowRank, digest, find_adapters
from isoglot.encoders.layers import Dense
from isoglot.model import encode

FAMILIES = ("bert", "xlm-roberta", "distilbert")
RANK = {"rank": 3, "alpha": 6.0}


def moved(encoder: TransformerEncoder) -> TransformerEncoder:
    """The encoder with an adapter that is no longer zero."""
    generator = torch.Generator().manual_seed(5)
    for part in find_adapters(encoder.backbone).values():
        part.up.data = torch.randn(part.up.shape, generator=generator)
    return encoder


def trained(encoder: TransformerEncoder) -> set[str]:
    """The weights that get a gradient."""
    encoder(encoder.tokenize(SENTENCES)).square().sum().backward()
    return {name for name, weight in encoder.named_parameters() if weight.grad is not None}


@pytest.mark.parametrize("family", FAMILIES)
def test_training_begins_at_the_backbone(family, toy_transformer):
    plain, adapted = toy_transformer(family=family), toy_transformer(family=family, adapter=RANK)
    np.testing.assert_array_equal(encode(adapted, SENTENCES), encode(plain, SENTENCES))


def test_the_output_is_that_of_the_papers_equation():
    linear = torch.nn.Linear(7, 5)
    part = LowRank(linear, 3, 6.0, torch.Generator().manual_seed(0))
    part.up.data.normal_()
    x = torch.randn(2, 4, 7)
    for row, y in zip(x.flatten(0, 1), part(x).flatten(0, 1), strict=True):
        expected = [
            sum(linear.weight[i, j] * row[j] for j in range(7))
            + linear.bias[i]
            + 6.0 / 3 * sum(part.up[i, r] * part.down[r, j] * row[j] for r in range(3) for j in range(7))
            for i in range(5)
        ]
        torch.testing.assert_close(y, torch.stack(expected))


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_reach_the_adapter_alone(family, toy_transformer):
    encoder = moved(toy_transformer(family=family, adapter=RANK, projections=[Dense(16, 6)]))
    names = trained(encoder)
    assert names == {f"backbone.{name}.{side}" for name in find_adapters(encoder.backbone) for side in ("down", "up")}
    assert len(names) == 2 * 2 * 6  # two layers of six linear layers


def test_targets_and_layers_of_an_adapter(toy_transformer):
    encoder = toy_transformer(adapter={"rank": 2, "targets": ["query", "output.dense"]}, train_layers="2")
    names = [name.removeprefix("encoder.layer.1.") for name in find_adapters(encoder.backbone)]
    assert names == ["attention.self.query", "attention.output.dense", "output.dense"]
    with pytest.raises(ValueError, match=r"querry.*query"):
        toy_transformer(adapter={"rank": 2, "targets": ["querry"]})


@pytest.mark.parametrize("family", FAMILIES)
def test_only_chosen_layers_are_trained_and_nothing_below_has_a_graph(family, toy_transformer):
    encoder = toy_transformer(family=family, train_layers="2")
    names = trained(encoder)
    assert names
    assert all(".layer.1." in name for name in names)
    ids, mask = map(torch.from_numpy, encoder.tokenize(SENTENCES).pad(encoder.pad))
    states = encoder.backbone(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    assert [state.requires_grad for state in states] == [False, False, True]
    assert trained(toy_transformer(family=family, train_layers="1-2")) > names


@pytest.mark.parametrize("layers", ["0-1", "2-1", "1-3", "3", "one", ""])
def test_layers_that_the_backbone_lacks_are_refused(layers, toy_transformer):
    with pytest.raises(ValueError, match="train_layers must lie between 1 and 2, such as"):
        toy_transformer(train_layers=layers)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.slow
def test_the_saved_model_is_an_ordinary_one_with_the_same_vectors(family, toy_transformer, tmp_path):
    encoder = moved(toy_transformer(family=family, adapter=RANK, prompt="query: "))
    loaded = save_and_open(encoder, tmp_path / "model", atol=1e-5)
    assert not find_adapters(loaded.backbone)
    assert find_adapters(encoder.backbone), "saving changed the encoder"
    plain = toy_transformer(family=family, prompt="query: ")
    assert np.abs(encode(encoder, SENTENCES) - encode(plain, SENTENCES)).max() > 0.1
    assert not (tmp_path / "model" / "adapter").exists(), "its backbone is no model that can be opened"
    save_and_open_elsewhere(encoder, tmp_path / "model", atol=1e-5)


@pytest.fixture
def base(toy_transformer, tmp_path):
    """The folder of a backbone."""
    toy_transformer().save(tmp_path / "base")
    return tmp_path / "base"


def saved(base, tmp_path, **settings):
    """An encoder with an adapter on the backbone in `base`, saved; and the folder of the adapter."""
    encoder = moved(load(base, adapter=RANK, **settings))
    encoder.save(tmp_path / "run" / "model")
    return encoder, tmp_path / "run" / "model" / "adapter"


@pytest.mark.parametrize("settings", [{}, {"layers": [2], "pooling": "cls", "prompt": "q: ", "max_length": 9}])
def test_an_adapter_alone_opens_on_its_backbone(settings, base, tmp_path):
    encoder, folder = saved(base, tmp_path, **settings)
    loaded = load(folder)
    assert loaded.name == "run"
    assert (loaded.pooling, loaded.prompt, loaded.max_length) == (encoder.pooling, encoder.prompt, encoder.max_length)
    vectors = encode(encoder, SENTENCES)
    np.testing.assert_allclose(encode(loaded, SENTENCES), vectors, atol=5e-3 * np.abs(vectors).max())  # float16
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size < (base / "model.safetensors").stat().st_size
    save_and_open(moved(load(folder, adapter={"rank": 1})), tmp_path / "again", atol=1e-5)
    assert not (tmp_path / "again" / "adapter").exists(), "an adapter of an adapter can't be opened"


def test_an_adapter_refuses_another_backbone(base, tmp_path, toy_transformer):
    _, folder = saved(base, tmp_path)
    toy_transformer(seed=1).save(base)
    with pytest.raises(EncoderError, match="are not those that the adapter was trained on"):
        load(folder)


def test_a_damaged_adapter_is_one_error(base, tmp_path):
    """Also one whose backbone is missing or an adapter."""
    _, folder = saved(base, tmp_path)
    config = json.loads((folder / "adapter_config.json").read_text())
    damage = [("r", 0), ("r", 2), ("lora_alpha", "6"), ("peft_type", "IA3"), ("target_modules", ["encoder"])]
    backbones = [("base_model_name_or_path", str(place)) for place in (tmp_path / "nowhere", folder)]
    for key, value in [*damage, *backbones]:
        (folder / "adapter_config.json").write_text(json.dumps({**config, key: value}))
        with pytest.raises(EncoderError, match="adapter"):
            load(folder)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(b"none")
    with pytest.raises(EncoderError, match="adapter"):
        load(folder)


def test_the_scale_is_part_of_the_identity(toy_transformer):
    one, two = (toy_transformer(adapter={"rank": 2, "alpha": alpha}) for alpha in (1.0, 2.0))
    assert digest(toy_transformer().backbone) == one.adapter.sha256 == two.adapter.sha256
    assert one.identity() != two.identity()
