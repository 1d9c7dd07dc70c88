"""Arrays that somebody else wrote: read, or one of two errors; never a pickle."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from isoglot.data.vectors import open_array


def test_an_array_is_mapped_or_read(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    for mapped in (True, False):
        found = open_array(tmp_path / "a.npy", mapped=mapped)
        assert isinstance(found, np.memmap) is mapped
        np.testing.assert_array_equal(found, np.eye(3))


@pytest.mark.parametrize("mapped", [True, False])
def test_a_damaged_file_is_one_of_two_errors(tmp_path, mapped):
    path, draw = tmp_path / "a.npy", random.Random(0)
    np.save(path, np.eye(3))
    whole = path.read_bytes()
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(3):
            data[draw.randrange(128)] = draw.choice(b"\0\xff\n([{'0x")
        path.write_bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])
        with contextlib.suppress(OSError, ValueError):
            open_array(path, mapped=mapped)


def test_pickles_and_archives_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    np.savez(tmp_path / "b.npz", a=np.eye(2))
    for name in ("a.npy", "b.npz"):
        for mapped in (True, False):
            with pytest.raises(ValueError, match="array"):
                open_array(tmp_path / name, mapped=mapped)
