"""Arrays that somebody else wrote: read, or one of two errors, never a pickle; rows of length one; rows not finite."""

import contextlib
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoglot.core.arguments import as_array
from isoglot.data.vectors import not_finite, open_array, unit


def test_an_array_is_mapped_and_a_damaged_file_is_one_of_two_errors(tmp_path):
    path, draw = tmp_path / "a.npy", random.Random(0)
    np.save(path, np.eye(3))
    assert isinstance(open_array(path), np.memmap)
    np.testing.assert_array_equal(open_array(path), np.eye(3))
    whole = path.read_bytes()
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(3):
            data[draw.randrange(128)] = draw.choice(b"\0\xff\n([{'0x")
        path.write_bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
        with contextlib.suppress(OSError, ValueError):
            open_array(path)


def test_pickles_and_archives_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "b.npz", a=np.eye(2))
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match="array"):
            open_array(tmp_path / name)


@given(arrays(np.float32, (3, 4), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_every_row_has_length_one_or_is_zero(rows):
    for dtype in (np.float32, np.float64):
        lengths = np.linalg.norm(unit(rows, dtype), axis=1)
        np.testing.assert_allclose(lengths, rows.any(axis=1).astype(float), atol=1e-6)


def test_huge_and_tiny_rows_keep_their_direction():
    rows = np.array([[3, 4], [0, 0], [-3, 4]], np.float32)
    for scale in (1e-45, 1e-30, 1, 1e38 / 2):
        scaled = rows.astype(np.float64) * scale
        np.testing.assert_allclose(unit(scaled, np.float64), [[0.6, 0.8], [0, 0], [-0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(unit(rows * np.float32(3e37)), [[0.6, 0.8], [0, 0], [-0.6, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(unit(np.full((1, 400), 3e38, np.float32)), 0.05, rtol=1e-6)
    assert unit(np.zeros((0, 3))).shape == (0, 3)


def test_a_sparse_tensor_is_an_array_too():
    torch = pytest.importorskip("torch")
    assert as_array(torch.eye(3).to_sparse()).tolist() == np.eye(3).tolist()
    assert as_array(torch.tensor([1e200], dtype=torch.float64)).tolist() == [1e200]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_named(value):
    rows = np.ones((4, 3), np.float32)
    rows[2, 1] = value
    assert not_finite(rows).tolist() == [2]
    with pytest.raises(ValueError, match="row 2 "):
        unit(rows)
