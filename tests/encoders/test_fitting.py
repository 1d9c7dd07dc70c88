"""Whitening and flows fitted to vectors: what they promise, and what can't be fitted."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import oracle
from conftest import SENTENCES, save_and_open, save_and_open_elsewhere
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder, TransformerEncoder
from isoglot.encoders.fitting import fit_flow, fit_whitening, mean_log_likelihood, moments, train_flow, whitening
from isoglot.encoders.layers import Flow
from isoglot.model import encode
from isoglot.model.card import Card

CORPUS = [f"{a} {b} {c}" for a in SENTENCES[:6] for b in SENTENCES[4:] for c in ("yes", "no", "x 1")]


def drawn(seed, rows=60, dim=6):
    """Vectors far from the origin with unequal and correlated dimensions, in float32 as encoders give them."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(rows, dim)) @ (rng.normal(size=(dim, dim)) * np.linspace(0.1, 3, dim))
    return (mixed + rng.normal(size=dim) * 5).astype(np.float32)


def apply(layer, rows):
    with torch.no_grad():
        return layer(torch.from_numpy(rows)).numpy()


@settings(max_examples=15)
@given(seed=st.integers(0, 999), cuts=st.lists(st.integers(0, 60), max_size=4))
def test_moments_are_the_loops_however_they_are_cut(seed, cuts):
    rows = drawn(seed)
    found = moments(np.split(rows, sorted(cuts)))
    mean, covariance = oracle.mean_and_covariance(rows.tolist())
    assert found.count == 60
    np.testing.assert_allclose(found.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(seed=st.integers(0, 999), dim=st.integers(1, 6))
def test_it_is_sklearns_whitening_up_to_sign(seed, dim):
    decomposition = pytest.importorskip("sklearn.decomposition")
    rows = drawn(seed)
    spread = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    assume(spread[-1] > 1e-3 * spread[0])  # fewer directions than that are an error of their own
    layer, kept = whitening(moments([rows]), dim)
    ours = apply(layer, rows)
    pca = decomposition.PCA(n_components=dim, whiten=True, svd_solver="full").fit(rows.astype(np.float64))
    # A direction of little variance is a difference of large numbers, each of which float32 rounds.
    rounding = np.finfo(np.float32).eps * np.abs(rows).max() / pca.explained_variance_[-1] ** 0.5
    np.testing.assert_allclose(ours.mean(0), 0, atol=max(2e-4, 2 * rounding))
    np.testing.assert_allclose(np.cov(ours.T).reshape(dim, dim), np.eye(dim), atol=2e-3)
    theirs = pca.transform(rows.astype(np.float64))
    np.testing.assert_allclose(ours * np.sign((ours * theirs).sum(0)), theirs, atol=2e-3)
    assert kept == pytest.approx(pca.explained_variance_ratio_.sum())
    weight = layer.linear.weight.detach().numpy()
    assert (np.take_along_axis(weight, np.abs(weight).argmax(1)[:, None], 1) > 0).all()


@pytest.mark.parametrize("dim", [None, 5])
def test_a_transformer_is_whitened_before_it_is_scaled(dim, toy_transformer, tmp_path):
    encoder = toy_transformer(pooling="first1-last", prompt="q: ", normalizes=True)
    encoder.card = Card(licence="mit", measure="accuracy")
    found = fit_whitening(encoder, CORPUS, dim=dim)
    raw = encode(encoder, CORPUS, normalize_embeddings=False).astype(np.float64)
    vectors = encode(found.encoder, CORPUS, normalize_embeddings=False)
    assert (found.sentences, vectors.shape[1]) == (len(CORPUS), dim or 15)  # layer norm takes one direction away
    assert dim or found.kept == pytest.approx(1)
    np.testing.assert_allclose(vectors.mean(0), 0, atol=1e-3)
    np.testing.assert_allclose(np.cov(vectors.T), np.eye(vectors.shape[1]), atol=1e-2)
    opened = save_and_open(found.encoder, tmp_path / "model", CORPUS)
    assert isinstance(opened, TransformerEncoder)
    assert (opened.card.licence, opened.card.measure) == ("mit", "")
    assert (opened.dim, opened.prompt, opened.normalizes) == (dim or 15, "q: ", True)
    centred = raw - raw.mean(0)
    assert np.linalg.norm(vectors) ** 2 == pytest.approx((len(CORPUS) - 1) * vectors.shape[1], rel=1e-2)
    assert np.abs(centred @ np.linalg.lstsq(centred, vectors, rcond=None)[0] - vectors).max() < 1e-2  # linear in raw
    save_and_open_elsewhere(found.encoder, tmp_path / "model", atol=1e-5)


def test_a_static_encoder_stays_one(toy_static, tmp_path):
    toy_static.normalizes, toy_static.prompts, toy_static.name = False, {"query": "q: "}, "mine"
    toy_static.card = Card(licence="mit", measure="accuracy")
    found = fit_whitening(toy_static, CORPUS, dim=5)
    assert isinstance(found.encoder, StaticEncoder)
    assert (found.encoder.prompts, found.encoder.name) == ({"query": "q: "}, "mine")
    assert found.encoder.card == Card(licence="mit", base="mine")
    vectors = encode(found.encoder, CORPUS)
    np.testing.assert_allclose(vectors.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(np.cov(vectors.T), np.eye(5), atol=1e-3)
    expected = apply(whitening(moments([encode(toy_static, CORPUS)]), 5)[0], encode(toy_static, SENTENCES))
    np.testing.assert_allclose(encode(found.encoder, SENTENCES), expected, atol=1e-4)
    assert not encode(found.encoder, "").any()
    save_and_open(found.encoder, tmp_path / "model", CORPUS)


@pytest.mark.parametrize("fit", [fit_whitening, fit_flow])
def test_transforms_are_fitted_in_float32_on_every_device(fit, toy_transformer, monkeypatch):
    asked = []
    settled = TransformerEncoder.settle

    def settle(self, precision, place=None):
        asked.append(precision)
        return settled(self, precision, place)

    monkeypatch.setattr(TransformerEncoder, "settle", settle)
    fit(toy_transformer(), CORPUS)
    assert set(asked) == {"float32"}


def test_repeated_sentences_count_as_often(toy_static):
    twice = [*CORPUS[:20], *CORPUS[:5] * 3]
    rows = encode(toy_static, twice, normalize_embeddings=False)
    vectors = encode(fit_whitening(toy_static, iter(twice), dim=3).encoder, twice, normalize_embeddings=False)
    np.testing.assert_allclose(vectors.mean(0), 0, atol=1e-4)
    assert np.abs(rows.mean(0) - encode(toy_static, CORPUS[:20], normalize_embeddings=False).mean(0)).max() > 1e-4


@pytest.mark.parametrize(
    ("fit", "texts", "settings", "message"),
    [
        (fit_whitening, CORPUS, {"dim": 9}, "dim must lie between 1 and the encoder's 8 dimensions, got 9"),
        (fit_whitening, [], {}, "at least 2 sentences, got 0"),
        (fit_whitening, ["one"], {}, "at least 2 sentences, got 1"),
        (fit_whitening, SENTENCES[:5], {}, "5 sentences vary in 4 of 8 directions, too few to whiten all"),
        (fit_whitening, SENTENCES[:5], {"dim": 5}, "too few to whiten 5"),
        (fit_whitening, ["the same"] * 9, {}, "9 sentences vary in 0 of 8"),
        (fit_flow, ["one"], {}, "at least 2 sentences, got 1"),
        (fit_flow, ["the same"] * 5, {}, "dimension 0 has one value in all 5 sentences"),
        (fit_flow, CORPUS, {"flow": Flow(9)}, "takes 9 dimensions and the encoder gives 8"),
        (fit_flow, CORPUS, {"lr": 0}, "lr is 0; it must be at least"),
        (fit_flow, CORPUS, {"batch_size": 1}, "batch_size is 1; it must be at least 2"),
    ],
)
def test_what_cannot_be_fitted(fit, texts, settings, message, toy_static):
    with pytest.raises(ValueError, match=message):
        fit(toy_static, texts, **settings)


def test_as_many_dimensions_as_the_text_varies_in_can_be_whitened(toy_static):
    assert fit_whitening(toy_static, SENTENCES[:5], dim=4).encoder.dim == 4


def bent(seed, rows):
    """Six dimensions, of which the last three are curved functions of the first three, with noise."""
    rng = np.random.default_rng(seed)
    free = rng.normal(size=(rows, 3))
    return np.hstack([free, np.abs(free) * 3 + rng.normal(size=(rows, 3)) * 0.3]).astype(np.float32)


def test_held_out_vectors_become_likelier():
    flow, held = Flow(6, levels=1, depth=2, width=8), bent(1, 300)
    before, after = train_flow(flow, bent(0, 600), epochs=5, lr=1e-2)
    untrained = Flow(6, levels=1, depth=2, width=8)
    untrained.train()(torch.from_numpy(bent(0, 600)))
    assert after > before + 0.5
    assert mean_log_likelihood(flow, held) > mean_log_likelihood(untrained, held) + 0.5


def test_the_encoder_is_frozen_and_the_seed_decides(toy_static):
    table = toy_static.table.detach().clone()
    raw = encode(toy_static, CORPUS, normalize_embeddings=False)

    def made(seed):
        flow = Flow(8, levels=2, depth=1, width=4, seed=seed)
        return fit_flow(toy_static, iter(CORPUS), flow=flow, seed=seed)

    first, again, other = made(0), made(0), made(1)
    vectors = encode(first.encoder, CORPUS, normalize_embeddings=False)
    assert (table == toy_static.table).all()
    assert first.sentences == len(CORPUS)
    assert first.after == again.after != other.after
    np.testing.assert_array_equal(vectors, encode(again.encoder, CORPUS, normalize_embeddings=False))
    assert first.after == pytest.approx(mean_log_likelihood(first.encoder.layer, raw))


def test_training_that_diverges_is_an_error():
    with pytest.raises(EncoderError, match="diverged"):
        train_flow(Flow(6), bent(0, 200), lr=1e6)
