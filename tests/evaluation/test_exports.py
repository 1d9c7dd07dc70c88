"""Copies of hub sets on disk: found in the layouts they have, and never a part taken for the whole."""

from __future__ import annotations

import gzip
import json

import pytest

from isoglot.errors import EvaluationError
from isoglot.evaluation.exports import export, records


def put(path, rows=({"text": "a"},)):
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)
    return path


@pytest.mark.parametrize(
    "name",
    ["set/ko/test.jsonl", "mteb/set/ko/test.jsonl.gz", "set/data/ko/test.json", "set/test/ko.jsonl.gz"],
)
def test_a_subset_is_found_where_copies_have_it(tmp_path, name):
    path = put(tmp_path / name)
    assert export(tmp_path, ("other", "set"), split="test", subset="ko") == [path]
    assert export(tmp_path, ("set",), split="test", subset="de") == []
    assert list(records(path, ("text",), where="t ko")) == [{"text": "a"}]


def test_shards_are_read_in_order_and_a_missing_one_is_refused(tmp_path):
    shards = [put(tmp_path / "set" / "data" / f"test-0000{place}-of-00002.jsonl") for place in (1, 0)]
    assert export(tmp_path, ("set",), split="test") == shards[::-1]
    shards[0].unlink()
    with pytest.raises(EvaluationError, match="1 of 2 shards are there"):
        export(tmp_path, ("set",), split="test")


def test_what_is_wrong_is_named_with_its_line(tmp_path):
    path = put(tmp_path / "x.jsonl", [{"text": "a"}, {"label": 1}])
    with pytest.raises(EvaluationError, match=r"t ko: .*x.jsonl:2: lacks text"):
        list(records(path, ("text",), where="t ko"))
    path.write_text('{"text": "a"}\n{"text\n')
    with pytest.raises(EvaluationError, match=r"t ko: .*x.jsonl:2: is no JSON"):
        list(records(path, ("text",), where="t ko"))
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(EvaluationError, match=r"x.parquet: (cannot be read as Parquet|Parquet needs)"):
        list(records(tmp_path / "x.parquet", ("text",), where="t ko"))
