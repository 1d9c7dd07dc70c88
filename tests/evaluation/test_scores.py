"""Scores on disk: exactly the shape others read, the same bytes each time, and errors that say what is wrong."""

import json
import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import EvaluationError
from isoglot.core.score import Unit
from isoglot.evaluation.base import Detail, Metric, Score
from isoglot.evaluation.scores import Scores, read_results, write_results
from isoglot.evaluation.statistics import STATISTICS

names = st.text(st.characters(codec="utf-8"), max_size=8)
values, sizes = st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10**9)
scores_of_any_kind = st.builds(
    Score, names, names, names, values, sizes, st.lists(names, max_size=2).map(tuple),
    unit=st.sampled_from(get_args(Unit)), lower_is_better=st.booleans(), main=st.booleans(),
)  # fmt: skip
lists_of_scores = st.lists(scores_of_any_kind, max_size=4, unique_by=lambda s: (s.task, s.subset, s.metric))


def with_items(items, *, task="t", subset="s", metric="m", statistic="mean", item_set="", details=()):
    items = np.asarray(items, np.float32)
    more = {"items": items, "statistic": statistic, "item_set": item_set, "details": details}
    return Score(task, subset, metric, STATISTICS[statistic](items), len(items), **more)


def write_scores(path, scores, model="m"):
    path.write_text(json.dumps({"model": model, "scores": scores}), encoding="utf-8")


def test_the_shape_is_the_agreed_one(tmp_path):
    hits = np.ones(1000, np.float32)
    hits[:222] = 0
    scores = (
        Score("tatoeba", "kor-eng", "accuracy/xx-en", 0.778, 1000, items=hits),
        Score("tatoeba", "mean", "accuracy/xx-en", 0.778, 1, ("kor-eng",)),
        with_items([[0, 1], [1, 2]], task="sts", subset="eng", metric="spearman", statistic="spearman", item_set="u"),
        Metric("error/ratio", "error", lower_is_better=True, main=True).score("xsim/own", "deu-eng", 0.25, 4),
    )
    write_results(tmp_path, Scores(scores, "한국어", {"prompt": "query: ", "max_length": 128}))
    text = (tmp_path / "results.json").read_text(encoding="utf-8")
    first = {"task": "tatoeba", "subset": "kor-eng", "metric": "accuracy/xx-en", "value": 0.778, "n": 1000}
    first |= {"unit": "fraction"}
    mean = {**first, "subset": "mean", "n": 1, "over": ["kor-eng"]}
    sts = {"task": "sts", "subset": "eng", "metric": "spearman", "value": scores[2].value}
    sts |= {"n": 2, "statistic": "spearman", "item_set": "u", "unit": "fraction"}
    xsim = {"task": "xsim/own", "subset": "deu-eng", "metric": "error/ratio", "value": 0.25, "n": 4}
    xsim |= {"unit": "error", "lower_is_better": True, "main": True}
    assert json.loads(text) == {
        "model": "한국어",
        "settings": {"prompt": "query: ", "max_length": 128},
        "scores": [first, mean, sts, xsim],
    }
    assert "한국어" in text
    assert [score.item_set for score in read_results(tmp_path)] == ["", "", "u", ""]
    assert len(text.splitlines()) == 6  # one score per line


cells = st.integers(0, 1) | st.floats(-4, 4, width=32)


@given(
    lists_of_scores,
    names,
    st.dictionaries(names, st.none() | st.booleans() | st.integers() | names, max_size=2),
    st.data(),
)
def test_what_is_read_back_is_what_was_written(tmp_path_factory, scores, model, known, data):
    folder = tmp_path_factory.mktemp("r")
    for place, score in enumerate(scores):
        if data.draw(st.booleans(), label="with items and details"):
            items = data.draw(st.lists(cells, min_size=1, max_size=5))
            table = Detail("hits", ("a", "b"), ((score.task, 0.5), ("\u2028", 1)))
            where = {"task": score.task, "subset": score.subset, "metric": score.metric}
            scores[place] = with_items(items, **where, details=data.draw(st.sampled_from([(), (table,)])))
    results = Scores(scores, model, known)
    write_results(folder, results)
    first = (folder / "results.json").read_bytes()
    back = read_results(folder)
    assert back == read_results(folder / "results.json") == results
    for ours, theirs in zip(back, scores, strict=True):
        assert ours.details == theirs.details
        assert (ours.items is None) == (theirs.items is None)
        if ours.items is not None:
            assert ours.items.dtype == np.float32
            assert np.array_equal(ours.items, theirs.items)
    write_results(folder, back)
    assert (folder / "results.json").read_bytes() == first


def test_the_same_results_give_the_same_bytes_at_any_time(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    scores = (
        with_items(rng.integers(0, 2, 500), details=(Detail("map", ("x",), ((np.float32(0.1),),)),)),
        with_items(rng.normal(size=(40, 2)), metric="r", statistic="spearman"),
    )
    write_results(tmp_path / "a", Scores(scores, "m", {"seed": 1}))
    monkeypatch.setattr("time.time", lambda: 2e9)
    write_results(tmp_path / "b", Scores(scores, "m", {"seed": 1}))
    for name in ("results.json", "items.npz", "details.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_hits_are_stored_in_bytes_and_numpy_opens_them(tmp_path):
    halves = with_items([0, 0.5, 1], metric="accuracy/mean")
    write_results(tmp_path, Scores((with_items([0, 1, 1], metric="accuracy/xx-en"), halves), "m"))
    with np.load(tmp_path / "items.npz") as archive:
        assert archive["t/s/accuracy%2Fxx-en"].dtype == np.uint8
        assert archive["t/s/accuracy%2Fmean"].dtype == np.float32
        assert archive["t/s/accuracy%2Fmean"].tolist() == [0, 0.5, 1]


def test_files_of_an_earlier_evaluation_do_not_stay(tmp_path):
    detail = Detail("hits", ("a",), (("b",),))
    write_results(tmp_path, Scores((with_items([0, 1], details=(detail,)),), "m"))
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "items.npz", "details.jsonl"}
    write_results(tmp_path, Scores((Score("t", "s", "m", np.float64(0.5), np.int64(3)),), "m"))
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
    assert json.loads((tmp_path / "results.json").read_text()) == {"model": "m", "scores": [GOOD]}
    assert read_results(tmp_path)[0].items is None


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([Score("t", "s", "m", float("nan"), 3)], ValueError, "JSON"),
        ([Score("t", "s", "m", 0.5, 3, items=np.array([0, np.nan, 1], np.float32))], ValueError, "t s m: .* NaN"),
        ([with_items([1, 1, 0], details=(Detail("map", ("x",), ((float("nan"),),)),))], ValueError, "JSON"),
        ([with_items([0, 1]), with_items([1, 1])], EvaluationError, "'t s m'"),
    ],
)
def test_scores_that_cannot_be_kept_leave_the_old_files(tmp_path, scores, error, message):
    write_results(tmp_path, Scores((with_items([0, 1]),), "old"))
    with pytest.raises(error, match=message):
        write_results(tmp_path, Scores(scores, "new"))
    assert read_results(tmp_path).model == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["items.npz", "results.json"]


GOOD = {"task": "t", "subset": "s", "metric": "m", "value": 0.5, "n": 3, "unit": "fraction"}
WRONG_FIELDS = {
    **{"value": ("high", True, math.nan, 10**400), "n": (1.5, -1, 2**63), "unit": ("metre", 3), "over": ("deu",)},
    **{"statistic": ("median",), "lower_is_better": ("no",), "main": (1,)},
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", r"r.json:1: not JSON \(EOF"),
        ("[]", r"r.json: "),
        ('{"model": "m", "scores": {}}', r"r.json: scores is {}"),
        (json.dumps({"model": "m", "scores": [GOOD, 3]}), r"scores\[1\] is 3"),
        *(
            (json.dumps({"model": "m", "scores": [{**GOOD, field: value}]}), rf"scores\[0\].{field} is {value!r:.9}")
            for field, values in WRONG_FIELDS.items()
            for value in values
        ),
        (json.dumps({"model": "m", "scores": [{"task": "t"}]}), r"scores\[0\].subset is missing"),
        (json.dumps({"model": "m", "scores": [], "settings": {"a": {}}}), r"settings.a"),
        (json.dumps({"model": "m", "scores": [], "settings": {"a": 10**400}}), r"settings.a"),
        (json.dumps({"model": ["m"], "scores": []}), r"r.json: model is"),
        (json.dumps({"model": "m", "scores": [GOOD, GOOD]}), r"r.json: duplicate score t s m"),
        (json.dumps({"model": "m\ud800", "scores": []}), r"r.json:1: not JSON"),
        ("[" * 100_000, r"r.json:1: not JSON \(recursion limit exceeded"),
        (
            json.dumps({"model": "m", "scores": [{**GOOD, "subset": a, "over": [b]} for a, b in ("ab", "bc", "ca")]}),
            r"r.json: t m: averages over each other: ",
        ),
    ],
)
def test_a_file_that_is_no_results_file_is_named(tmp_path, content, message):
    (tmp_path / "r.json").write_text(content, encoding="utf-8")
    with pytest.raises(EvaluationError, match=message):
        read_results(tmp_path / "r.json")


def test_a_missing_or_binary_file_is_named(tmp_path):
    with pytest.raises(EvaluationError, match=r"none.json: cannot be read: No such file"):
        read_results(tmp_path / "none.json")
    with pytest.raises(EvaluationError, match=r"results.json: cannot be read: No such file"):
        read_results(tmp_path)
    with pytest.raises(EvaluationError, match="/dev/null: is not a regular file"):
        read_results("/dev/null")
    (tmp_path / "r.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(EvaluationError, match=r"r.json:1: not JSON"):
        read_results(tmp_path / "r.json")


def test_items_of_another_evaluation_are_noticed(tmp_path):
    write_results(tmp_path, Scores((with_items([0, 1, 1]),), "m"))
    for value, n in ((0.5, 3), (2 / 3, 4)):
        write_scores(tmp_path / "results.json", [{**GOOD, "value": value, "n": n}])
        with pytest.raises(EvaluationError, match=r"items.npz: the items of t s m "):
            read_results(tmp_path)
    write_scores(tmp_path / "results.json", [{**GOOD, "value": 2 / 3}])
    assert read_results(tmp_path)[0].items is not None
    write_scores(tmp_path / "other.json", [{**GOOD, "value": 0.25}])  # a file by another name has no neighbours
    assert read_results(tmp_path / "other.json") == [Score("t", "s", "m", 0.25, 3)]


DETAIL = {"task": "t", "subset": "s", "metric": "m", "kind": "mistakes", "columns": ["a", "b"], "rows": [["x", 1]]}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("items.npz", b"no zip file", r"items.npz: cannot be read as items"),
        ("items.npz", b"", r"items.npz: cannot be read as items"),
        ("details.jsonl", b'{"kind": "hits"}\n', r"details.jsonl:1: "),
        ("details.jsonl", b"\xff\n", r"details.jsonl:1: not a table of a score"),
        ("details.jsonl", b"\n{\n", r"details.jsonl:2: not a table of a score"),
        *(
            ("details.jsonl", json.dumps({**DETAIL, **wrong}).encode(), r"details.jsonl:1: not a table of a score")
            for wrong in [
                *({"task": ["t"]}, {"kind": 1}, {"columns": ["a", 2]}, {"columns": ["a"]}),
                *({"rows": [["x", cell]]} for cell in (None, 10**400, math.nan, "\ud800")),
            ]
        ),
    ],
)
def test_damaged_neighbours_are_named(tmp_path, file, content, message):
    write_results(tmp_path, Scores((Score("t", "s", "m", 0.7, 2),), "m"))
    (tmp_path / file).write_bytes(content)
    with pytest.raises(EvaluationError, match=message):
        read_results(tmp_path)


@pytest.mark.parametrize(
    ("statistic", "table"),
    [
        *((s, np.zeros(shape)) for s in ("mean", "spearman", "f1", "spearman/wmean") for shape in ((), (3, 4), (4,))),
        *(("mean", table) for table in (np.array(["a"] * 3), np.zeros(3, [("a", "f4")]), np.array([{}] * 3))),
    ],
    ids=lambda given: given if isinstance(given, str) else f"{given.dtype.kind} {given.shape}",
)
def test_items_of_another_shape_or_kind_are_named(tmp_path, statistic, table):
    write_scores(tmp_path / "results.json", [{**GOOD, "statistic": statistic}])
    np.savez(tmp_path / "items.npz", **{"t/s/m": table})
    with pytest.raises(EvaluationError, match=r"items.npz: "):
        read_results(tmp_path)


def test_items_cut_short_anywhere_are_noticed(tmp_path):
    rng = np.random.default_rng(0)
    write_results(tmp_path, Scores((with_items(rng.random(50)), with_items([0, 1], subset="b")), "m"))
    whole = (tmp_path / "items.npz").read_bytes()
    for size in range(0, len(whole), 7):
        (tmp_path / "items.npz").write_bytes(whole[:size])
        with pytest.raises(EvaluationError, match="cannot be read as items"):
            read_results(tmp_path)
