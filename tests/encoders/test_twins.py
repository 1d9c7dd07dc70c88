"""Twins: side by side in training, one alone afterwards, never a dropout mask."""

import numpy as np
import pytest
import torch
from test_loop import RECIPE, log_of, write_corpus

from conftest import build_transformer
from isoglot.encoders import load
from isoglot.encoders.twins import Twins
from isoglot.model import encode
from isoglot.training import best
from isoglot.training.recipe import load as load_recipe
from runs import train

TEXTS = ["The cat sits on the mat.", "Die Katze sitzt.", "", "numbers 1 22 333"]


@pytest.fixture
def twins() -> Twins:
    """Two transformers of 16 dims with dropout 0.1 and different weights."""
    return Twins(build_transformer(seed=0), build_transformer(seed=1))


def test_training_gives_both_copies_side_by_side_without_dropout(twins):
    tokens = twins.train().tokenize(TEXTS)
    assert twins.dim == 32
    vectors = twins(tokens)
    assert vectors.shape == (4, 32)
    assert torch.equal(vectors, twins(tokens))
    assert torch.equal(vectors[:, :16], twins.first(tokens))
    assert torch.equal(vectors[:, 16:], twins.second(tokens))
    vectors[:, 16:].sum().backward()
    moved = [any(w.grad is not None and w.grad.any() for w in copy.parameters()) for copy in twins.exports()]
    assert moved == [False, True]


def test_evaluation_gives_the_first_copy(twins):
    twins.eval()
    assert twins.dim == 16
    assert torch.equal(twins(twins.tokenize(TEXTS)), twins.first(twins.tokenize(TEXTS)))
    assert np.array_equal(encode(twins, TEXTS), encode(twins.first, TEXTS))
    assert twins.fingerprint == twins.first.fingerprint


def test_no_module_of_a_copy_is_ever_in_training_mode(twins):
    """Dropout of any kind, also where attention reads a number instead of a module."""
    for mode in (True, False, True):
        twins.train(mode)
        assert [module for module in twins.modules() if module.training] == [twins] * mode


def test_the_first_is_saved_and_both_are_offered(twins, tmp_path):
    twins.train().save(tmp_path / "model")
    assert np.array_equal(encode(load(tmp_path / "model"), TEXTS), encode(twins.first, TEXTS))
    assert list(twins.exports()) == [twins.first, twins.second]


def test_settings_are_those_of_both_copies(twins):
    twins.prompt, twins.prompts, twins.pooling, twins.normalizes = "q: ", {"query": "the "}, "max", True
    for copy in twins.exports():
        assert (copy.prompt, copy.prompts, copy.pooling, copy.normalizes) == ("q: ", {"query": "the "}, "max", True)
    np.testing.assert_array_equal(twins.tokenize(TEXTS).ids, build_transformer(prompt="q: ").tokenize(TEXTS).ids)


def test_both_are_in_the_state(twins):
    other = Twins(build_transformer(seed=2), build_transformer(seed=3))
    other.load_state_dict(twins.state_dict())
    for mode in (True, False):
        assert torch.equal(twins.train(mode)(twins.tokenize(TEXTS)), other.train(mode)(twins.tokenize(TEXTS)))


def test_unlike_encoders_are_refused():
    with pytest.raises(ValueError, match="twins must have one tokenizer and one width"):
        Twins(build_transformer(), build_transformer(max_length=12))
    with pytest.raises(ValueError, match='without a head; write head = "none"'):
        Twins(*(build_transformer(pooling="cls", head="tanh") for _ in range(2)))


@pytest.fixture
def project(tmp_path, own_cache):
    build_transformer().save(tmp_path / "base")
    write_corpus(tmp_path)
    (tmp_path / "tiny.toml").write_text(RECIPE)
    return tmp_path


def recipe(project, *changes):
    """That of the training loop, for two copies of an encoder."""
    stairs = 'kind="rmsprop", lr=1e-3, schedule="stairs", stairs=[1e-3, 5e-4], stair=30, clip=0.0'
    changes = ['streams.0.objectives=[{name="contrastive_tension"}]', f"optimizer={{{stairs}}}", *changes]
    return load_recipe(project / "tiny.toml", ['encoder={kind="twins", model="base"}', *changes])


@pytest.mark.slow
def test_a_run_drives_the_copies_apart_and_lowers_the_loss(project):
    outcome = train(recipe(project, "steps=40"), project / "run")
    state = torch.load(sorted((project / "run" / "checkpoints").glob("*.pt"))[-1], weights_only=True)["encoder"]
    names = [name for name in state if name.startswith("first.")]
    assert any(not torch.equal(state[name], state[name.replace("first.", "second.", 1)]) for name in names)
    steps = [record for record in log_of(project / "run") if record["kind"] == "step"]
    losses = [record["losses"]["contrastive_tension"] for record in steps]
    assert sum(losses[-10:]) < sum(losses[:10])
    assert encode(load(outcome.model), TEXTS).shape == (4, 16)


@pytest.mark.slow
def test_the_copy_with_the_better_dev_score_is_kept(project, monkeypatch):
    """Scores that rise from call to call, so that the second copy is always the better one."""
    asked = []

    def score(choice, encoder):
        asked.append(encoder)
        return float(len(asked)), []

    monkeypatch.setattr(best.Choice, "score", score)
    kept = load(train(recipe(project, "steps=12", "evaluation.every=6"), project / "run").model)
    first, second = asked[-2:]
    assert len(asked) == 4
    assert np.array_equal(encode(kept, TEXTS), encode(second, TEXTS))
    assert not np.array_equal(encode(kept, TEXTS), encode(first, TEXTS))
