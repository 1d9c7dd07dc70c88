"""What every registered objective must hold, by registration alone."""

import tempfile
from functools import cache
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from isoglot.objectives import OBJECTIVES
from isoglot.training import ranks
from isoglot.training.step import StepLimits, backward
from toys import ToyEncoder, example, take, toy_batch, toy_objective

WHOLE = StepLimits(chunk_tokens=10**9, graph_tokens=10**9)
every_objective = pytest.mark.parametrize("name", sorted(OBJECTIVES))


def gradients(encoder, objective) -> list[torch.Tensor]:
    modules = [*encoder.parameters(), *objective.parameters()]
    return [p.grad.to_dense().clone() if p.grad is not None else torch.zeros_like(p) for p in modules]


def passed(name, batch=None, limits=WHOLE, encoder=None):
    """The gradients that a pass gives an encoder and a new objective, its report, and the objective."""
    encoder = encoder or ToyEncoder()
    objective = toy_objective(name, encoder)
    report = backward(encoder, objective, batch or example(), limits)
    return gradients(encoder, objective), report, objective


def assert_equal(left, right, **tolerance) -> None:
    for a, b in zip(left, right, strict=True):
        assert torch.allclose(a, b, **tolerance)
    assert any(bool(a.abs().max() > 0) for a in left)


@cache
def direct(name):
    encoder, batch = ToyEncoder(), example()
    objective = toy_objective(name, encoder)
    with torch.no_grad():
        objective.annotate(batch)
    torch.stack(list(objective(encoder(batch.tokens), batch).values())).sum().backward()
    return gradients(encoder, objective)


@every_objective
@pytest.mark.parametrize("chunk", [30, 9, 1])
@pytest.mark.parametrize("graph", [0, 40, 10**9])
def test_chunked_gradient_is_the_direct_one(name, chunk, graph):
    """Gradient caching, chunks that keep their graph, and both, against plain autograd over the whole batch."""
    found, *_ = passed(name, limits=StepLimits(chunk, graph))
    assert_equal(direct(name), found, rtol=1e-9, atol=1e-12)


@every_objective
def test_dropout_is_replayed_exactly(name):
    """With dropout, the cached path must meet the same masks twice: it equals those that keep some graphs, or all."""
    results = []
    for graph in (0, 20, 60, 10**9):
        encoder = ToyEncoder(dropout=0.3)
        torch.manual_seed(5)
        found, *_ = passed(name, limits=StepLimits(9, graph), encoder=encoder)
        results.append([*found, torch.rand(1)])  # and the generator stands at the same place
    for other in results[1:]:
        assert all(torch.equal(*pair) for pair in zip(results[0], other, strict=True))


@every_objective
def test_row_order_means_nothing(name):
    batch = example()
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(1))
    mixed = take(batch, order)  # before an objective annotates the batch
    assert_equal(passed(name, batch)[0], passed(name, mixed)[0], rtol=1e-9, atol=1e-12)


@every_objective
def test_no_positives_no_loss(name):
    batch = toy_batch([1, 1, 1], hard=[0, 1, 0])
    batch.extras["entity"].fill_(-1)  # none: an entity would be a positive
    grads, report, _ = passed(name, batch)
    assert sum(float(loss) for loss in report.losses.values()) == 0
    assert all(bool(torch.isfinite(grad).all()) for grad in grads)


@every_objective
def test_bfloat16_stays_finite(name):
    encoder = ToyEncoder().float()
    objective = toy_objective(name, encoder).float()
    report = backward(encoder, objective, example(), StepLimits(30, 0, "bfloat16"))
    found = (*report.losses.values(), *gradients(encoder, objective))
    assert all(bool(torch.isfinite(numbers).all()) for numbers in found)


@every_objective
def test_state_survives_a_round_trip(name):
    """Two steps equal one step, a save, a load into a fresh module, and one step."""
    batch, results = example(), []
    for interrupted in (False, True):
        encoder = ToyEncoder()
        objective = toy_objective(name, encoder)
        for turn in range(2):
            if interrupted and turn:
                state, objective = objective.state_dict(), toy_objective(name, ToyEncoder(seed=9))
                objective.load_state_dict(state)
            encoder.zero_grad()
            objective.zero_grad()
            backward(encoder, objective, batch, WHOLE)
            with torch.no_grad():
                objective.after_step(encoder, [batch])
        results.append(gradients(encoder, objective))
    assert_equal(*results)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_many_ranks_give_the_gradient_of_one(sparse, world):
    """Processes over gloo, with unequal numbers of rows, for all objectives at once."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, args=(world, folder, sparse), nprocs=world)
        for name in OBJECTIVES:
            encoder = ToyEncoder(sparse=sparse)
            expected, report, objective = passed(name, encoder=encoder)
            with torch.no_grad():
                objective.after_step(encoder, [report.batch])
            for rank in range(world):
                got = torch.load(Path(folder) / f"{name}-{rank}.pt")
                assert_equal(got["gradients"], expected, rtol=1e-9, atol=1e-12)
                assert got["losses"] == pytest.approx({k: float(v) for k, v in report.losses.items()})
                assert got["negatives"] == pytest.approx(report.negatives)
                for key, value in objective.state_dict().items():
                    torch.testing.assert_close(got["state"][key], value, msg=f"{name}: {key}")


def _rank(rank: int, world: int, folder: str, sparse: bool) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=world)
    torch.set_num_threads(1)
    batch = example()
    mine = take(batch, (batch.group * world // (int(batch.group.max()) + 1) == rank).nonzero()[:, 0])
    for name in OBJECTIVES:
        encoder = ToyEncoder(sparse=sparse)
        objective = toy_objective(name, encoder)
        several = ranks.Ranks(encoder)
        report = backward(encoder, objective, mine, StepLimits(10, 20), rank=several)
        several.sum_gradients()
        found = {"gradients": gradients(encoder, objective), "negatives": report.negatives}
        found["losses"] = {key: float(value) for key, value in report.losses.items()}
        with torch.no_grad():
            objective.after_step(encoder, [report.batch])
        torch.save(found | {"state": objective.state_dict()}, Path(folder) / f"{name}-{rank}.pt")
    ranks.leave()  # a process that ends with threads of the group may be aborted
