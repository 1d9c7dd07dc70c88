"""One move: over two streams two processes make that of one, and batches may be accumulated."""

import tempfile
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from isoglot.objectives import InfoNCE
from isoglot.settings import OptimizerSettings
from isoglot.training import ranks
from isoglot.training.loop import move
from isoglot.training.step import StepLimits, backward
from toys import ToyEncoder, toy_batch, toy_objective


class Given:
    """A stream that gives one batch: the rows of every `world`-th group."""

    def __init__(self, name, encoder, *, rank, world):
        self.name, self.objective = name, toy_objective(name, encoder)
        batch = toy_batch([2, 2, 3, 1, 2, 2, 4])
        self.batch = batch.select((batch.group % world == rank).nonzero()[:, 0])

    def next(self):
        return self.batch


def step(encoder, streams, **settings):
    """One move over these streams."""
    chosen = OptimizerSettings(lr=0.1, clip=0, precision="fp32", **settings)
    trained = [p for module in (encoder, *(stream.objective for stream in streams)) for p in module.parameters()]
    sgd = torch.optim.SGD(trained, lr=0.1)
    return move(encoder, streams, sgd, chosen, StepLimits(10, 0), lr=0.1)


def moved(rank, world):
    """The gradients after one move over a contrastive stream and one of pairs, whose classifier has its own."""
    encoder = ToyEncoder()
    streams = [Given(name, encoder, rank=rank, world=world) for name in ("info_nce", "pair_softmax")]
    step(encoder, streams)
    modules = [encoder, *(stream.objective for stream in streams)]
    return [parameter.grad for module in modules for parameter in module.parameters()]


def test_a_step_in_bfloat16_multiplies_in_it_and_leaves_float32_gradients(toy_transformer):
    encoder = toy_transformer(adapter={"rank": 2})
    found = []
    for part in encoder.modules():
        if isinstance(part, torch.nn.Linear):
            part.register_forward_hook(lambda _, inputs, output: found.append((output.dtype, torch.is_grad_enabled())))
    batch = toy_batch([2, 2, 2])
    backward(encoder, InfoNCE(), batch, StepLimits(chunk_tokens=16, graph_tokens=0, bf16=True))
    assert set(found) == {(torch.bfloat16, False), (torch.bfloat16, True)}  # of the first pass and of the second
    grads = [weight.grad for weight in encoder.parameters() if weight.grad is not None]
    assert grads
    assert {grad.dtype for grad in grads} == {torch.float32}


def test_accumulated_batches_give_the_mean_of_their_gradients_and_are_all_told():
    """EASE's scripts: the softmax sees a small batch, the step the mean over many."""
    batches = [toy_batch([2, 2, 3], seed=seed) for seed in range(3)]
    encoder = ToyEncoder()
    stream = Given("info_nce", encoder, rank=0, world=1)
    waiting, told = iter(batches), []
    stream.next = lambda: next(waiting)
    stream.objective.after_step = lambda _, batch: told.append(batch)
    reports, _ = step(encoder, [stream], accumulate=3)
    alone = []
    for batch in batches:
        other = ToyEncoder()
        alone.append(backward(other, toy_objective("info_nce", other), batch, StepLimits(10, 0)))
        alone[-1].losses["gradients"] = torch.cat([p.grad.flatten() for p in other.parameters()])
    means = {name: torch.stack([report.losses[name] for report in alone]).mean(0) for name in ("info_nce", "gradients")}
    torch.testing.assert_close(torch.cat([p.grad.flatten() for p in encoder.parameters()]), means["gradients"])
    torch.testing.assert_close(reports["info_nce"].losses["info_nce"], means["info_nce"])
    assert reports["info_nce"].groups == 9
    assert all(torch.equal(one.tokens.ids, batch.tokens.ids) for one, batch in zip(told, batches, strict=True))


@pytest.mark.slow
def test_two_ranks_make_the_move_of_one_over_several_streams():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_rank, args=(folder,), nprocs=2)
        for one, *both in zip(
            moved(0, 1), *(torch.load(Path(folder) / f"{rank}.pt") for rank in range(2)), strict=True
        ):
            for two in both:
                torch.testing.assert_close(two, one)


def _rank(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    torch.save(moved(rank, 2), Path(folder) / f"{rank}.pt")
    ranks.leave()  # a process that ends with threads of the group may be aborted
