"""Shards: kept, cut by number, the same whatever the number of processes."""

import pytest

from isoglot.wikipedia.shards import mapping, read_shards, write_shards


def double(items):
    return [f"{2 * item}\n" for item in items]


def test_shards_that_are_there_are_not_made_again(tmp_path):
    calls, done = [], []

    def work(items):
        calls.extend(items)
        return double(items)

    with mapping(1) as spread:
        write_shards(tmp_path, lambda: range(100), work, spread, size=40, progress=done.append)
        assert sorted(path.name for path in tmp_path.iterdir()) == [*(f"{n:06}.jsonl" for n in range(3)), "complete"]
        assert done == [16, 32, 40, 40, 56, 72, 80, 80, 96, 100, 100]
        (tmp_path / "complete").unlink()
        (tmp_path / "000001.jsonl").unlink()
        (tmp_path / ".000001.jsonl.abcd.tmp").write_text("half")  # as a killed run leaves it
        calls.clear()
        write_shards(tmp_path, lambda: range(100), work, spread, size=40)
        assert calls == list(range(40, 80))
        assert list(read_shards(tmp_path)) == [f"{2 * i}\n" for i in range(100)]
        write_shards(tmp_path, lambda: pytest.fail("is complete"), work, spread)
