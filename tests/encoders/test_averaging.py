"""Averages of weights: against sums by hand, and one error for models that do not belong together."""

import math

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_tokenizer, build_transformer, save_and_open
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder, average, load
from isoglot.encoders.towers import Towers
from isoglot.model import encode


def static(seed: int, kind: str = "bpe", dim: int = 8) -> StaticEncoder:
    return StaticEncoder.create(build_tokenizer(kind), dim, seed=seed)


def towers(seed: int) -> Towers:
    return Towers({"latin": static(seed), "rest": static(seed + 5)}, {"latin": ["LATIN"]})


@pytest.mark.parametrize("build", [lambda seed: build_transformer(seed=seed), static, towers])
@pytest.mark.parametrize("weights", [None, [0.5, 0.75, -0.25]])
def test_every_weight_is_the_weighted_mean(build, weights):
    models = [build(seed) for seed in range(3)]
    before = {name: weight.clone() for name, weight in models[0].state_dict().items()}
    mean = average(models, weights).state_dict()
    states = [model.state_dict() for model in models]
    for name, weight in mean.items():
        if weight.is_floating_point():
            parts = [share * state[name] for share, state in zip(weights or [1 / 3] * 3, states, strict=True)]
            torch.testing.assert_close(weight, sum(parts))
        assert torch.equal(states[0][name], before[name]), "the first model was changed"


def test_towers_may_have_lengths_and_prompts_of_their_own():
    models = [towers(seed) for seed in (0, 1)]
    for model in models:
        model.towers["latin"].max_length, model.towers["rest"].max_length = 32, 64
        model.towers["rest"].prompt = "query: "
    mean = average(models)
    assert [mean.towers[name].max_length for name in ("latin", "rest")] == [32, 64]


def test_a_backbone_of_transformers_and_the_same_one_opened_here(tmp_path):
    """The classes inside differ, their weights do not."""
    build_transformer(seed=2).save(tmp_path / "end")
    mean = average([build_transformer(seed=1), tmp_path / "end"], [0.0, 1.0])
    np.testing.assert_allclose(encode(mean, SENTENCES), encode(load(tmp_path / "end"), SENTENCES), atol=1e-6)


def test_models_by_name_and_of_another_length_and_prompt(tmp_path):
    build_transformer(seed=1, max_length=40, prompt="query: ").save(tmp_path / "start")
    build_transformer(seed=2, max_length=12).save(tmp_path / "end")
    mean = average([tmp_path / "start", tmp_path / "end"], [1.0, 0.0])
    assert (mean.max_length, mean.prompt, mean.name) == (40, "query: ", "")
    np.testing.assert_array_equal(encode(mean, SENTENCES), encode(load(tmp_path / "start"), SENTENCES))
    assert save_and_open(mean, tmp_path / "mean").name == "mean"


@pytest.mark.parametrize(
    "weights", [[0.5], [0.5, 0.6], [1, 1], [math.nan, 1.0], [math.inf, -math.inf], [0.3, 0.3, 0.4], []]
)
def test_impossible_weights_and_a_single_model_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        average([static(0), static(1)], weights)
    with pytest.raises(ValueError, match="at least two"):
        average([static(0)])


@pytest.mark.parametrize(
    "first, build, settings, what",
    [
        (static, static, {"dim": 9}, "model 2: .*shape"),
        (static, static, {"kind": "unigram"}, "model 2: .*(tokenizer|shape)"),
        (static, build_transformer, {}, "model 2: .*TransformerEncoder"),
        (build_transformer, build_transformer, {"layers": 1}, "model 2: .*architecture"),
        (build_transformer, build_transformer, {"kind": "unigram"}, "model 2: .*tokenizer"),
        (build_transformer, build_transformer, {"adapter": {"rank": 2}}, "adapter"),
    ],
)
def test_models_that_do_not_belong_together(first, build, settings, what):
    with pytest.raises(EncoderError, match=what):
        average([first(seed=0), build(seed=1, **settings)])
