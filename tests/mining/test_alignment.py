"""Alignment: the path against plain loops, whole documents whose alignment is known, and the function and its files."""

import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from killed import tree
from search_loops import dot

import isoglot
from conftest import SENTENCES
from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.readers import read_tmx
from isoglot.mining import Alignment
from isoglot.mining.alignment import join_sentences
from isoglot.mining.path import Costs, Runs, align_runs, find_path, list_moves, make_band

# The method in plain loops


def cost_of(x, y, a, b, i, j):
    """The cost of a move of the `a` sources from i and the `b` targets from j."""
    (x_runs, x_lengths), (y_runs, y_lengths) = x, y
    source, target = x_runs[a][i], y_runs[b][j]
    far_source = [1 - dot(source, run) for run in y_runs[b]]
    far_target = [1 - dot(target, run) for run in x_runs[a]]
    mean = (sum(far_source) / len(far_source) + sum(far_target) / len(far_target)) / 2
    long, short = sum(x_lengths[i : i + a]) / sum(x_lengths), sum(y_lengths[j : j + b]) / sum(y_lengths)
    return a * b * ((1 - dot(source, target)) / max(mean, 1e-6) + abs(long - short) / (long + short))


def cheapest(x, y, most, skip):
    """The cost of the cheapest path, by all moves from all places."""
    count, end = len(x[1]), len(y[1])
    best = {(0, 0): 0.0}
    for i in range(count + 1):
        for j in range(end + 1):
            ways = [best[i - 1, j] + skip] if i else []
            ways += [best[i, j - 1] + skip] if j else []
            for a in range(1, min(i, most - 1) + 1):
                for b in range(1, min(j, most - a) + 1):
                    ways.append(best[i - a, j - b] + cost_of(x, y, a, b, i - a, j - b))
            best[i, j] = min(ways, default=0.0)
    return best[count, end]


def make_side(rng, count, longest, dim=4):
    """Random runs, as lists for the loops and as arrays."""
    lengths = rng.integers(1, 20, count).tolist()
    vectors = np.zeros((longest, count, dim), np.float32)
    runs = {}
    for a in range(1, longest + 1):
        rows = rng.standard_normal((max(count - a + 1, 0), dim))
        runs[a] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        vectors[a - 1, : len(rows)] = runs[a]
    return (runs, lengths), Runs.of(vectors, lengths)


@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 7),
    end=st.integers(1, 7),
    most=st.integers(2, 5),
    skip=st.sampled_from([0.0, 0.3, 0.6, 1.0]),
    width=st.integers(7, 9),
)
def test_the_path_costs_what_plain_loops_find(seed, count, end, most, skip, width):
    rng = np.random.default_rng(seed)
    (x, x_runs), (y, y_runs) = make_side(rng, count, most - 1), make_side(rng, end, most - 1)
    expected = cheapest(x, y, most, skip)
    band = make_band(np.array([(0, 0), (count, end)]), width)
    path, cost = find_path(Costs(x_runs, y_runs), list_moves(most), skip, band)
    assert math.isclose(cost, expected, rel_tol=1e-4, abs_tol=1e-4)
    path, scores = align_runs(x_runs, y_runs, most=most, skip=skip, width=width)
    assert (path[0].tolist(), path[-1].tolist()) == ([0, 0], [count, end])
    total = 0.0
    for (i, j), (a, b), score in zip(path, np.diff(path, axis=0), scores, strict=False):
        total += skip if 0 in (a, b) else cost_of(x, y, a, b, i, j)
        assert (a + b <= most and min(a, b) >= 1) or sorted((a, b)) == [0, 1]
        assert score == 0 if 0 in (a, b) else score <= 1.0001
    assert math.isclose(total, expected, rel_tol=1e-4, abs_tol=1e-4)


def long_document(count, rng):
    """Two sides of `count` meanings with noise, and their alignment: every 10th and the next are one sentence on one
    side, and 150 are missing on each side, in different places.
    """
    meanings, gaps = rng.standard_normal((count, 24)), (range(400, 550), range(count - 600, count - 450))
    sides, lengths, gold = ([], []), ([], []), set()
    for at in range(0, count, 10):
        for members in ([at, at + 1], *([one] for one in range(at + 2, at + 10))):
            before = [len(side) for side in sides]
            for number, (side, gap) in enumerate(zip(sides, gaps, strict=True)):
                joined = len(members) == 2 and number == at // 10 % 2
                rows = [meanings[members].sum(axis=0)] if joined else [*meanings[members]]
                side += [] if at in gap else rows
                lengths[number].extend([] if at in gap else [20] if joined else [10] * len(members))
            after = [len(side) for side in sides]
            if not any(at in gap for gap in gaps):
                gold.add((before[0], after[0], before[1], after[1]))
    runs = []
    for side, sizes in zip(sides, lengths, strict=True):
        rows = np.array(side) + 0.3 * rng.standard_normal((len(side), 24))
        vectors = np.zeros((3, *rows.shape), np.float32)
        for a in range(3):
            joined = sum(rows[k : len(rows) - a + k] for k in range(a + 1))
            vectors[a, : len(joined)] = joined / np.linalg.norm(joined, axis=1, keepdims=True)
        runs.append(Runs.of(vectors, sizes))
    return runs, gold


@pytest.mark.slow
def test_long_documents_are_aligned_within_the_band():
    (x, y), gold = long_document(3000, np.random.default_rng(0))
    path, scores = align_runs(x, y, most=4, skip=0.6, width=10)
    spans = zip(path[:-1].tolist(), path[1:].tolist(), scores.tolist(), strict=True)
    found = {(i, k, j, end) for (i, j), (k, end), score in spans if score}
    assert len(found & gold) > 0.97 * max(len(found), len(gold))
    assert {(k - i, end - j) for i, k, j, end in found & gold} == {(1, 1), (1, 2), (2, 1)}


# The function

JOINED = [f"{SENTENCES[0]} {SENTENCES[1]}", *SENTENCES[2:5], SENTENCES[6]]


def ids_of(alignments):
    return [(one.source_ids, one.target_ids) for one in alignments]


def test_lists(toy_static):
    messages = []
    found = isoglot.align(SENTENCES[:7], JOINED, model=toy_static, report=messages.append)
    assert ids_of(found) == [((0, 1), (0,)), ((2,), (1,)), ((3,), (2,)), ((4,), (3,)), ((6,), (4,))]
    assert found.left_out == ([5], [])
    assert found.counts == {"2-1": 1, "1-1": 4, "1-0": 1}
    assert messages[-1] == "alignments: 1 1-0, 4 1-1, 1 2-1"
    first = found[0]
    assert (first.source, first.target, first.kind) == (JOINED[0], JOINED[0], "2-1")
    assert (first.source_id, first.target_id) == ("0,1", "0")
    assert all(one.score == pytest.approx(1, abs=1e-5) for one in found)
    assert found[:2] == list(found)[:2]
    assert found.to_frame()["target_id"].tolist() == ["0", "1", "2", "3", "4"]
    assert repr(found).startswith("5 alignments\n1.000\t")
    assert isinstance(pickle.loads(pickle.dumps(first)), Alignment)
    assert pickle.loads(pickle.dumps(first)).source_ids == (0, 1)


def test_settings(toy_static):
    alone = isoglot.align(SENTENCES[:7], JOINED, model=toy_static, most=2)
    assert {one.kind for one in alone} == {"1-1"}
    assert len(isoglot.align(SENTENCES[:40], SENTENCES[:40], model=toy_static, most=30)) == len(SENTENCES[:40])
    assert len(isoglot.align(SENTENCES[:7], JOINED, model=toy_static, skip=0)) <= 5
    strict = isoglot.align(SENTENCES[:7], JOINED, model=toy_static, min_score=1.01)
    assert len(strict) == 0
    assert strict.left_out == (list(range(7)), list(range(5)))
    assert len(isoglot.align(SENTENCES[:1], SENTENCES[:1], model=toy_static)) == 1


def test_files_give_line_numbers(toy_static, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.eng").write_text("\n".join(["", *SENTENCES[:7]]) + "\n", encoding="utf-8")
    (tmp_path / "b.md").write_text("\n\n".join(JOINED) + "\n", encoding="utf-8")
    toy_static.save(tmp_path / "model")
    found = isoglot.align("a.eng", "b.md", model="model", output="out.tsv", write_ids=True)
    assert ids_of(found)[0] == ((2, 3), (1,))
    first = (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert first == ["1.000000", "2,3", "1", JOINED[0], JOINED[0]]
    with pytest.raises(OutputError, match="is the input"):
        found.save("a.eng", format="tsv")


@pytest.mark.parametrize("name", ["out.tsv", "out.csv", "out.jsonl", "out.tmx", "out.eng-deu"])
def test_formats_have_all_alignments(toy_static, tmp_path, name):
    settings = {"model": toy_static, "languages": "eng,deu", "write_ids": True}
    found = isoglot.align(SENTENCES[:7], JOINED, output=tmp_path / "out" / name, **settings)
    again = found.save(tmp_path / "again" / name, ids=True)
    assert tree(tmp_path / "out") == tree(tmp_path / "again")
    if name.endswith(".tmx"):
        assert [group.texts for group in read_tmx(again)] == [(one.source, one.target) for one in found]
    if name.endswith(".jsonl"):
        assert json.loads(again.read_text(encoding="utf-8").partition("\n")[0]) == {
            "eng": JOINED[0],
            "deu": JOINED[0],
            "score": 1.0,
            "source_id": "0,1",
            "target_id": "0",
        }


def test_running_text_is_split(toy_static, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("The cat sleeps. A dog sings!\nMy sister waits.\n", encoding="utf-8")
    found = isoglot.align(text, ["The cat sleeps. A dog sings!", "My sister waits."], model=toy_static, split=True)
    assert ids_of(found) == [((1,), (0,)), ((2,), (1,)), ((3,), (2,))]
    assert [one.source for one in found] == ["The cat sleeps.", "A dog sings!", "My sister waits."]
    mined = isoglot.mine(toy_static, text, ["My sister waits. Nobody sings."], split=True, languages="en,en")
    assert ("My sister waits.", "My sister waits.") in [pair[1:] for pair in mined]
    with pytest.raises(ValueError, match="split and ids"):
        isoglot.mine(toy_static, text, text, split=True, ids=True)


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["One.", "Two."], "One. Two."),
        (["一。", "二。"], "一。二。"),
        (["하나.", "둘."], "하나. 둘."),
        (["かな", "One.", "Two"], "かなOne. Two"),
    ],
)
def test_joined_sentences(texts, joined):
    assert join_sentences(texts) == joined


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m: isoglot.align([], ["a"], model=m), CorpusError, "source: contains no sentence"),
        (lambda m: isoglot.align(["a"], [" "], model=m), CorpusError, "target: contains no sentence"),
        (lambda m: isoglot.align(["a"], [1], model=m), TypeError, r"target\[0\] is 1"),
        (lambda m: isoglot.align(["a"], "none.txt", model=m), CorpusError, "none.txt: no such file"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, most=1), ValueError, "most is 1"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, skip=math.inf), ValueError, "skip is infinite"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, format="docx"), ValueError, "format is 'docx'"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, output="x.tmx"), ValueError, "tmx needs the languages"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, output="x.docx"), OutputError, "format .*; a name such"),
        (lambda m: isoglot.align(["a"], ["b"], model=m, languages="eng"), ValueError, "languages names 1"),
    ],
)
def test_wrong_arguments(toy_static, tmp_path, monkeypatch, call, error, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call(toy_static)
    assert not [*tmp_path.iterdir()]


def test_equal_documents_are_aligned_sentence_by_sentence():
    """Also the last run of several sentences, which is the only one of its length."""
    model, texts = isoglot.load("isoglot-static"), ["One two.", "Three four.", "Five six.", "Seven.", "Eight.", "Ten."]
    for count in range(1, 7):
        found = isoglot.align(texts[:count], texts[:count], model=model)
        assert [(one.kind, one.score) for one in found] == [("1-1", 1)] * count
