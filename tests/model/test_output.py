"""Vectors of a byte or a bit, against loops, and what `encode` does with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isoglot.model import find_ranges, quantize_vectors
from isoglot.model.backend import full_name

TABLES = st.tuples(st.integers(1, 6), st.integers(1, 20)).flatmap(
    lambda shape: arrays(np.float32, shape, elements=st.floats(-2, 2, width=32))
)


@given(TABLES)
def test_bits_are_signs_of_dimensions(table):
    unsigned, signed = (quantize_vectors(table, kind) for kind in ("ubinary", "binary"))
    assert unsigned.shape == (len(table), -(-table.shape[1] // 8))
    for row in range(len(table)):
        for dim in range(table.shape[1]):
            bit = int(unsigned[row, dim // 8]) >> (7 - dim % 8) & 1
            assert bit == (table[row, dim] > 0)
    assert signed.dtype == np.int8
    assert np.array_equal(signed.astype(int) + 128, unsigned)


@given(TABLES, TABLES)
def test_steps_lie_within_the_ranges(table, other):
    width = min(table.shape[1], other.shape[1])
    table, other = table[:, :width], other[:, :width]
    signed, unsigned = (quantize_vectors(table, kind, calibration=other) for kind in ("int8", "uint8"))
    lowest, highest = other.min(axis=0), other.max(axis=0)
    for row in range(len(table)):
        for dim in range(width):
            step = max(float(highest[dim] - lowest[dim]) / 255, 1e-30)
            if highest[dim] > lowest[dim] + 1e-3:
                expected = min(max((float(table[row, dim]) - float(lowest[dim])) / step, 0), 255)
                assert abs(int(unsigned[row, dim]) - expected) <= 1.01
    assert np.array_equal(signed.astype(int) + 128, unsigned)
    assert np.array_equal(signed, quantize_vectors(table, "int8", calibration=find_ranges(other)))


def test_equals_sentence_transformers():
    quantization = pytest.importorskip("sentence_transformers.util.quantization")
    table = np.random.default_rng(0).standard_normal((200, 24)).astype(np.float32)
    for kind in ("int8", "uint8", "binary", "ubinary"):
        theirs = quantization.quantize_embeddings(table, kind, calibration_embeddings=table)
        ours = quantize_vectors(table, kind, calibration=table)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def test_few_vectors_without_calibration_warn(caplog):
    """By the log, whose lines the command line prints without the place in the source."""
    quantize_vectors(np.eye(3), "int8", calibration=np.eye(3))
    assert not caplog.records
    quantize_vectors(np.eye(3), "int8")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "3 vectors, too few" in caplog.text


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"one of float32, int8.*got 'int4'.*precision="):
        quantize_vectors(np.eye(3), "int4")
    with pytest.raises(ValueError, match="row 1 of the vectors"):
        quantize_vectors([[0.0], [np.nan]], "binary")
    with pytest.raises(ValueError, match="calibration needs finite vectors"):
        find_ranges([[0.0, np.inf]])
    with pytest.raises(ValueError, match="of 3 dimensions, got 2"):
        quantize_vectors(np.eye(3), "int8", calibration=np.eye(2))


@pytest.mark.parametrize("name", ["binary", "ubinary", "uint8"])
def test_a_type_of_the_output_is_no_precision(name):
    with pytest.raises(ValueError, match=rf"output_precision='{name}'; precision is how they are computed"):
        full_name(name)


def test_encode_gives_any_type(toy_static):
    model, texts = toy_static, ["one", "two", "three cats"]
    vectors = model.encode(texts)
    assert np.array_equal(model.encode(texts, output_precision="ubinary"), np.packbits(vectors > 0, axis=1))
    others = ["a dog", "four birds", *texts]
    from_texts = model.encode(texts, output_precision="int8", calibration=others)
    assert np.array_equal(from_texts, quantize_vectors(vectors, "int8", calibration=model.encode(others)))
    assert model.encode("one", output_precision="binary").shape == (model.dim // 8,)
    with pytest.raises(ValueError, match="quantize_vectors"):
        model.encode(texts, output_precision="int8", output="vectors.npy")
    encoded: list[object] = []
    with pytest.raises(ValueError, match=f"of {model.dim} dimensions, got 2"):
        model.encode(texts, output_precision="int8", calibration=np.eye(2), progress=lambda *done: encoded.append(done))
    assert not encoded  # before anything is
