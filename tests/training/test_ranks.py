"""A whole run under torchrun's environment: two processes train the model of one."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import test_loop
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from test_loop import RECIPE, assert_same, log_of, run_tiny, state_of
from test_step import run_two_ranks
from torch import nn
from torch.distributed.distributed_c10d import _set_pg_timeout as set_timeout

from isoglot.evaluation.base import Metric
from isoglot.model import engine
from isoglot.training import ranks
from isoglot.training.best import Choice, Dev
from toys import ToyEncoder

project = test_loop.project


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def start(project, folder, *more):
    """`isoglot train` as two processes that find each other as torchrun would have them."""
    command = [sys.executable, "-m", "isoglot", "train", str(project / "tiny.toml"), "--output", str(folder), *more]
    common = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
                           "OMP_NUM_THREADS": "1"}  # fmt: skip
    return [
        subprocess.Popen(
            command, env=common | {"RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]


def launch(project, folder, *more):
    """`start`, to the end: the output of each process and its exit status."""
    return [(rank.communicate(timeout=120), rank.returncode) for rank in start(project, folder, *more)]


def test_the_group_is_left_when_something_goes_wrong(monkeypatch):
    for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}.items():
        monkeypatch.setenv(name, str(value))

    def fail():
        with ranks.group(torch.device("cpu")):
            assert dist.is_initialized()
            raise RuntimeError("before the first step")

    with pytest.raises(RuntimeError, match="before the first step"):
        fail()
    assert not dist.is_initialized()


@pytest.mark.slow
def test_two_ranks_train_the_model_of_one(project):
    run_tiny(project, to="one")
    ended = launch(project, project / "two")
    assert [code for _, code in ended] == [0, 0], ended
    assert [len(out.splitlines()) for (out, _), _ in ended] == [1, 0]  # the model's folder, said once
    one, two = state_of(project / "one"), state_of(project / "two")
    for name, value in one["encoder"].items():
        assert torch.allclose(value, two["encoder"][name], atol=1e-4), name
    assert one["state"] == two["state"]
    assert [r["step"] for r in log_of(project / "one")] == [r["step"] for r in log_of(project / "two")]
    again = launch(project, project / "two")  # the run is finished: nothing is done
    assert [code for _, code in again] == [0, 0], again
    other = launch(project, project / "two", "--set", "steps=3")  # both ranks reject another run
    assert [code for _, code in other] == [1, 1], other
    assert_same(two["encoder"], state_of(project / "two")["encoder"])


@pytest.mark.slow
def test_ranks_wait_longer_than_a_collective_and_stay_alike():
    """The group gives up after a second; rank 0 works for three, as on a table or an evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_long_work, args=(folder,), nprocs=2)
        assert (Path(folder) / "order").read_text() == "01"
        first, second = (torch.load(Path(folder) / f"{rank}.pt") for rank in range(2))
        for name in ("dense", "sparse"):
            assert torch.equal(first[name], second[name])
        assert first["dense"].tolist() == pytest.approx([1.5, 1.5])
        assert first["sparse"].tolist() == [[0.0], [1.5], [0.0]]


def _long_work(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    ranks.patient()  # made while the timeout is long: on a busy machine the processes start seconds apart
    set_timeout(timedelta(seconds=1))
    with ranks.take_turns():
        time.sleep(3 * (rank == 0))
        with (Path(folder) / "order").open("a") as file:
            file.write(str(rank))
    if rank == 0:
        time.sleep(2)
    assert ranks.from_first(rank) == 0
    set_timeout(timedelta(minutes=5))  # the collectives of a step are not what is tested
    own = nn.ModuleDict({"dense": nn.Linear(1, 2, bias=False), "sparse": nn.Embedding(3, 1, sparse=True)})
    own["unused"] = nn.Linear(1, 1)
    own["dense"].weight.grad = torch.full((2, 1), 1.0 + rank)
    own["sparse"].weight.grad = torch.sparse_coo_tensor([[1]], [[1.0 + rank]], (3, 1))
    own["transposed"] = nn.Linear(3, 2, bias=False)
    own["transposed"].weight = nn.Parameter(torch.zeros(3, 2).t())
    own["transposed"].weight.grad = torch.arange(6.0).view(3, 2).t()
    ranks.Ranks(ToyEncoder()).average_gradients(own)
    assert own["transposed"].weight.grad.stride() == (1, 2)  # as its weight, which fused optimizers take for granted
    assert own["transposed"].weight.grad.tolist() == [[0, 2, 4], [1, 3, 5]]
    assert own["unused"].weight.grad is None
    found = {"dense": own["dense"].weight.grad.flatten(), "sparse": own["sparse"].weight.grad.to_dense()}
    torch.save(found, Path(folder) / f"{rank}.pt")
    ranks.leave()  # a process that ends with threads of the group may be aborted


def test_a_row_sparse_gradient_of_a_module_that_is_not_marked_is_an_error():
    table = nn.Parameter(torch.zeros(3, 1))
    table.grad = torch.sparse_coo_tensor([[1]], [[1.0]], (3, 1), check_invariants=True)
    with pytest.raises(TypeError, match="sparse = True"):
        ranks._send([table])


TEXTS = [f"{'word ' * (number % 9)}{number}" for number in range(40)]


class Spread:
    """A task whose score depends on the last bit of every vector, and which asks twice."""

    name, needs, metrics = "spread", "nothing", (Metric("sum", main=True),)

    def subsets(self, data, *, languages=()):
        return ("all",)

    def run(self, encode, data, *, languages=()):
        rows = np.concatenate([encode(TEXTS), encode([*TEXTS[:3], "new"])])
        weights = np.random.default_rng(0).standard_normal(rows.shape)
        return [self.metrics[0].score("spread", "all", float((rows * weights).sum()), len(rows))]


def scored_by(_rank):
    return scored()


def scored():
    """Score of an encoder whose texts take many chunks, and how many of them this process computed."""
    encoder, calls = ToyEncoder().float(), []
    encoder.register_forward_hook(lambda *_: calls.append(1))
    dev = Dev(Spread(), Spread.metrics[0], Path())
    with mock.patch.object(engine, "CPU_TOKENS", 64):
        return *Choice((dev,)).score(encoder), len(calls)


@pytest.mark.slow
def test_ranks_share_an_evaluation_and_score_as_one(tmp_path):
    score, records, chunks = scored()
    first, second = run_two_ranks(scored_by, tmp_path)
    assert first[:2] == (score, records)
    assert second[:2] == (0.0, [])
    assert first[2] + second[2] == chunks
    assert min(first[2], second[2]) > chunks // 3


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_killed_rank_ends_the_others_and_the_same_command_resumes(killed, project):
    """To the weights and the log of a run that was not interrupted."""
    (project / "tiny.toml").write_text(RECIPE.replace("steps = 14", "steps = 150").replace("every = 5", "every = 75"))
    processes = start(project, project / "run")
    try:
        end = time.monotonic() + 100
        while time.monotonic() < end and not list((project / "run" / "checkpoints").glob("step-*")):
            time.sleep(0.01)
        processes[killed].kill()
        _, messages = processes[1 - killed].communicate(timeout=100)
        processes[killed].communicate(timeout=100)
    finally:
        for process in processes:
            process.kill()
    assert processes[1 - killed].returncode == 1, messages
    assert "Traceback" not in messages
    assert f"rank {1 - killed}: lost its connection to another rank" in messages
    assert "same command" in messages
    assert 0 < state_of(project / "run")["state"]["step"] < 150
    for folder in ("run", "straight"):
        ended = launch(project, project / folder)
        assert [code for _, code in ended] == [0, 0], ended
    assert_same(state_of(project / "run"), state_of(project / "straight"))
    assert log_of(project / "run") == log_of(project / "straight")
