"""Each text is encoded once, and unusable vectors are rejected with the place they belong to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isoglot.errors import EvaluationError
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.vectors import Remembered, embed
from isoglot.store import VectorStore


def lengths(texts):
    return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)


def test_every_text_is_encoded_once_and_rows_stay_in_order():
    asked = []
    encode = Remembered(lambda texts: asked.extend(texts) or lengths(texts))
    np.testing.assert_array_equal(encode(["aa", "b", "aa"])[:, 0], [2, 1, 2])
    np.testing.assert_array_equal(encode(["ccc", "b"])[:, 0], [3, 1])
    assert asked == ["aa", "b", "ccc"]
    assert encode([]).shape == (0, 2)


def test_an_encoder_may_reuse_its_buffer():
    buffer = np.zeros((1, 2))

    def encode(texts):
        buffer[:] = len(texts[0])
        return buffer

    remembered = Remembered(encode)
    first = remembered(["a"])
    remembered(["bbbb"])
    np.testing.assert_array_equal(remembered(["a"]), first)


@pytest.mark.parametrize("answer", [np.ones((1, 2)), np.ones(2), np.ones((2, 2, 1))])
@pytest.mark.parametrize("wrap", [Remembered, lambda encode: encode])
def test_a_wrong_number_of_rows_is_named(answer, wrap):
    with pytest.raises(EvaluationError, match=r"tatoeba kor-eng, language kor: .*for 2 texts"):
        embed(wrap(lambda texts: answer), ["a", "b"], where="tatoeba kor-eng, language kor")


def test_a_width_that_changes_is_refused():
    encode = Remembered(lambda texts: np.ones((len(texts), len(texts[0]))))
    encode(["ab"])
    with pytest.raises(EvaluationError, match="vectors of 2 values, then of 3"):
        encode(["abc"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_named_with_its_line(bad):
    vectors = np.ones((3, 2))
    vectors[1, 0] = bad
    with pytest.raises(EvaluationError, match=r"where, line 2: .*NaN or infinity for 'b+\.\.\.' \(1 of 3"):
        embed(lambda texts: vectors, ["a", "b" * 80, "c"], where="where")


def test_a_vector_that_is_not_finite_is_named_with_the_place_of_its_text():
    vectors = np.ones((3, 2))
    vectors[1:, 0] = np.nan
    with pytest.raises(EvaluationError, match=r"^where: texts.tsv:31: the encoder gave .* for 'b' \(2 of 3 texts\)"):
        embed(lambda texts: vectors, ["a", "b", "c"], where="where", place=["", "texts.tsv:31", ""].__getitem__)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[1.0], [1.0, 2.0]], "not a table of numbers"),
        (torch.ones(2, 3, requires_grad=True), "not a table of numbers"),
        (torch.ones(2, 3, dtype=torch.bfloat16), "not a table of numbers"),
        (np.array([["a"], ["b"]]), "contains <U1, not real numbers"),
        (np.ones((2, 3)) * 1j, "contains complex128, not real numbers"),
        (np.ones((2, 0)), "shape .2, 0. for 2 texts"),
    ],
    ids=["ragged", "gradient", "bfloat16", "strings", "complex", "no width"],
)
def test_what_is_no_table_of_real_numbers_is_refused(answer, message):
    with pytest.raises(EvaluationError, match=rf"t kor: .*{message}"):
        embed(lambda texts: answer, ["a", "b"], where="t kor")


@pytest.mark.filterwarnings("error")
def test_what_does_not_fit_float32_is_infinite_without_a_warning():
    with pytest.raises(EvaluationError, match=r"line 2: .*NaN or infinity"):
        embed(lambda texts: np.array([[1.0], [1e300]]), ["a", "b"], where="t kor")


def test_nothing_is_encoded_a_second_time(tmp_path):
    asked = []

    def encode(texts):
        asked.extend(texts)
        return lengths(texts)

    first = Remembered(encode, store=VectorStore(tmp_path))(["aa", "b"])
    second = Remembered(encode, store=VectorStore(tmp_path))(["b", "ccc", "aa"])
    assert asked == ["aa", "b", "ccc"]
    np.testing.assert_array_equal(second[[2, 0]], first)


def test_vectors_that_are_not_finite_are_not_kept(tmp_path):
    Remembered(lambda texts: np.full((len(texts), 2), np.nan), store=VectorStore(tmp_path))(["a"])
    assert len(VectorStore(tmp_path)) == 0


@pytest.mark.parametrize("name", ["00000.keys.npy", "00000.vectors.npy", "vectors.npy"])
def test_files_of_other_versions_count_as_absent(tmp_path, name):
    np.save(tmp_path / name, np.ones((3, 2), np.float32))
    vectors = Remembered(lengths, store=VectorStore(tmp_path))(["a", "bb"])
    np.testing.assert_array_equal(vectors, lengths(["a", "bb"]))


def test_a_function_has_no_cache(tmp_path):
    with pytest.raises(EvaluationError, match="a cache needs an encoder"):
        evaluate(lambda texts: np.ones((len(texts), 2)), ["tatoeba"], data=tmp_path, cache=tmp_path)
