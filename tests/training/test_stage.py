"""One move of a stage with two streams: two processes make the move of one."""

import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from isoglot.settings import OptimizerSettings, StageSettings
from isoglot.training.stage import Stage
from toys import ToyEncoder, toy_batch, toy_objective

STREAM = {"sources": [{"reader": "tsv", "path": "none"}], "objectives": [{"name": "info_nce"}]}


class Given:
    """A stream that gives one batch: the rows of every `world`-th group."""

    def __init__(self, name, encoder, *, rank, world):
        self.name, self.objective = name, toy_objective(name, encoder)
        batch = toy_batch([2, 2, 3, 1, 2, 2, 4])
        self.batch = batch.select((batch.group % world == rank).nonzero()[:, 0])

    def next(self):
        return self.batch


def moved(rank, world):
    """The gradients after one move over a contrastive stream and one of labelled pairs."""
    encoder = ToyEncoder()
    streams = [Given(name, encoder, rank=rank, world=world) for name in ("info_nce", "pair_softmax")]
    settings = StageSettings(streams=[STREAM], optimizer=OptimizerSettings(lr=0.1, clip=0, precision="fp32"), steps=1)
    memory = SimpleNamespace(chunk_tokens=10, graph_tokens=0)
    run = SimpleNamespace(encoder=encoder, device=torch.device("cpu"), recipe=SimpleNamespace(memory=memory))
    stage = Stage(run, settings, streams, torch.optim.SGD(encoder.parameters(), lr=0.1), total=1)
    stage.step(0.1)
    return [parameter.grad for parameter in encoder.parameters()]


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
    dist.destroy_process_group()
