"""A layer behind any encoder: saved before Normalize, opened again to the bit, here and by sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conftest import SENTENCES
from isoglot.encoders import encode, layout, load
from isoglot.encoders.base import identity
from isoglot.encoders.layers import Dense, Flow, WithLayer
from isoglot.errors import EncoderError


def flow(dim, seed=0):
    made = Flow(dim, levels=2, depth=2, width=4, seed=seed)
    made.train()(torch.randn(32, dim, generator=torch.Generator().manual_seed(seed)))
    return made.eval()


def kinds(folder):
    return [module.kind for module in layout.read_modules(folder)]


def test_a_flow_behind_a_transformer(toy_transformer, tmp_path):
    encoder = WithLayer(toy_transformer(pooling="first-last", prompt="q: ", normalizes=True), flow(16))
    encoder.save(tmp_path / "model")
    assert kinds(tmp_path / "model") == ["Transformer", "WeightedLayerPooling", "Pooling", "Flow", "Normalize"]
    opened = load(tmp_path / "model")
    assert (opened.prompt, opened.normalizes, opened.max_length) == ("q: ", True, encoder.max_length)
    vectors = encode(encoder, SENTENCES)
    np.testing.assert_array_equal(encode(opened, SENTENCES), vectors)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    raw = torch.from_numpy(encode(encoder.own, SENTENCES, normalize_embeddings=False))
    expected = encoder.layer(raw).detach().numpy()
    np.testing.assert_allclose(encode(opened, SENTENCES, normalize_embeddings=False), expected, atol=1e-5)
    assert encode(opened, SENTENCES, prompt="").tolist() != vectors.tolist()
    assert opened.prompt == "q: "


def test_sentence_transformers_imports_the_flow(toy_transformer, tmp_path):
    peer = pytest.importorskip("sentence_transformers")
    encoder = WithLayer(toy_transformer(normalizes=True), flow(16))
    encoder.save(tmp_path / "model")
    theirs = peer.SentenceTransformer(
        str(tmp_path / "model"), device="cpu", local_files_only=True, trust_remote_code=True
    )
    np.testing.assert_allclose(theirs.encode(SENTENCES), encode(encoder, SENTENCES), atol=1e-6)
    theirs.save(str(tmp_path / "theirs"))
    np.testing.assert_allclose(encode(load(tmp_path / "theirs"), SENTENCES), encode(encoder, SENTENCES), atol=1e-6)


def test_layers_in_a_row_keep_their_order(toy_transformer, toy_static, tmp_path):
    for number, encoder in enumerate((toy_transformer(), toy_static)):
        dim = encoder.dim
        stack = WithLayer(WithLayer(WithLayer(encoder, flow(dim)), Dense(dim, 5, activation="Identity")), flow(5))
        stack.save(tmp_path / str(number))
        assert [kind for kind in kinds(tmp_path / str(number)) if kind in ("Flow", "Dense")] == [
            "Flow",
            "Dense",
            "Flow",
        ]
        opened = load(tmp_path / str(number))
        np.testing.assert_allclose(encode(opened, SENTENCES), encode(stack, SENTENCES), atol=1e-6)


def test_the_key_of_kept_vectors_knows_layer_and_pooling(toy_transformer):
    cases = [WithLayer(toy_transformer(pooling=pooling), flow(16, s)) for pooling in ("cls", "mean") for s in (0, 1)]
    assert len({identity(encoder) for encoder in cases}) == 4


def test_a_layer_must_fit(toy_static, tmp_path):
    with pytest.raises(ValueError, match="takes 9 dimensions and the encoder gives 8"):
        WithLayer(toy_static, flow(9))
    WithLayer(toy_static, flow(8)).save(tmp_path / "model")
    place = next(module.folder for module in layout.read_modules(tmp_path / "model") if module.kind == "Flow")
    flow(9).save(place)
    with pytest.raises(EncoderError, match="1_Flow: the layer takes 9 dimensions and the encoder gives 8"):
        load(tmp_path / "model")
    (place / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="1_Flow"):
        load(tmp_path / "model")
