"""The optimiser against torch's own: dense as AdamW, row-sparse as SparseAdam."""

import math
from functools import partial

import pytest
import torch
from torch import nn

from isoglot.core.errors import RecipeError
from isoglot.training.optimizer import AdamW, build, rate
from isoglot.training.settings import OptimizerSettings


@pytest.mark.parametrize(
    ("make", "other", "draw", "atol"),
    [
        (lambda: nn.Linear(4, 3), partial(torch.optim.AdamW, weight_decay=0.2), lambda: torch.randn(5, 4), 0),
        # SparseAdam adds eps before the bias correction, AdamW after it; the two agree to about eps. Rows are repeated.
        (lambda: nn.Embedding(20, 3, sparse=True), torch.optim.SparseAdam, lambda: torch.randint(0, 20, (12,)), 1e-5),
    ],
    ids=["dense", "row-sparse"],
)
def test_parameters_move_as_in_torch(make, other, draw, atol):
    torch.manual_seed(0)
    ours, theirs = make(), make()
    theirs.load_state_dict(ours.state_dict())
    pairs = (ours, AdamW(ours.parameters(), lr=0.1, weight_decay=0.2)), (theirs, other(theirs.parameters(), lr=0.1))
    for _ in range(5):
        x = draw()
        for model, adam in pairs:
            adam.zero_grad()
            model(x).pow(3).sum().backward()
            adam.step()
    torch.testing.assert_close(ours.weight, theirs.weight, atol=atol, rtol=0)


def test_only_matrices_are_decayed_and_frozen_parameters_are_left_out():
    net = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    net[0].weight.requires_grad_(False)
    adam = build([net], OptimizerSettings(lr=0.1, weight_decay=0.3))
    assert [(len(g["params"]), g["weight_decay"]) for g in adam.param_groups] == [(3, 0.0)]


STAIRS = {"lr": 1e-5, "schedule": "stairs", "stairs": (1e-5, 8e-6, 6e-6), "stair": 500}  # as in Contrastive Tension


@pytest.mark.parametrize(
    ("settings", "total", "expected"),
    [
        ({"warmup": 4}, 12, {0: 0.5, 1: 1.0, 2: 1.5, 3: 2.0, 4: 2.0, 8: 1.0, 11: 0.25}),
        ({"schedule": "cosine"}, 4, {0: 2.0, 2: 1.0, 4: 0.0}),
        ({"schedule": "constant"}, 4, {99: 2.0}),
        (STAIRS, 1200, {0: 1e-5, 499: 1e-5, 500: 8e-6, 999: 8e-6, 1000: 6e-6, 1499: 6e-6, 1500: 6e-6, 9000: 6e-6}),
        (STAIRS | {"warmup": 2, "stair": 3}, 9, {0: 5e-6, 1: 1e-5, 2: 1e-5, 4: 1e-5, 5: 8e-6, 7: 8e-6, 8: 6e-6}),
    ],
)
def test_rates(settings, total, expected):
    settings = OptimizerSettings(**{"lr": 2.0, **settings})
    assert {step: rate(step, total=total, settings=settings) for step in expected} == pytest.approx(expected)


def test_rmsprop_divides_by_the_root_of_the_mean_square():
    """Plain loops: v = 0.99 v + 0.01 g^2, then w -= lr g / (sqrt(v) + eps); the factor of a loss hardly matters."""
    net = nn.Linear(3, 2)
    with torch.no_grad():
        net.weight.fill_(1.0)
    moves = build([net], OptimizerSettings(lr=0.03, kind="rmsprop", eps=1e-6))
    weight, square = 1.0, 0.0
    for grad in (2.0, -1.0, 0.5):
        moves.zero_grad()
        net.weight.grad = torch.full((2, 3), grad)
        moves.step()
        square = 0.99 * square + 0.01 * grad * grad
        weight -= 0.03 * grad / (math.sqrt(square) + 1e-6)
        assert net.weight.flatten().tolist() == pytest.approx([weight] * 6, rel=1e-5)


def test_rmsprop_refuses_a_row_sparse_table_before_it_moves_anything():
    table, layer = nn.Embedding(5, 3, sparse=True), nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    moves = build([layer, table], OptimizerSettings(lr=0.1, kind="rmsprop"))
    layer(table(torch.tensor([1, 2]))).sum().backward()
    with pytest.raises(RecipeError, match=r'optimizer\.kind: "rmsprop" .*; write kind = "adamw"'):
        moves.step()
    assert torch.equal(layer.weight, before)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"schedule": "stairs", "stairs": (1.0,)}, "goes with stairs"),
        ({"stairs": (1.0,), "stair": 5}, "goes with stairs"),
        ({"stair": 5}, "goes with stairs"),
        ({"schedule": "stairs", "stairs": (0.5, 0.1), "stair": 5}, "lr is the peak"),
        ({"kind": "rmsprop", "weight_decay": 0.1}, "weight_decay"),
        ({"kind": "rmsprop", "betas": (0.5, 0.9)}, "betas"),
    ],
)
def test_settings_that_do_not_go_together(given, words):
    with pytest.raises(ValueError, match=words):
        OptimizerSettings(lr=1.0, **given)


def test_a_weight_decay_that_changes_nothing_is_named(caplog):
    table, layer = nn.Embedding(5, 3, sparse=True), nn.Linear(3, 2)
    build([table, layer], OptimizerSettings(lr=0.1, weight_decay=0.1))
    build([table], OptimizerSettings(lr=0.1))
    assert not caplog.records
    build([table], OptimizerSettings(lr=0.1, weight_decay=0.1))
    assert "weight_decay changes nothing" in caplog.text


@pytest.mark.parametrize("kind", ["adamw", "rmsprop"])
def test_a_step_counts_as_a_change_of_the_weights(kind):
    """Copies for inference are made anew when it does: torch's fused step alone does not count."""
    layer = nn.Linear(4, 3)
    optimizer = build([layer], OptimizerSettings(kind=kind, lr=0.1))
    layer(torch.ones(1, 4)).sum().backward()
    before = [weight._version for weight in layer.parameters()]
    optimizer.step()
    assert all(weight._version > version for weight, version in zip(layer.parameters(), before, strict=True))
