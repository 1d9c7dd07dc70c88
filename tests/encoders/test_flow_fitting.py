"""Fitting a flow: held-out vectors become likelier, the same seed gives the same flow, bad text is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conftest import SENTENCES
from isoglot.encoders import encode
from isoglot.encoders.fitting import Training, fit_flow, mean_log_likelihood, train_flow
from isoglot.encoders.layers import Flow
from isoglot.errors import EncoderError

CORPUS = [f"{a} {b}" for a in SENTENCES for b in SENTENCES]


def bent(seed, rows):
    """Six dimensions, of which the last three are curved functions of the first three, with noise."""
    rng = np.random.default_rng(seed)
    free = rng.normal(size=(rows, 3))
    return np.hstack([free, np.abs(free) * 3 + rng.normal(size=(rows, 3)) * 0.3]).astype(np.float32)


def test_held_out_vectors_become_likelier():
    flow, held = Flow(6, levels=1, depth=2, width=8), bent(1, 300)
    before, after = train_flow(flow, bent(0, 600), Training(epochs=5, lr=1e-2))
    untrained = Flow(6, levels=1, depth=2, width=8)
    untrained.train()(torch.from_numpy(bent(0, 600)))
    assert after > before + 0.5
    assert mean_log_likelihood(flow, held) > mean_log_likelihood(untrained, held) + 0.5


def test_the_encoder_is_frozen_and_the_seed_decides(toy_static):
    table = toy_static.table.detach().clone()
    raw = encode(toy_static, CORPUS, normalize_embeddings=False)

    def made(seed):
        flow = Flow(8, levels=2, depth=1, width=4, seed=seed)
        return fit_flow(toy_static, iter(CORPUS), flow=flow, training=Training(seed=seed))

    first, again, other = made(0), made(0), made(1)
    vectors = encode(first.encoder, CORPUS, normalize_embeddings=False)
    assert (table == toy_static.table).all()
    assert first.sentences == len(CORPUS)
    assert first.after == again.after != other.after
    np.testing.assert_array_equal(vectors, encode(again.encoder, CORPUS, normalize_embeddings=False))
    assert first.after == pytest.approx(mean_log_likelihood(first.encoder.layer, raw))


def test_what_cannot_be_fitted(toy_static):
    with pytest.raises(ValueError, match="at least 2 sentences, got 1"):
        fit_flow(toy_static, ["one"])
    with pytest.raises(ValueError, match="dimension 0 has one value in all 5 sentences"):
        fit_flow(toy_static, ["the same"] * 5)
    with pytest.raises(ValueError, match="takes 9 dimensions and the encoder gives 8"):
        fit_flow(toy_static, CORPUS, flow=Flow(9))
    with pytest.raises(ValueError, match="batch at least 2"):
        Training(batch=1)
    with pytest.raises(EncoderError, match="diverged"):
        train_flow(Flow(6), bent(0, 200), Training(lr=1e6))
