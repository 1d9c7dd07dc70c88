"""Vectors kept on disk: found again by their text, in the store's own order, and never half a shard."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.errors import EvaluationError
from isoglot.evaluation.run import evaluate
from isoglot.evaluation.store import Store
from isoglot.evaluation.vectors import Remembered


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
    (tmp_path / "00001.keys.npy").unlink()
    left = Store(tmp_path)
    assert len(left) == 1
    left.add(["c"], np.full((1, 2), 3, np.float32))
    assert Store(tmp_path).find(["a", "b", "c"]).keys() == {"a", "c"}


@pytest.mark.parametrize("name", ["00000.keys.npy", "00000.vectors.npy"])
def test_damaged_files_are_named(tmp_path, name):
    Store(tmp_path).add(["a"], np.ones((1, 2), np.float32))
    (tmp_path / name).write_bytes(b"\x93NUMPY nothing")
    with pytest.raises(EvaluationError, match=rf"{name}: cannot be read as kept vectors.*remove"):
        Store(tmp_path)


def test_keys_of_other_vectors_are_refused(tmp_path):
    Store(tmp_path).add(["a", "b"], np.ones((2, 2), np.float32))
    np.save(tmp_path / "00000.vectors.npy", np.ones((1, 2), np.float32))
    with pytest.raises(EvaluationError, match="does not fit its vectors"):
        Store(tmp_path)


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


def test_a_function_has_no_cache(tmp_path):
    with pytest.raises(EvaluationError, match="a function does not say when it changes"):
        evaluate(lambda texts: np.ones((len(texts), 2)), ["tatoeba"], data=tmp_path, cache=tmp_path)
