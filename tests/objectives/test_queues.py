"""Queues that do not fit into memory are refused before they are made."""

from __future__ import annotations

import pytest
import torch

from isoglot.errors import RecipeError
from isoglot.objectives import build, queues
from toys import ToyEncoder


def test_a_queue_larger_than_memory_is_one_clear_line():
    message = r"objectives: queue: two queues of 10,000,000,000,000 keys of 12 dimensions take 1,920,000\.0 GB and "
    with pytest.raises(RecipeError, match=message + r"[\d,.]+ GB of memory are free; take less than [\d,]+$"):
        build("dual_momentum", {"queue": 10**13}, ToyEncoder())


def test_what_is_available_is_read_where_linux_says_it(tmp_path, monkeypatch):
    monkeypatch.setattr(queues, "MEMORY", tmp_path / "meminfo")
    assert queues.free_bytes(torch.device("cpu")) > 1 << 28  # all there is
    (tmp_path / "meminfo").write_text("MemTotal:       9 kB\nMemAvailable:   3 kB\nHugePages_Total:   0\n")
    assert queues.free_bytes(torch.device("cpu")) == 3072
    with pytest.raises(ValueError, match="take less than 16"):
        queues.random_queues(ToyEncoder(), 17, seed=0)
    assert queues.random_queues(ToyEncoder(), 16, seed=0).shape == (2, 16, 12)
