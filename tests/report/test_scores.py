"""results.json: exactly the shape others read, the same bytes each time, and errors that say what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.errors import EvaluationError
from isoglot.evaluation.base import Score
from isoglot.report.scores import read_results, write_results

names = st.text(st.characters(codec="utf-8"), max_size=8)
scores_of_any_kind = st.builds(
    Score, names, names, names, st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9)
)


def test_the_shape_is_the_agreed_one(tmp_path):
    items = np.ones(1000, np.float32)
    scores = [Score("tatoeba", "kor-eng", "accuracy/xx-en", 0.778, 1000, items)]
    write_results(tmp_path / "results.json", "한국어", scores=scores)
    text = (tmp_path / "results.json").read_text(encoding="utf-8")
    record = {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000}
    assert json.loads(text) == {"model": "한국어", "scores": [record]}
    assert "한국어" in text


@settings(deadline=None, max_examples=25)  # each example waits for the disk
@given(st.lists(scores_of_any_kind, max_size=4), names)
def test_what_is_read_back_is_what_was_written(tmp_path_factory, scores, model):
    path = tmp_path_factory.mktemp("r") / "results.json"
    write_results(path, model, scores=scores)
    first = path.read_bytes()
    assert (read_results(path).model, list(read_results(path).scores)) == (model, scores)
    write_results(path, model, scores=read_results(path).scores)
    assert path.read_bytes() == first


def test_numbers_of_numpy_are_written_as_numbers(tmp_path):
    write_results(tmp_path / "r.json", "m", scores=[Score("t", "s", "m", np.float64(0.5), np.int64(3))])
    assert read_results(tmp_path / "r.json").scores[0].n == 3


def test_a_value_that_json_lacks_leaves_the_old_file(tmp_path):
    write_results(tmp_path / "r.json", "old", scores=[])
    with pytest.raises(ValueError, match="JSON"):
        write_results(tmp_path / "r.json", "new", scores=[Score("t", "s", "m", float("nan"), 3)])
    assert read_results(tmp_path / "r.json").model == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


GOOD = {"task": "t", "subset": "s", "metric": "m", "value": 0.5, "n": 3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"r.json:1: is no JSON"),
        ("[]", r"holds no 'model' with 'scores'"),
        ('{"model": "m", "scores": {}}', r"holds no 'model' with 'scores'"),
        (json.dumps({"model": "m", "scores": [GOOD, 3]}), r"scores\[1\] is 3"),
        (
            json.dumps({"model": "m", "scores": [{**GOOD, "value": "high"}]}),
            r"scores\[0\]: 'value' has the value 'high'",
        ),
        (json.dumps({"model": "m", "scores": [{**GOOD, "value": True}]}), r"'value' has the value True"),
        (json.dumps({"model": "m", "scores": [{**GOOD, "value": float("nan")}]}), r"'value' has the value nan"),
        (json.dumps({"model": "m", "scores": [{**GOOD, "n": 1.5}]}), r"'n' has the value 1.5; it must be a whole"),
        (json.dumps({"model": "m", "scores": [{"task": "t"}]}), r"scores\[0\]: 'subset' is missing"),
    ],
)
def test_a_file_that_is_no_results_file_is_named(tmp_path, content, message):
    (tmp_path / "r.json").write_text(content, encoding="utf-8")
    with pytest.raises(EvaluationError, match=message):
        read_results(tmp_path / "r.json")


def test_a_missing_or_binary_file_is_named(tmp_path):
    with pytest.raises(EvaluationError, match=r"none.json: cannot be read: No such file"):
        read_results(tmp_path / "none.json")
    (tmp_path / "r.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvaluationError, match="not UTF-8"):
        read_results(tmp_path / "r.json")
