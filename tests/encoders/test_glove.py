"""GloVe from a small word list: an average of known words, split as its corpus was."""

from __future__ import annotations

import numpy as np
import pytest

from isoglot.encoders import converters, encode, load


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
