"""Rows on disk: whatever is cut off, damaged or written by others, no wrong row is ever read."""

import errno
import multiprocessing
import os
from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError, OutputError
from isoglot.data import store as storing
from isoglot.data.store import Rows, VectorStore, journal_of, map_rows, write_rows

WIDTH = 3
NOTE = {"of": "tests"}
ROWS = np.random.default_rng(0).standard_normal((200, WIDTH)).astype(np.float32)


def begun(path, dtype=np.float32):
    rows = Rows(path)
    rows.begin(NOTE, width=WIDTH, dtype=dtype)
    return rows


def cut(path, at):
    """Truncate a file to a share of its bytes."""
    with path.open("r+b") as stream:
        stream.truncate(int(at * path.stat().st_size))


SHARE = st.floats(0, 1)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 9)),
        st.tuples(st.just("reopen"), st.none()),
        st.tuples(st.just("cut data"), SHARE),
        st.tuples(st.just("cut journal"), SHARE),
        st.tuples(st.just("extend data"), st.binary(max_size=40)),
        st.tuples(st.just("extend journal"), st.binary(max_size=40)),
        st.tuples(st.just("kill"), st.integers(1, 9)),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(steps=STEPS)
def test_appends_cuts_kills_and_reopenings_never_give_a_wrong_row(tmp_path_factory, steps):
    """No two rows that are ever written are equal, and only what was cut off may be missing."""
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    rows, expected, made = begun(path), ROWS[:0], 0
    for place, (step, value) in enumerate(steps):
        if step == "extend data" and "cut data" in dict(steps[:place]):
            continue  # what a kill leaves lies behind the rows that count, not in the place of some of them
        if step in ("append", "kill"):
            block = np.arange(made, made + value * WIDTH, dtype=np.float32).reshape(value, WIDTH)
            made += value * WIDTH
            if step == "append":
                rows.append(block, note=[1])
                expected = np.concatenate([expected, block])
            else:  # the block is on disk, and its line is not
                killed = mock.patch.object(storing, "_checksum", side_effect=KeyboardInterrupt)
                with killed, pytest.raises(KeyboardInterrupt):
                    rows.append(block)
        elif step != "reopen" and (changed := journal_of(path) if "journal" in step else path).exists():
            content = changed.read_bytes()
            changed.write_bytes(content + value if "extend" in step else content[: int(value * len(content))])
        rows = Rows(path, replace=True)
        if not step.startswith("cut"):
            assert len(rows) == len(expected)
        expected = expected[: len(rows)]
        if rows.note is None:
            rows.begin(NOTE, width=WIDTH, dtype=np.float32)
        np.testing.assert_array_equal(rows.table, expected)
        rows.verify()
        np.testing.assert_array_equal(rows.table, expected)


@pytest.mark.slow
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7), journal=st.booleans())
def test_a_flipped_bit_ends_the_rows_that_count(tmp_path_factory, at, bit, journal):
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    rows = begun(path)
    for start in range(0, 40, 10):
        rows.append(ROWS[start : start + 10])
    damaged = journal_of(path) if journal else path
    content = bytearray(damaged.read_bytes())
    content[at % len(content)] ^= 1 << bit
    damaged.write_bytes(content)
    rows = Rows(path, replace=True)
    rows.verify()
    np.testing.assert_array_equal(rows.table if rows.note else ROWS[:0], ROWS[: len(rows)])
    assert len(rows) in ((0, 10, 20, 30) if journal or at % len(content) >= 128 else (40,))
    if rows.note:
        rows.append(ROWS[len(rows) : 50])
        rows = Rows(path)
        np.testing.assert_array_equal(rows.table, ROWS[:50])


def test_the_file_is_an_array_of_numpy_after_every_append(tmp_path):
    rows = begun(tmp_path / "rows.npy", np.float16)
    for start in (0, 50, 100):
        rows.append(ROWS[start : start + 50])
        np.testing.assert_array_equal(np.load(rows.path), ROWS[: start + 50].astype(np.float16))
    assert not rows.table.flags.writeable
    rows.finish(tmp_path / "done.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["done.npy"]
    assert np.load(tmp_path / "done.npy").shape == (150, WIDTH)
    begun(tmp_path / "rows.npy").finish(tmp_path / "none.npy")
    assert np.load(tmp_path / "none.npy").shape == (0, WIDTH)


def test_a_reader_sees_what_was_added_and_what_was_begun_anew(tmp_path):
    writer = begun(tmp_path / "rows.npy")
    reader = Rows(tmp_path / "rows.npy")
    writer.append(ROWS[:10])
    assert len(reader) == 0
    reader.refresh()
    old = reader.table
    writer.begin(NOTE, width=WIDTH, dtype=np.float32)
    writer.append(ROWS[50:57])
    np.testing.assert_array_equal(old, ROWS[:10])  # its map stays
    reader.refresh()
    np.testing.assert_array_equal(reader.table, ROWS[50:57])


def test_foreign_files_are_not_overwritten(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    with pytest.raises(OutputError, match=r"rows\.npy: .*without its journal"):
        Rows(tmp_path / "rows.npy")
    journal_of(tmp_path / "rows.npy").write_text("mine\n")
    with pytest.raises(OutputError, match=r"rows\.npy\.journal"):
        Rows(tmp_path / "rows.npy")
    assert Rows(tmp_path / "rows.npy", replace=True).note is None  # of a cache


def test_another_shape_is_refused(tmp_path):
    rows = begun(tmp_path / "rows.npy")
    for block in (np.ones((2, WIDTH + 1)), np.ones(WIDTH)):
        with pytest.raises(ValueError, match="contains rows of 3 values"):
            rows.append(block)


def test_a_file_that_lost_rows_is_one_error_with_its_path(tmp_path):
    """The count is kept elsewhere, as that of an index is."""
    path = tmp_path / "rows.npy"
    write_rows(path, 0, ROWS[:10])
    for use in (lambda: map_rows(path, 11, WIDTH), lambda: write_rows(path, 11, ROWS[:1])):
        with pytest.raises(CorpusError, match=r"rows\.npy: .*delete it"):
            use()
    with pytest.raises(CorpusError, match=r"none\.npy: .*No such file"):
        map_rows(tmp_path / "none.npy", 1, WIDTH)


@pytest.mark.parametrize("failing", ["data", "journal"])
def test_a_full_disk_names_the_file_and_loses_nothing(tmp_path, monkeypatch, failing):
    rows = begun(tmp_path / "rows.npy")
    rows.append(ROWS[:10])
    calls = []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == (1 if failing == "data" else 2):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        name = r"rows\.npy:" if failing == "data" else r"rows\.npy\.journal:"
        with pytest.raises(OutputError, match=rf"{name} can't be written: .*make room"):
            rows.append(ROWS[10:20])
    rows = Rows(tmp_path / "rows.npy")
    assert len(rows) in (10, 20)
    rows.append(ROWS[len(rows) : 30])
    np.testing.assert_array_equal(Rows(tmp_path / "rows.npy").table, ROWS[:30])


def vector_of(text):
    return [len(text), hash(text) % 1000, 1.0]


def test_only_what_is_missing_is_computed(tmp_path, monkeypatch):
    monkeypatch.setattr("isoglot.data.store.BLOCK", 2)
    asked = []

    def compute(texts):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(texts)
        return np.array([vector_of(text) for text in texts])

    texts = ["a", "bb", "a", "ccc", "", "dddd"]
    with pytest.raises(KeyboardInterrupt):
        VectorStore(tmp_path).encode(compute, texts)
    assert asked == [["a", "bb"], ["ccc", ""]]
    asked.clear()
    store = VectorStore(tmp_path)
    np.testing.assert_array_equal(store[store.encode(compute, texts)], np.float32([vector_of(text) for text in texts]))
    assert asked == [["dddd"]]


@pytest.mark.slow
@given(cuts=st.lists(st.tuples(st.booleans(), SHARE), max_size=4), seed=st.integers(0, 99))
def test_a_store_that_was_cut_finds_the_right_vectors_or_none(tmp_path_factory, cuts, seed):
    folder = tmp_path_factory.mktemp("store")
    order = np.random.default_rng(seed)
    for journal, at in [*cuts, (False, 1.0)]:
        store = VectorStore(folder)
        for _ in range(3):
            texts = [f"text {number}" for number in order.choice(60, 7, replace=False)]
            store.add(texts, ROWS[[int(text[5:]) for text in texts]])
        path = folder / "vectors.npy"
        cut(journal_of(path) if journal else path, at)
        store = VectorStore(folder)
        rows = store.find([f"text {number}" for number in range(60)])
        kept = rows >= 0
        assert not kept.any() or np.array_equal(store[rows[kept]], ROWS[:60][kept])


def test_two_stores_of_one_folder_share_what_they_add(tmp_path):
    one, other = VectorStore(tmp_path), VectorStore(tmp_path)
    one.add(["a", "b"], ROWS[:2])
    other.add(["b", "c"], ROWS[5:7])  # b was added meanwhile
    one.add(["d"], ROWS[8:9])
    for store in (one, VectorStore(tmp_path)):
        np.testing.assert_array_equal(store[store.find("abcd")], ROWS[[0, 1, 6, 8]])
    with pytest.raises(CorpusError, match="contains vectors of 3 values, not 2"):
        one.add(["e"], ROWS[:1, :2])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_refused_when_it_is_read(tmp_path, value):
    store = VectorStore(tmp_path)
    store.add(["a", "b"], np.float32([[1, 2], [value, 0]]))
    assert store[store.find(["a"])].tolist() == [[1, 2]]
    with pytest.raises(CorpusError, match=r"vectors\.npy: .*not finite"):
        store[store.find(["a", "b"])]
    with pytest.raises(CorpusError, match="row 7 was requested"):
        store[np.array([7])]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are of POSIX systems")
def test_processes_that_share_a_folder_keep_each_others_vectors(tmp_path):
    """All open the folder before any writes, and one is killed between its vectors and their line."""
    fork = multiprocessing.get_context("fork")
    opened = fork.Barrier(3)

    def add(texts, value, killed):
        store = VectorStore(tmp_path)
        opened.wait(60)
        with mock.patch.object(storing, "_checksum", side_effect=lambda _: os._exit(9)) if killed else nullcontext():
            store.add(list(texts), np.full((2, 2), value, np.float32))

    writers = [fork.Process(target=add, args=words) for words in (("ab", 1, False), ("ef", 9, True), ("cd", 7, False))]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 9, 0]
    store = VectorStore(tmp_path)
    assert store[store.find("abcd")].tolist() == [[1, 1], [1, 1], [7, 7], [7, 7]]
    assert store.find("ef").tolist() == [-1, -1]
    store.add(["e", "f"], np.full((2, 2), 3, np.float32))
    store = VectorStore(tmp_path)
    assert store[store.find("bdf")].tolist() == [[1, 1], [7, 7], [3, 3]]
