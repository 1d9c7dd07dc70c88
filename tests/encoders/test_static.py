"""The static encoder against a plain loop, its row-sparse gradients, and its folder."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import isoglot
from conftest import SENTENCES, build_tokenizer, save_and_open, save_and_open_elsewhere
from isoglot.encoders import StaticEncoder, load
from isoglot.model import encode


def in_a_loop(encoder, text):
    ids = encoder.tokenizer.encode(text, add_special_tokens=False).ids
    weights = torch.ones(len(encoder.table)) if encoder.token_weights is None else encoder.token_weights[:, 0]
    total = torch.zeros(encoder.dim)
    for token in ids:
        total = total + weights[token] * encoder.table[token]
    return total / max(1, len(ids))


@pytest.mark.parametrize("token_weights", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
def test_vectors_and_gradients_are_those_of_a_loop(kind, token_weights):
    encoder = StaticEncoder.create(build_tokenizer(kind), 8, token_weights=token_weights)
    texts = [*SENTENCES, "", SENTENCES[0]]
    vectors = encoder(encoder.tokenize(texts))
    expected = torch.stack([in_a_loop(encoder, text) for text in texts])
    torch.testing.assert_close(vectors, expected)
    target = torch.randn(vectors.shape, generator=torch.Generator().manual_seed(0))
    parameters = list(encoder.parameters())
    ours = torch.autograd.grad((vectors * target).sum(), parameters)
    loop = torch.autograd.grad((expected * target).sum(), parameters)
    for sparse, dense in zip(ours, loop, strict=True):
        assert sparse.is_sparse
        torch.testing.assert_close(sparse.to_dense(), dense)


def test_dense_gradients_are_the_same_numbers(toy_static):
    tokens = toy_static.tokenize(SENTENCES)
    grads = []
    for sparse in (True, False):
        toy_static.sparse = sparse
        grads.append(torch.autograd.grad(toy_static(tokens).square().sum(), list(toy_static.parameters())))
    for sparse_grad, dense_grad in zip(*grads, strict=True):
        assert not dense_grad.is_sparse
        torch.testing.assert_close(sparse_grad.to_dense(), dense_grad)


def test_the_seed_decides_the_rows():
    tables = [StaticEncoder.create(build_tokenizer(), 8, seed=seed).table for seed in (0, 0, 1)]
    assert torch.equal(tables[0], tables[1])
    assert not torch.equal(tables[0], tables[2])


def test_weights_are_folded_into_what_is_saved(toy_static, tmp_path):
    toy_static.prompt = "the "
    loaded = save_and_open(toy_static, tmp_path / "model", [*SENTENCES, ""])
    assert isinstance(loaded, StaticEncoder)
    assert loaded.token_weights is None
    assert (loaded.prompt, loaded.max_length, loaded.normalizes) == ("the ", toy_static.max_length, True)
    assert loaded.fingerprint == toy_static.fingerprint
    before, after = (encode(encoder, SENTENCES, normalize_embeddings=False) for encoder in (toy_static, loaded))
    np.testing.assert_allclose(before, after, atol=1e-6)
    assert load(tmp_path / "model", token_weights=True).token_weights.requires_grad  # it can be trained further
    save_and_open_elsewhere(toy_static, tmp_path / "model")


def test_a_table_too_short_for_the_tokenizer_is_refused(toy_tokenizer):
    with pytest.raises(ValueError, match=r"V at least the tokenizer's \d+ tokens, got shape \(3, 4\)"):
        StaticEncoder(torch.zeros(3, 4), toy_tokenizer)
    with pytest.raises(ValueError, match="max_length is 0; it must be at least 1"):
        StaticEncoder.create(toy_tokenizer, 4, max_length=0)


@pytest.mark.parametrize("engine", ["static", "torch"])
@pytest.mark.parametrize("extra", [("weights",), ("mapping",), ("weights", "mapping")])
def test_rows_that_tokens_share_and_weights_of_tokens_in_folders_of_model2vec(toy_static, extra, engine, tmp_path):
    peer = pytest.importorskip("sentence_transformers")
    toy_static.save(tmp_path / "model")
    rng, count = np.random.default_rng(0), len(toy_static.table)
    rows = toy_static.table.detach().numpy()[: count // 2 if "mapping" in extra else None]
    parts = {"weights": rng.random(count).astype(np.float32), "mapping": rng.integers(0, len(rows), count)}
    save_file(
        {"embeddings": rows.copy(), **{name: parts[name] for name in extra}}, tmp_path / "model/model.safetensors"
    )
    found = isoglot.load(tmp_path / "model", engine=engine).encode(SENTENCES)
    theirs = peer.SentenceTransformer(str(tmp_path / "model"), device="cpu", local_files_only=True)
    np.testing.assert_allclose(found, theirs.encode(SENTENCES), atol=1e-6)


@pytest.mark.parametrize("weighted", [True, False])
def test_an_accelerator_without_the_kernel_gives_the_same_rows(toy_static, weighted, monkeypatch):
    if not weighted:
        toy_static = StaticEncoder(toy_static.fold(), toy_static.tokenizer)
    expected = encode(toy_static, [*SENTENCES, ""])

    def lacking(*given, **options):
        raise NotImplementedError("not implemented for this device")

    monkeypatch.setattr("torch.nn.functional.embedding_bag", lacking)
    np.testing.assert_allclose(encode(toy_static, [*SENTENCES, ""]), expected, atol=1e-6)


@pytest.mark.parametrize("extra", ["dropout", "padding", "truncation"])
def test_the_tokenizer_that_an_encoder_is_made_with_does_nothing_but_tokenise(extra, toy_tokenizer):
    texts = ["the cat sat on the mat", "dogs"]
    expected = StaticEncoder.create(build_tokenizer(), 8).encode(texts)
    if extra == "dropout":
        toy_tokenizer.model.dropout = 0.9
    elif extra == "padding":
        toy_tokenizer.enable_padding(length=20)
    else:
        toy_tokenizer.enable_truncation(1)
    encoder = StaticEncoder.create(toy_tokenizer, 8)
    for _ in range(3):
        assert np.array_equal(encoder.encode(texts), expected)
