"""The softmax over pairs against the loops of tests/oracle.py, its dropout, and that it learns."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import PairSoftmax
from toys import toy_batch

LABELS = {"label": 3}


class Five:
    """What the objective sees of an encoder: 5 dims, in float64."""

    dim = 5

    def parameters(self):
        return iter([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))])


def make(**options) -> PairSoftmax:
    return PairSoftmax(encoder=Five(), **{"sizes": LABELS, "dropout": 0.0, "hidden": 7, **options})


@given(batches(), st.integers(0, 2), st.sampled_from(["unit", "raw"]), st.integers(0, 9))
def test_agrees_with_the_loops(case, layers, vectors, seed):
    table, batch = case
    batch.extras["label"] = batch.group % 4 - 1  # -1: no label
    objective = make(layers=layers, vectors=vectors, seed=seed)
    rows = [
        row | {"label": int(label)} for row, label in zip(rows_of(table, batch), batch.extras["label"], strict=True)
    ]
    weights = [(layer.weight.tolist(), layer.bias.tolist()) for layer in objective.layers]
    expected = oracle.pair_softmax(rows, weights, length_one=vectors == "unit")
    assert objective(table, batch)["pair_softmax"].item() == pytest.approx(expected, abs=1e-9)


def test_layers_are_those_of_the_papers():
    """SBERT: one matrix; MoCo-BERT: two hidden layers of 256 and a head of three classes."""
    plain, network = make(layers=0, vectors="raw"), make(hidden=256)
    assert [tuple(layer.weight.shape) for layer in plain.layers] == [(3, 15)]
    assert [tuple(layer.weight.shape) for layer in network.layers] == [(256, 15), (256, 256), (3, 256)]


def test_weights_come_from_the_seed_and_leave_the_generator_alone(monkeypatch):
    torch.manual_seed(1)
    monkeypatch.setattr(torch, "manual_seed", None)  # it seeds the generators of accelerators too
    before = torch.get_rng_state()
    first, same, other = make(), make(), make(seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first.layers[0].weight, same.layers[0].weight)
    assert not torch.equal(first.layers[0].weight, other.layers[0].weight)


def mask(objective: PairSoftmax) -> torch.Tensor:
    """The dropout mask of a step, (200, 3): hidden units that are all one, and a head that shows them."""
    with torch.no_grad():
        objective.layers[0].weight.zero_()
        objective.layers[0].bias.fill_(1)
        objective.layers[1].weight.copy_(torch.eye(3))
        objective.layers[1].bias.zero_()
        return objective.scores(*torch.ones(2, 200, 5, dtype=torch.float64))


def test_dropout_is_a_function_of_seed_and_step():
    """Ranks have generators of their own; all must draw one mask, another at each step, as after a checkpoint."""
    objective = make(layers=1, hidden=3, dropout=0.25)
    torch.manual_seed(1)
    first = mask(objective)
    torch.manual_seed(2)
    assert torch.equal(mask(objective), first)
    assert sorted({round(value, 9) for value in first.flatten().tolist()}) == [0.0, round(4 / 3, 9)]
    assert 0.15 < float((first == 0).double().mean()) < 0.35
    objective.after_step(objective, [toy_batch([2])])
    second = mask(objective)
    assert not torch.equal(second, first)
    again = make(layers=1, hidden=3, dropout=0.25)
    again.load_state_dict(objective.state_dict())
    assert torch.equal(mask(again), second)
    assert torch.equal(mask(objective.eval()), torch.ones_like(first))
