"""Vectors made elsewhere give the scores that the encoder itself gives, and a missing one is named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cases import by_text
from folders import numbered, tatoeba

from isoglot.errors import EvaluationError
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.precomputed import Precomputed, export_texts


def test_texts_out_vectors_in_the_same_scores(tmp_path):
    data = tatoeba(tmp_path / "data", {code: numbered(code, 30) for code in ("kor", "deu")})
    assert export_texts(tmp_path / "texts.jsonl", ["tatoeba"], data=data) == 90
    texts = [json.loads(line) for line in (tmp_path / "texts.jsonl").read_text(encoding="utf-8").split("\n") if line]
    assert len(texts) == len(set(texts)) == 90
    np.save(tmp_path / "vectors.npy", by_text(texts))
    function = Precomputed(tmp_path / "vectors.npy", tmp_path / "texts.jsonl")
    assert evaluate(function, ["tatoeba"], data=data) == evaluate(by_text, ["tatoeba"], data=data)


def test_a_text_may_hold_a_line_feed_in_json_and_plain_lines_will_do(tmp_path):
    lines = [json.dumps(text, ensure_ascii=False) + "\n" for text in ("a\nb", "\u2028", '"')]
    (tmp_path / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
    np.save(tmp_path / "v.npy", np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(
        Precomputed(tmp_path / "v.npy", tmp_path / "texts.jsonl")(['"', "a\nb"])[:, 0], [4, 0]
    )
    (tmp_path / "texts.txt").write_text("a\nb\nc\n", encoding="utf-8")
    look_up = Precomputed(tmp_path / "v.npy", tmp_path / "texts.txt")
    np.testing.assert_array_equal(look_up(["c", "a", "c"])[:, 0], [4, 0, 4])
    assert look_up([]).shape == (0, 2)


def test_what_does_not_fit_is_refused(tmp_path):
    (tmp_path / "t.txt").write_text("a\nb\n", encoding="utf-8")
    np.save(tmp_path / "v.npy", np.ones((3, 2)))
    with pytest.raises(EvaluationError, match=r"shape \(3, 2\) for the 2 lines"):
        Precomputed(tmp_path / "v.npy", tmp_path / "t.txt")
    np.save(tmp_path / "v.npy", np.ones((2, 2)))
    with pytest.raises(EvaluationError, match=r"lacks 1 of 2 texts, the first 'zz'"):
        Precomputed(tmp_path / "v.npy", tmp_path / "t.txt")(["a", "zz"])
    (tmp_path / "v.npy").write_bytes(b"no table")
    with pytest.raises(EvaluationError, match="is not a NumPy table"):
        Precomputed(tmp_path / "v.npy", tmp_path / "t.txt")
    np.save(tmp_path / "v.npy", np.ones((1, 2)))
    (tmp_path / "t.jsonl").write_text("{\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"t.jsonl:1: is not JSON"):
        Precomputed(tmp_path / "v.npy", tmp_path / "t.jsonl")


def test_files_of_other_kinds_and_texts_with_two_vectors_are_refused(tmp_path):
    vectors, texts = tmp_path / "v.npy", tmp_path / "t.jsonl"
    np.save(vectors, np.eye(2))
    texts.write_text('"a"\n{"text": "b"}\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"t.jsonl:2: contains a JSON dict"):
        Precomputed(vectors, texts)
    texts.write_text('"a"\n"a"\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"lines 1 and 2 are the same text, and their rows of .*v.npy differ"):
        Precomputed(vectors, texts)
    np.save(vectors, np.ones((2, 3)))
    assert Precomputed(vectors, texts)(["a"]).tolist() == [[1, 1, 1]]
    np.savez(tmp_path / "v.npz", np.eye(2))
    with pytest.raises(EvaluationError, match=r"v.npz: is a zip archive .*not a NumPy table"):
        Precomputed(tmp_path / "v.npz", texts)


@pytest.mark.parametrize("value", [np.nan, -np.inf, 1e300])
def test_the_row_that_is_not_finite_is_named(tmp_path, value):
    (tmp_path / "t.txt").write_text("a\nb\nc\n", encoding="utf-8")
    np.save(tmp_path / "v.npy", [[1, 2], [value, 1], [1, 1]])
    with pytest.raises(EvaluationError, match=r"v\.npy: row 1 contains NaN"):
        Precomputed(tmp_path / "v.npy", tmp_path / "t.txt")
