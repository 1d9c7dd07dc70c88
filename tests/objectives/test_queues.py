"""Queues that do not fit into memory are rejected before they are made."""

from __future__ import annotations

import pytest
import torch

from isoglot.core import memory
from isoglot.core.errors import RecipeError
from isoglot.objectives import build, queues
from toys import ToyEncoder


def test_a_queue_larger_than_memory_is_one_clear_line():
    message = r"objectives: queue: two queues of 4,000,000,000 x 12 numbers need 768\.0 GB, and "
    with pytest.raises(RecipeError, match=message + r"[\d,.]+ GB of memory are free; use fewer$"):
        build("dual_momentum", {"queue": 4 * 10**9}, ToyEncoder())


def test_what_is_available_is_read_where_linux_says_it(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "LIMITS", (tmp_path / "limit",))
    assert memory.free_bytes(torch.device("cpu")) > 1 << 28  # all there is
    (tmp_path / "meminfo").write_text("MemTotal:       9 kB\nMemAvailable:   3 kB\nHugePages_Total:   0\n")
    assert memory.free_bytes(torch.device("cpu")) == 3072
    (tmp_path / "limit").write_text("max\n")
    assert memory.free_bytes(torch.device("cpu")) == 3072
    with pytest.raises(ValueError, match="17 x 12 numbers"):
        queues.random_queues(ToyEncoder(), 17, seed=0)
    assert queues.random_queues(ToyEncoder(), 16, seed=0).shape == (2, 16, 12)
    (tmp_path / "limit").write_text("3071\n")  # of a container
    with pytest.raises(ValueError, match="16 x 12 numbers"):
        queues.random_queues(ToyEncoder(), 16, seed=0)
