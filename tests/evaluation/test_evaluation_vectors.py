"""Each text is encoded once, and unusable vectors are rejected with the place they belong to."""

import numpy as np
import pytest
import torch

from isoglot.core.errors import EvaluationError
from isoglot.data.store import VectorStore
from isoglot.evaluation.vectors import Remembered, embed


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


def test_a_width_that_changes_is_refused():
    encode = Remembered(lambda texts: np.ones((len(texts), len(texts[0]))))
    encode(["ab"])
    with pytest.raises(EvaluationError, match="vectors of 2 values, then of 3"):
        encode(["abc"])


BAD = r"t kor, line 2: .*NaN or infinity for 'b+\.\.\.' \(1 of 2"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("wrap", [Remembered, lambda encode: encode])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        *((np.ones(shape), "t kor: .*shape .*for 2 texts") for shape in ((1, 2), (2,), (2, 2, 1), (2, 0))),
        ([[1.0], [1.0, 2.0]], "t kor: .*not a table of numbers"),
        (torch.ones(2, 3, requires_grad=True), "t kor: .*not a table of numbers"),
        (torch.ones(2, 3, dtype=torch.bfloat16), "t kor: .*not a table of numbers"),
        (np.array([["a"], ["b"]]), "t kor: .*contains <U1, not real numbers"),
        (np.ones((2, 3)) * 1j, "t kor: .*contains complex128, not real numbers"),
        *((np.array([[1.0], [bad]]), BAD) for bad in (np.nan, np.inf, 1e300)),
    ],
)
def test_vectors_that_cannot_be_used_are_rejected_with_their_place(answer, message, wrap):
    with pytest.raises(EvaluationError, match=message):
        embed(wrap(lambda texts: answer), ["a", "b" * 80], where="t kor")


def test_the_place_of_a_text_is_named_and_the_vectors_are_counted():
    rows = np.array([[1.0], [np.nan], [np.nan]])
    with pytest.raises(EvaluationError, match=r"^where: texts.tsv:31: .* for 'b' \(2 of 3 texts\)"):
        embed(lambda texts: rows, ["a", "b", "c"], where="where", place=["", "texts.tsv:31", ""].__getitem__)


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
