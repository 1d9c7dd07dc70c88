"""Vectors kept on disk: found again by their text, in the store's own order, never half a shard.

Several processes may write into one folder at once.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.errors import EvaluationError
from isoglot.evaluation.store import Store, _key
from isoglot.evaluation.vectors import Remembered
from isoglot.report.evaluate import evaluate


@given(texts=st.lists(st.text(), unique=True, min_size=1, max_size=12), cut=st.integers(0, 12))
def test_what_was_added_is_found_by_another_process(tmp_path_factory, texts, cut):
    folder = tmp_path_factory.mktemp("store")
    vectors = np.random.default_rng(0).standard_normal((len(texts), 3)).astype(np.float32)
    store = Store(folder)
    for part in (slice(None, cut), slice(cut, None)):
        if texts[part]:
            store.add(texts[part], vectors[part])
    again = Store(folder)
    assert len(again) == len(texts)
    found = again.find([*texts, "never added, " + "".join(texts)])
    assert list(found) == texts
    np.testing.assert_array_equal(np.stack(list(found.values())), vectors)


def test_a_shard_without_keys_does_not_count(tmp_path):
    store = Store(tmp_path)
    store.add(["a"], np.ones((1, 2), np.float32))
    store.add(["b"], np.ones((1, 2), np.float32))
    next(path for path in tmp_path.glob("*.keys.npy") if np.load(path).tobytes() == _key("b")).unlink()
    left = Store(tmp_path)
    assert len(left) == 1
    left.add(["c"], np.full((1, 2), 3, np.float32))
    assert Store(tmp_path).find(["a", "b", "c"]).keys() == {"a", "c"}


@pytest.mark.parametrize("kind", ["keys", "vectors"])
def test_damaged_files_are_named(tmp_path, kind):
    Store(tmp_path).add(["a"], np.ones((1, 2), np.float32))
    (path,) = tmp_path.glob(f"*.{kind}.npy")
    path.write_bytes(b"\x93NUMPY nothing")
    with pytest.raises(EvaluationError, match=rf"{path.name}: cannot be read as kept vectors.*remove"):
        Store(tmp_path)


def test_keys_of_other_vectors_are_refused(tmp_path):
    Store(tmp_path).add(["a", "b"], np.ones((2, 2), np.float32))
    (path,) = tmp_path.glob("*.vectors.npy")
    np.save(path, np.ones((1, 2), np.float32))
    with pytest.raises(EvaluationError, match="does not fit its vectors"):
        Store(tmp_path)


def test_folders_of_earlier_versions_are_read_and_added_to(tmp_path):
    """They number their shards."""
    for number, text in enumerate("ab"):
        np.save(tmp_path / f"{number:05}.keys.npy", np.frombuffer(_key(text), np.uint8).reshape(1, -1))
        np.save(tmp_path / f"{number:05}.vectors.npy", np.full((1, 2), number, np.float32))
    Store(tmp_path).add(["c"], np.full((1, 2), 2, np.float32))
    assert {text: vector.tolist() for text, vector in Store(tmp_path).find("abc").items()} == {
        "a": [0, 0],
        "b": [1, 1],
        "c": [2, 2],
    }


# Opens the folder, says so, waits for a line, adds two texts; with "kill" it dies once its vectors are written.
_WRITER = """
import os, signal, sys
from pathlib import Path
import numpy as np
from isoglot.evaluation import store
folder, texts, value, end = sys.argv[1:]
opened = store.Store(Path(folder))
print("open", flush=True)
sys.stdin.readline()
if end == "kill":
    write, die = np.save, lambda: os.kill(os.getpid(), signal.SIGKILL)
    np.save = lambda file, table: die() if table.dtype == np.uint8 else write(file, table)
opened.add(list(texts), np.full((2, 2), float(value), np.float32))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_processes_that_share_a_folder_do_not_touch_each_others_vectors(tmp_path):
    """All open the folder before any writes, and the last one is killed between its two files."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, tmp_path, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for words in (("ab", "1", "live"), ("cd", "7", "live"), ("ef", "9", "kill"))
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"open\n"
    for writer in writers:
        writer.communicate(b"\n")
    assert [writer.returncode for writer in writers] == [0, 0, -signal.SIGKILL]
    kept = {text: vector.tolist() for text, vector in Store(tmp_path).find("abcdef").items()}
    assert kept == {"a": [1, 1], "b": [1, 1], "c": [7, 7], "d": [7, 7]}
    Store(tmp_path).add(["e", "f"], np.full((2, 2), 3, np.float32))  # the next evaluation makes what was lost
    assert [vector.tolist() for vector in Store(tmp_path).find("bdf").values()] == [[1, 1], [7, 7], [3, 3]]


def test_nothing_is_encoded_a_second_time(tmp_path):
    asked = []

    def encode(texts):
        asked.extend(texts)
        return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)

    first = Remembered(encode, store=Store(tmp_path))(["aa", "b"])
    second = Remembered(encode, store=Store(tmp_path))(["b", "ccc", "aa"])
    assert asked == ["aa", "b", "ccc"]
    np.testing.assert_array_equal(second[[2, 0]], first)


def test_vectors_that_are_not_finite_are_not_kept(tmp_path):
    Remembered(lambda texts: np.full((len(texts), 2), np.nan), store=Store(tmp_path))(["a"])
    assert len(Store(tmp_path)) == 0


WHOLE = {"keys": np.zeros((2, 16), np.uint8), "vectors": np.ones((2, 3), np.float32)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": np.float32(1)},
        {"keys": np.zeros((2, 8), np.uint8)},
        {"keys": np.zeros((2, 16), np.float32)},
        {"keys": np.zeros((3, 16), np.uint8)},
        {"vectors": np.ones((2, 3), np.complex64)},
        {"vectors": np.ones((2, 3, 1), np.float32)},
        {"vectors": np.ones((2, 3), np.float64)},
    ],
)
def test_damaged_shards_are_named(tmp_path, wrong):
    for name, table in (WHOLE | wrong).items():
        np.save(tmp_path / f"0.{name}.npy", table)
    with pytest.raises(EvaluationError, match=r"0\.(keys|vectors)\.npy"):
        Store(tmp_path)


def test_shards_of_different_widths_are_refused(tmp_path):
    Store(tmp_path).add(["a"], np.ones((1, 2), np.float32))
    Store(tmp_path).add(["b"], np.ones((1, 3), np.float32))
    with pytest.raises(EvaluationError, match=r"\.keys\.npy"):
        Store(tmp_path)


def test_a_kept_vector_that_is_not_finite_is_refused(tmp_path):
    store = Store(tmp_path)
    store.add(["a", "b"], np.array([[1, 2], [np.nan, 0]], np.float32))
    assert store.find(["a"])["a"].tolist() == [1, 2]
    with pytest.raises(EvaluationError, match="not finite"):
        store.find(["a", "b"])


def test_a_function_has_no_cache(tmp_path):
    with pytest.raises(EvaluationError, match="a cache needs an encoder"):
        evaluate(lambda texts: np.ones((len(texts), 2)), ["tatoeba"], data=tmp_path, cache=tmp_path)
