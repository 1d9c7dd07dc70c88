"""Checkpoints: whole or not at all."""

import resource
import signal
from collections import Counter

import pytest
import torch

from isoglot.core.errors import CheckpointError
from isoglot.training.checkpoint import load, save
from isoglot.training.progress import RunLog


def test_the_newest_two_are_kept_and_the_newest_is_read(tmp_path):
    for step in (1, 2, 30):
        save(tmp_path, step, {"x": torch.full((3,), float(step))})
    state, problems = load(tmp_path)
    assert state["x"].tolist() == [30.0] * 3
    assert problems == []
    assert sorted(p.name for p in tmp_path.glob("*.pt")) == ["step-00000002.pt", "step-00000030.pt"]


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1]])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(tmp_path, damage):
    save(tmp_path, 1, {"x": torch.ones(500)})
    path = save(tmp_path, 2, {"x": torch.zeros(500)})
    path.write_bytes(damage(path.read_bytes()))
    state, problems = load(tmp_path)
    assert state["x"].sum() == 500
    assert len(problems) == 1
    assert "step-00000002.pt: damaged" in problems[0]


def test_a_flipped_bit_is_named_or_changes_nothing(tmp_path):
    path = save(tmp_path, 1, {"x": torch.ones(99)})
    content, outcomes = path.read_bytes(), Counter()
    for at in range(0, len(content), 7):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            outcomes[load(tmp_path)[0]["x"].tolist() == [1.0] * 99] += 1
        except CheckpointError as error:
            outcomes["\n" in str(error), f"{path}: damaged" in str(error)] += 1
    assert outcomes.keys() == {True, (False, True)}
    assert outcomes[False, True] > 99


def test_when_none_is_whole_it_is_an_error(tmp_path):
    path = save(tmp_path, 1, {"x": 1})
    path.write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"no checkpoint is intact; remove"):
        load(tmp_path)


def test_an_empty_folder_has_none(tmp_path):
    assert load(tmp_path) == (None, [])


def test_a_full_disk_leaves_the_checkpoint_before_it(tmp_path):
    """A limit on the size of files stands for a full disk: the write fails half-way, as it would there."""
    save(tmp_path, 1, {"x": torch.ones(10)})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(CheckpointError, match=r"step-00000002\.pt: cannot be written.*step-00000001 is intact"):
            save(tmp_path, 2, {"x": torch.ones(1_000_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert load(tmp_path)[0]["x"].sum() == 10
    assert [p.suffix for p in tmp_path.iterdir()] == [".pt"]  # nothing half-written is left


def test_a_damaged_line_of_the_log_is_dropped(tmp_path):
    good = b'{"kind": "step", "step": 1}\n'
    (tmp_path / "log.jsonl").write_bytes(good + b'\xed\xa0\x80\n[]\n{"step": 1e999}\n{"step": null}\n' + b"[" * 100_000)
    RunLog(tmp_path, resumed_at=5, trackers=(), settings={}).close()
    assert (tmp_path / "log.jsonl").read_bytes() == good
