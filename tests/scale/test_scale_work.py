"""Pieces of work: here, on Ray, with errors, with workers that die."""

import math
import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from isoglot.core.errors import CorpusError, IsoglotError
from isoglot.scale import neighbours_shards
from isoglot.scale.work import Cluster, _at_once, run


def double(shared, number):
    return shared + 2 * number


@pytest.mark.parametrize("options", [{"cpus": 0}, {"workers": 0}, {"gpus": -1}, {"retries": -1}])
def test_impossible_clusters(options):
    with pytest.raises(ValueError, match="at least"):
        Cluster("local", **options)


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(IsoglotError, match=r"isoglot\[ray\]"):
        list(run(double, [(1,)], Cluster("local"), shared=(0,)))


class FakeRay:
    """A cluster of two cores and an accelerator, in this process. The first piece is done last, if there are others."""

    def __init__(self):
        self.options, self.sent = {}, []

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return {"CPU": 2, "GPU": 1}

    def put(self, value):
        return value

    def remote(self, function):
        def options(**options):
            self.options = options
            return SimpleNamespace(remote=lambda *given: self.sent.append(function(*given)) or len(self.sent) - 1)

        return SimpleNamespace(options=options)

    def wait(self, references, num_returns):
        return sorted(references, key=lambda reference: reference == 0)[:1], []

    def get(self, reference):
        return self.sent[reference]

    def cancel(self, reference, force):
        pass


@pytest.fixture
def fake_ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_few_pieces_are_read_ahead_of_a_slow_one(fake_ray):
    read = []

    def pieces():
        for number in range(100):
            read.append(number)
            yield (number,)

    results = run(double, pieces(), Cluster("local"), shared=(7,))
    assert next(results) == 7
    assert len(read) == 2 * 3 * 2  # twice three pieces for each of two workers
    assert list(results) == [7 + 2 * number for number in range(1, 100)]


def test_small_results_may_wait_for_a_slow_piece_in_any_number(fake_ray):
    results = run(double, ((n,) for n in range(100)), Cluster("local"), shared=(7,), waiting=math.inf)
    assert next(results) == 7
    assert len(fake_ray.sent) == 100
    assert list(results) == [7 + 2 * number for number in range(1, 100)]


def test_comparing_reserves_no_accelerator(fake_ray):
    rows = np.eye(3, dtype=np.float32)
    found = neighbours_shards(rows, rows, 1, cluster=Cluster("local", gpus=1))
    assert found.forward_ids.ravel().tolist() == [0, 1, 2]
    assert (fake_ray.options["num_cpus"], fake_ray.options["num_gpus"]) == (1, 0)


@pytest.mark.slow
def test_results_are_those_of_this_process(ray):
    pieces = [(number,) for number in range(40)]
    here = list(run(double, pieces, Cluster(), shared=(7,)))

    def nested(shared, number):
        return shared + 2 * number

    assert list(run(nested, pieces, Cluster("local"), shared=(7,))) == here


@pytest.mark.slow
def test_an_error_of_a_piece_is_raised_as_it_was(ray):
    def fail(number):
        if number == 3:
            raise CorpusError("is bad", file="a.txt", line=3)
        return number

    with pytest.raises(CorpusError, match=r"^a\.txt:3: is bad$"):
        list(run(fail, [(number,) for number in range(10)], Cluster("local")))


@pytest.mark.slow
def test_a_piece_whose_worker_dies_is_run_again(ray, tmp_path):
    def die_once(number):
        flag = tmp_path / str(number)
        if number % 3 == 0 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    results = list(run(die_once, [(number,) for number in range(7)], Cluster("local")))
    assert results == [number * number for number in range(7)]
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_a_piece_that_kills_every_worker_is_an_error(ray):
    def die(number):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(IsoglotError, match="lost 2 times"):
        list(run(die, [(1,)], Cluster("local", retries=1)))


@pytest.mark.slow
def test_no_cluster_at_an_address():
    pytest.importorskip("ray").shutdown()
    with pytest.raises(IsoglotError, match="no Ray cluster at 'auto'"):
        list(run(double, [(1,)], Cluster("auto"), shared=(0,)))


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (Cluster("local", cpus=4), 4),
        (Cluster("local", cpus=4, gpus=1), 2),
        (Cluster("local", gpus=0.5), 4),
        (Cluster("local", cpus=32), 1),
        (Cluster("local", gpus=8), 1),
    ],
)
def test_as_many_pieces_as_the_cluster_has_room_for(cluster, expected):
    assert _at_once({"CPU": 16, "GPU": 2}, cluster) == expected
    assert _at_once({}, cluster) == 1
