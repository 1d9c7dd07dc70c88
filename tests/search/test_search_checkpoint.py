"""A search that was killed goes on to the same result; a damaged or foreign checkpoint counts as absent."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from search_loops import assert_same

from isoglot.search import Checkpoint, neighbours
from isoglot.search.best import Best
from isoglot.search.checkpoint import Saver, fingerprint

SMALL = 450_000
SOURCE = Path(__file__).parents[2] / "src"
KILLED = """
import os, signal, sys
import numpy as np
from pathlib import Path
from isoglot.search import Checkpoint, checkpoint, neighbours

checkpoint.SHARE = 0  # saves after every tile

def progress(done, total):
    if done == {at}:
        os.kill(os.getpid(), signal.SIGKILL)

x, y = np.load("x.npy", mmap_mode="r"), np.load("y.npy", mmap_mode="r")
neighbours(x, y, 3, metric="cosine", budget={budget}, checkpoint=Checkpoint(Path("work/state"), 0.0), progress=progress)
"""


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((700, 8), np.float32), rng.standard_normal((900, 8), np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    return x, y


def search(tables, path, **more):
    said, turns = [], []
    kept = Checkpoint(path, 0.0, said.append)
    found = neighbours(
        *tables, 3, metric="cosine", budget=SMALL, checkpoint=kept, progress=lambda done, _: turns.append(done), **more
    )
    return found, turns, said


@pytest.mark.slow
def test_killed_in_the_middle_and_run_again(tables, tmp_path):
    whole, every, _ = search(tables, tmp_path / "other")
    assert len(every) > 20
    for at in (7, len(every) // 2):  # twice: what is resumed may be killed again
        code = KILLED.format(at=at, budget=SMALL)
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(SOURCE)},  # the same settings of BLAS, so the same bits
            check=False,
        )
        assert done.returncode == -signal.SIGKILL
    found, turns, said = search(tables, tmp_path / "work" / "state")
    # Killed while the last tile was told; what was saved before it is used.
    assert turns == every[len(every) // 2 :]
    assert said == []
    assert_same(found, whole)
    again, turns, _ = search(tables, tmp_path / "work" / "state")
    assert turns == []
    assert_same(again, whole)


@pytest.mark.slow
def test_a_cut_starts_anew_and_a_flipped_bit_does_or_changes_nothing(tmp_path):
    path, said, outcomes = tmp_path / "state", [], Counter()

    def saver(table):
        return Saver(Checkpoint(path, report=said.append), lambda: "key", [table])

    table, empty = Best(np.array([[0.5, 0.25]], np.float32), np.array([[7, 9]])), Best.empty(1, 2)
    saver(table).save(7)
    content = path.read_bytes()
    flipped = [content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :] for at in range(len(content))]
    for damaged in [*flipped, *(content[:at] for at in range(len(content)))]:
        path.write_bytes(damaged)
        found = Best.empty(1, 2)
        tiles = saver(found).load()
        expected = table if tiles == 7 else empty
        assert_same((found.scores, found.ids), (expected.scores, expected.ids))
        assert all("starting again" in words for words in said)
        outcomes[len(damaged) == len(content), tiles, len(said)] += 1
        said.clear()
    assert outcomes.keys() == {(True, 7, 0), (True, 0, 1), (False, 0, 1)}
    assert outcomes[True, 0, 1] > 500


def test_other_vectors_do_not_go_on(tables, tmp_path):
    search(tables, tmp_path / "state")
    other = tables[0].copy()
    other[-1, -1] += 1
    found, turns, said = search((other, tables[1]), tmp_path / "state")
    assert turns
    assert "another search" in said[0]
    assert_same(found, neighbours(other, tables[1], 3, metric="cosine", budget=SMALL))


def test_the_fingerprint_tells_content_type_and_shape():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    prints = {fingerprint(x), fingerprint(x.reshape(3, 2)), fingerprint(x.astype(np.float64)), fingerprint(x + 1)}
    assert len(prints) == 4
    assert fingerprint(x.astype(np.float16)[:, :]) == fingerprint(np.asfortranarray(x.astype(np.float16)))
