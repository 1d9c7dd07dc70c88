"""Eight-bit integers: near the float rows, the same bytes again, and clear words where they cannot be had."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_transformer
from isoglot.core.errors import EncoderError, MissingExtraError
from isoglot.encoders import int8
from isoglot.encoders.int8 import quantize
from isoglot.model import encode

pytest.importorskip("onnx", reason="needs the extra `onnx`")
pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "distilbert"])
@pytest.mark.parametrize("pooling", ["mean", "cls", "first-last"])
def test_rows_are_near_those_in_float(family, pooling):
    encoder = build_transformer(family=family, pooling=pooling, prompt="query: ").train()
    modes = [module.training for module in encoder.modules()]
    small = quantize(encoder)
    assert [module.training for module in encoder.modules()] == modes
    full, rows = encode(encoder, SENTENCES), encode(small, SENTENCES)
    assert rows.shape == full.shape
    assert not np.array_equal(full, rows)
    cosine = (full * rows).sum(1) / np.linalg.norm(full, axis=1) / np.linalg.norm(rows, axis=1)
    assert cosine.min() > 0.98
    np.testing.assert_array_equal(rows, encode(encoder, SENTENCES, precision="int8"))
    np.testing.assert_allclose(encode(small, SENTENCES, prompt=""), encode(encoder, SENTENCES, prompt=""), atol=0.2)
    assert encoder.prompt == small.prompt == "query: "


def test_one_in_int8_travels_and_says_what_it_is(tmp_path):
    encoder = build_transformer()
    small = quantize(encoder)
    assert small.at("int8") is small
    assert small.fingerprint == encoder.fingerprint
    assert small.identity() != encoder.identity()
    again = pickle.loads(pickle.dumps(small))
    np.testing.assert_array_equal(encode(again, SENTENCES), encode(small, SENTENCES))
    assert encode(small, []).shape == (0, 16)
    with pytest.raises(EncoderError, match="no folder"):
        small.save(tmp_path / "model")


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r'pip install "isoglot\[torch\]"'):
        quantize(build_transformer())
    assert torch.is_grad_enabled()


@pytest.fixture
def exports(monkeypatch):
    """The exports that are made."""
    made = []
    build = int8.build_graph
    monkeypatch.setattr(int8, "build_graph", lambda *given, **settings: made.append(1) or build(*given, **settings))
    return made


@pytest.mark.slow
def test_an_encoder_is_exported_once_for_its_weights(exports, own_cache, caplog):
    encoder = build_transformer()
    with caplog.at_level("INFO", logger="isoglot"):
        first = encode(encoder, SENTENCES, precision="int8")
        encode(encoder.train(), SENTENCES, precision="int8")
    assert len(exports) == 1
    assert caplog.text.count("exporting the encoder to int8") == 1
    with torch.no_grad():
        encoder.backbone.encoder.layer[0].output.dense.weight.mul_(-1)
    changed = encode(encoder, SENTENCES, precision="int8")
    assert len(exports) == 2
    assert not np.array_equal(first, changed)
    assert len(list((own_cache / "int8").iterdir())) == 2


@pytest.mark.slow
def test_settings_are_those_of_the_call_and_not_of_the_export(exports):
    encoder = build_transformer()
    encode(encoder, SENTENCES, precision="int8")
    encoder.prompt = "query: "
    own, none = (encode(encoder, SENTENCES, precision="int8", prompt=prompt) for prompt in (None, ""))
    assert not np.array_equal(own, none)
    assert len(exports) == 2  # inputs are measured after the encoder's prompts, whichever were used before
    np.testing.assert_array_equal(encode(build_transformer(prompt="query: "), SENTENCES, precision="int8"), own)
    assert len(exports) == 2


@pytest.mark.slow
def test_another_process_finds_the_export_in_the_cache(exports, own_cache):
    first = encode(build_transformer(), SENTENCES, precision="int8")
    np.testing.assert_array_equal(encode(build_transformer(), SENTENCES, precision="int8"), first)
    assert len(exports) == 1
    (file,) = (own_cache / "int8").iterdir()
    file.write_bytes(file.read_bytes()[:-1000])
    np.testing.assert_array_equal(encode(build_transformer(), SENTENCES, precision="int8"), first)
    assert len(exports) == 2


@pytest.mark.slow
def test_threads_export_once(exports):
    encoder = build_transformer()
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: encode(encoder, SENTENCES, precision="int8"), range(4)))
    assert len(exports) == 1
    for other in rows[1:]:
        np.testing.assert_array_equal(rows[0], other)


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_is_no_fault(own_cache):
    own_cache.write_text("a file")
    assert encode(build_transformer(), SENTENCES, precision="int8").shape == (len(SENTENCES), 16)
