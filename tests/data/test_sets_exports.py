"""Copies of hub sets on disk: found in the layouts they have, and never a part taken for the whole."""

import json
from contextlib import nullcontext

import pytest
from folders import write

from isoglot.core.errors import CorpusError
from isoglot.data.sets.exports import export, records, subsets


def put(path, rows=({"text": "a"},)):
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize(
    "name", ["set/ko/test.jsonl", "mteb/set/ko/test.jsonl.gz", "set/data/ko/test.json", "set/test/ko.jsonl.gz"]
)
def test_a_subset_is_found_where_copies_have_it(tmp_path, name):
    path = put(tmp_path / name)
    assert export(tmp_path, ("other", "set"), split="test", subset="ko") == (path,)
    assert export(tmp_path, ("set",), split="test", subset="de") == ()
    assert list(records([path], ("text",))) == [(f"{path}:1", {"text": "a"})]


TWO = [f"data/test-0000{number}-of-00002.jsonl" for number in (0, 1)]
OTHERS = ["test-00000-of-00002-0f2a1b9c8d7e6f50.jsonl", "test-00001-of-00002-3f2a1b9c8d7e6f50.jsonl"]  # fingerprints


@pytest.mark.parametrize(
    ("files", "whole", "message"),
    [
        (TWO, TWO, ""),
        (TWO[:1], [], "00000-of-00002.jsonl: of its 2 shards, numbered from 0, 1 is missing"),
        ([TWO[0], "data/test.jsonl"], ["data/test.jsonl"], ""),
        (OTHERS, OTHERS, ""),
        (OTHERS[1:], [], "of its 2 shards, numbered from 0, 0 is missing"),
        ([*OTHERS, "test-00000-of-00001.jsonl"], [], "0 appears twice"),
        *(([f"test-{number}{end}.jsonl" for number in range(12)],) * 2 + ("",) for end in ("", "-of-12")),
    ],
)
def test_shards_are_read_in_order_and_none_may_be_missing_or_of_another_export(tmp_path, files, whole, message):
    for name in reversed(files):
        put(tmp_path / "set" / name)
    with pytest.raises(CorpusError, match=message) if message else nullcontext():
        assert export(tmp_path, ("set",), split="test") == tuple(tmp_path / "set" / name for name in whole)


def test_what_is_wrong_is_named_with_its_line(tmp_path):
    for name, content, problem in (
        ("x.jsonl", '{"text": "a"}\n{"label": 1}\n', "x.jsonl:2: lacks text"),
        ("x.jsonl", '{"text": "a"}\n{"text\n', "x.jsonl:2: is not JSON"),
        ("x.jsonl", '{"text": "a \\ud83d b"}\n', "x.jsonl:1: contains .* half of a surrogate pair"),
        ("x.parquet", "no parquet", "x.parquet: cannot be read as Parquet"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(CorpusError, match=problem):
            list(records([tmp_path / name], ("text",)))


def test_the_cache_of_the_hub_is_read_and_two_revisions_are_refused(tmp_path):
    cache = tmp_path / "datasets--mteb--set/snapshots"
    path = put(cache / "aa" / "test" / "ko.jsonl")
    assert export(tmp_path, ("set",), split="test", subset="ko") == (path,)
    assert export(tmp_path, ("other",), split="test", subset="ko") == ()
    put(tmp_path / "datasets--somebody--set/snapshots/cc/test/ko.jsonl")
    assert export(tmp_path, ("set",), split="test", subset="ko") == (path,)
    put(cache / "bb" / "test" / "de.jsonl")  # parts of the set from one, parts from the other
    with pytest.raises(CorpusError, match=r"snapshots: 2 revisions .* into a folder set"):
        export(tmp_path, ("set",), split="test", subset="ko")
    (tmp_path / "datasets--mteb--set/refs").mkdir()
    (tmp_path / "datasets--mteb--set/refs/main").write_text("aa\n")
    assert export(tmp_path, ("set",), split="test", subset="ko") == (path,)
    (tmp_path / "datasets--mteb--set/refs/main").write_text("of no snapshot")
    with pytest.raises(CorpusError, match="2 revisions"):
        subsets(tmp_path, ("set",), split="test", pattern="[a-z]{2}")
    copied = put(tmp_path / "set" / "test" / "ko.jsonl")  # as the message says
    assert export(tmp_path, ("set",), split="test", subset="ko") == (copied,)
    assert subsets(tmp_path, ("set",), split="test", pattern="[a-z]{2}") == ("ko",)
    assert export(tmp_path, ("set",), split="test", subset="de") == ()  # no mixture of two copies


def test_a_snapshot_without_the_split_is_no_revision_of_it(tmp_path):
    cache = tmp_path / "datasets--mteb--set/snapshots"
    path = put(cache / "bb" / "data/test-00000-of-00001.jsonl")
    (cache / "aa").mkdir()
    (cache / "aa" / "README.md").write_text("of the set\n")
    put(cache / "aa" / "data/train-00000-of-00001.jsonl")
    assert export(tmp_path, ("set",), split="test") == (path,)


@pytest.mark.parametrize("name", ["{}/test.jsonl", "test/{}.jsonl.gz", "data/{}/test-00000-of-00001.jsonl"])
def test_subsets_are_told_by_their_names(tmp_path, name):
    for code in ("kor-eng", "deu-eng", "readme"):
        put(tmp_path / "set" / name.format(code))
    assert subsets(tmp_path, ("set",), split="test", pattern="[a-z]{3}-eng") == ("deu-eng", "kor-eng")
    assert subsets(tmp_path, ("set",), split="train", pattern="[a-z]{3}-eng") == ()
