"""Vectors made elsewhere give the scores that the encoder itself gives, and a missing one is named."""

import json

import numpy as np
import pytest

from isoglot.core.errors import EvaluationError
from isoglot.evaluation.precomputed import Precomputed


def test_a_text_may_hold_a_line_feed_in_json_and_plain_lines_will_do(tmp_path):
    lines = [json.dumps(text, ensure_ascii=False) + "\n" for text in ("a\nb", "\u2028", '"')]
    (tmp_path / "texts.jsonl").write_text("".join(lines), encoding="utf-8")
    np.save(tmp_path / "v.npy", np.arange(6.0).reshape(3, 2))
    look_up = Precomputed(tmp_path / "v.npy", tmp_path / "texts.jsonl")
    np.testing.assert_array_equal(look_up(['"', "a\nb"])[:, 0], [4, 0])
    (tmp_path / "texts.txt").write_text("a\nb\nc\n", encoding="utf-8")
    look_up = Precomputed(tmp_path / "v.npy", tmp_path / "texts.txt")
    np.testing.assert_array_equal(look_up(["c", "a", "c"])[:, 0], [4, 0, 4])
    assert look_up([]).shape == (0, 2)


TWO = np.eye(2)


@pytest.mark.parametrize(
    ("vectors", "texts", "message"),
    [
        (np.ones((3, 2)), "a\nb\n", r"shape \(3, 2\) for 2 lines"),
        (TWO, "a\nb\n", "lacks 1 of 2 texts, the first 'zz'"),
        (b"no table", "a\nb\n", "is not a NumPy table"),
        (TWO, "{\n", r"t\.jsonl:1: is not JSON"),
        (TWO, '"a"\n{"text": "b"}\n', r"t\.jsonl:2: contains a JSON dict"),
        (TWO, '"a"\n"a"\n', r"lines 1 and 2 are equal, and their rows of .*v\.npy differ"),
        *(([[1, 2], [bad, 1]], "a\nb\n", r"v\.npy: row 1 contains NaN") for bad in (np.nan, -np.inf, 1e300)),
    ],
)
def test_what_does_not_fit_is_rejected(tmp_path, vectors, texts, message):
    table, lines = tmp_path / "v.npy", tmp_path / ("t.txt" if texts == "a\nb\n" else "t.jsonl")
    table.write_bytes(vectors) if isinstance(vectors, bytes) else np.save(table, vectors)
    lines.write_text(texts, encoding="utf-8")
    with pytest.raises(EvaluationError, match=message):
        Precomputed(table, lines)(["a", "zz"])


def test_equal_texts_may_have_equal_vectors_and_an_archive_is_no_table(tmp_path):
    (tmp_path / "t.jsonl").write_text('"a"\n"a"\n', encoding="utf-8")
    np.save(tmp_path / "v.npy", np.ones((2, 3)))
    assert Precomputed(tmp_path / "v.npy", tmp_path / "t.jsonl")(["a"]).tolist() == [[1, 1, 1]]
    np.savez(tmp_path / "v.npz", TWO)
    with pytest.raises(EvaluationError, match=r"v\.npz: is a zip archive .*not a NumPy table"):
        Precomputed(tmp_path / "v.npz", tmp_path / "t.jsonl")
