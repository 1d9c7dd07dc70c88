"""The optimiser against torch's own: dense as AdamW, row-sparse as SparseAdam."""

import math

import pytest
import torch
from torch import nn

from isoglot.core.errors import RecipeError
from isoglot.training.optimizer import AdamW, build, rate
from isoglot.training.settings import OptimizerSettings


def test_dense_parameters_move_as_in_adamw():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    a, b = (
        AdamW(ours.parameters(), lr=0.1, weight_decay=0.2),
        torch.optim.AdamW(theirs.parameters(), lr=0.1, weight_decay=0.2),
    )
    for _ in range(4):
        x = torch.randn(5, 4)
        for model, adam in ((ours, a), (theirs, b)):
            adam.zero_grad()
            model(x).square().sum().backward()
            adam.step()
    assert torch.equal(ours.weight, theirs.weight)


def test_row_sparse_tables_move_as_in_sparse_adam():
    torch.manual_seed(0)
    ours, theirs = nn.Embedding(20, 3, sparse=True), nn.Embedding(20, 3, sparse=True)
    theirs.load_state_dict(ours.state_dict())
    a, b = AdamW(ours.parameters(), lr=0.1, weight_decay=0.5), torch.optim.SparseAdam(theirs.parameters(), lr=0.1)
    for _ in range(5):
        ids = torch.randint(0, 20, (12,))  # with repetitions
        for model, adam in ((ours, a), (theirs, b)):
            adam.zero_grad()
            model(ids).pow(3).sum().backward()
            adam.step()
    # SparseAdam adds eps before the bias correction, AdamW after it; the two agree to about eps
    assert torch.allclose(ours.weight, theirs.weight, atol=1e-5)


def test_dense_and_sparse_share_a_step_and_a_state_dict():
    def model():
        torch.manual_seed(1)
        return nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Linear(4, 2))

    def run(net, adam, steps):
        for i in range(steps):
            adam.zero_grad()
            net(torch.tensor([i % 9, 3])).square().sum().backward()
            adam.step()

    straight, broken = model(), model()
    first = AdamW(straight.parameters(), lr=0.05)
    run(straight, first, 2)
    run(straight, first, 2)
    second = AdamW(broken.parameters(), lr=0.05)
    run(broken, second, 2)
    third = AdamW(broken.parameters(), lr=0.05)
    third.load_state_dict(second.state_dict())
    run(broken, third, 2)
    assert all(torch.equal(a, b) for a, b in zip(straight.parameters(), broken.parameters(), strict=True))


def test_only_matrices_are_decayed_and_frozen_parameters_are_left_out():
    net = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    net[0].weight.requires_grad_(False)
    adam = build([net], OptimizerSettings(lr=0.1, weight_decay=0.3))
    assert [(len(g["params"]), g["weight_decay"]) for g in adam.param_groups] == [(3, 0.0)]


def test_rates():
    settings = OptimizerSettings(lr=2.0, warmup=4)
    linear = [rate(step, total=12, settings=settings) for step in range(12)]
    assert linear[:5] == [0.5, 1.0, 1.5, 2.0, 2.0]
    assert linear[8] == pytest.approx(1.0)
    assert 0 < linear[11] < linear[10]
    cosine = OptimizerSettings(lr=2.0, schedule="cosine")
    assert [rate(s, total=4, settings=cosine) for s in (0, 2, 4)] == pytest.approx([2.0, 1.0, 0.0])
    assert rate(99, total=4, settings=OptimizerSettings(lr=2.0, schedule="constant")) == 2.0


def test_stairs_give_each_rate_its_steps_and_the_last_one_the_rest():
    """Contrastive Tension: 1e-5, 8e-6, 6e-6, 4e-6, 2e-6, five hundred steps each."""
    rates = (1e-5, 8e-6, 6e-6, 4e-6, 2e-6)
    settings = OptimizerSettings(lr=1e-5, schedule="stairs", stairs=rates, stair=500)
    steps = (0, 499, 500, 999, 1000, 1500, 1999, 2000, 2499, 2500, 9000)
    expected = [1e-5, 1e-5, 8e-6, 8e-6, 6e-6, 4e-6, 4e-6, 2e-6, 2e-6, 2e-6, 2e-6]
    assert [rate(step, total=3000, settings=settings) for step in steps] == expected


def test_stairs_follow_the_warm_up():
    settings = OptimizerSettings(lr=4.0, warmup=2, schedule="stairs", stairs=(4.0, 1.0), stair=3)
    assert [rate(step, total=9, settings=settings) for step in range(7)] == [2.0, 4.0, 4.0, 4.0, 4.0, 1.0, 1.0]


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
        ({"schedule": "stairs", "stair": 5}, "goes with stairs"),
        ({"stairs": (1.0,), "stair": 5}, "goes with stairs"),
        ({"stairs": (1.0,)}, "goes with stairs"),
        ({"stair": 5}, "goes with stairs"),
        ({"kind": "rmsprop", "weight_decay": 0.1}, "weight_decay"),
        ({"kind": "rmsprop", "betas": (0.5, 0.9)}, "betas"),
    ],
)
def test_settings_that_do_not_go_together(given, words):
    with pytest.raises(ValueError, match=words):
        OptimizerSettings(lr=1.0, **given)


@pytest.mark.parametrize("kind", ["adamw", "rmsprop"])
def test_a_step_counts_as_a_change_of_the_weights(kind):
    """Copies for inference are made anew when it does: torch's fused step alone does not count."""
    layer = nn.Linear(4, 3)
    optimizer = build([layer], OptimizerSettings(kind=kind, lr=0.1))
    layer(torch.ones(1, 4)).sum().backward()
    before = [weight._version for weight in layer.parameters()]
    optimizer.step()
    assert all(weight._version > version for weight, version in zip(layer.parameters(), before, strict=True))
