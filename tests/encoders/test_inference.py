"""Encoding: order, duplicates, company, modes, and what a caller gets for odd input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SENTENCES, build_transformer
from isoglot.encoders import encode
from isoglot.errors import EncoderError

ENCODER = build_transformer(pooling="mean", prompt="")


def one_by_one(encoder, texts):
    encoder.eval()
    with torch.no_grad():
        return torch.cat([encoder(encoder.tokenize([text])) for text in texts]).numpy()


@settings(max_examples=10, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=6), st.integers(1, 200))
def test_a_row_does_not_depend_on_its_company(texts, budget):
    vectors = encode(ENCODER, [*texts, *SENTENCES], batch_tokens=budget)
    np.testing.assert_allclose(vectors[: len(texts) + 2], one_by_one(ENCODER, [*texts, *SENTENCES[:2]]), atol=1e-6)


def test_static_rows_do_not_depend_on_their_company(toy_static):
    texts = [*SENTENCES, "", "the", *SENTENCES]
    for budget in (None, 1, 7):
        vectors = encode(toy_static, texts, batch_tokens=budget, normalize_embeddings=False)
        np.testing.assert_allclose(vectors, one_by_one(toy_static, texts), atol=1e-6)


def test_no_text_and_a_single_text():
    assert encode(ENCODER, []).shape == (0, ENCODER.dim)
    single = encode(ENCODER, SENTENCES[0])
    assert single.shape == (ENCODER.dim,)
    np.testing.assert_allclose(single, encode(ENCODER, SENTENCES)[0], atol=1e-6)
    assert encode(ENCODER, iter(SENTENCES)).shape == (len(SENTENCES), ENCODER.dim)


def test_repeated_sentences_are_encoded_once():
    rows = []
    handle = ENCODER.register_forward_hook(lambda module, inputs, output: rows.append(len(output)))
    vectors = encode(ENCODER, ["a", "b", "a", "a"])
    handle.remove()
    assert sum(rows) == 2
    np.testing.assert_array_equal(vectors[[0, 0]], vectors[[2, 3]])


def test_truncate_then_normalize():
    plain = encode(ENCODER, SENTENCES)
    short = encode(ENCODER, SENTENCES, truncate_dim=5, normalize_embeddings=True, dtype=np.float16)
    assert short.dtype == np.float16
    expected = plain[:, :5] / np.linalg.norm(plain[:, :5], axis=1, keepdims=True)
    np.testing.assert_allclose(short, expected, atol=1e-3)


def test_normalizing_is_the_encoders_choice_unless_said(toy_static, toy_transformer):
    assert np.allclose(np.linalg.norm(encode(toy_static, SENTENCES), axis=1), 1)
    assert not np.allclose(np.linalg.norm(encode(toy_static, SENTENCES, normalize_embeddings=False), axis=1), 1)
    assert not np.allclose(np.linalg.norm(encode(toy_transformer(), SENTENCES), axis=1), 1)
    assert (encode(toy_static, [""]) == 0).all()


def test_prompt_replaces_the_encoders_own_and_is_put_back(toy_transformer):
    encoder = toy_transformer(prompt="query: ")
    own, none, other = (encode(encoder, ["cat"], prompt=prompt) for prompt in (None, "", "the "))
    bare = toy_transformer()
    np.testing.assert_allclose(own, encode(bare, ["query: cat"]), atol=1e-6)
    np.testing.assert_allclose(none, encode(bare, ["cat"]), atol=1e-6)
    np.testing.assert_allclose(other, encode(bare, ["the cat"]), atol=1e-6)
    assert encoder.prompt == "query: "


def test_every_module_returns_to_its_mode(toy_transformer):
    encoder = toy_transformer().train()
    encoder.backbone.embeddings.eval()
    modes = [module.training for module in encoder.modules()]
    first, second = encode(encoder, SENTENCES), encode(encoder, SENTENCES)
    np.testing.assert_array_equal(first, second)  # no dropout
    assert [module.training for module in encoder.modules()] == modes
    assert all(weight.requires_grad for weight in encoder.backbone.encoder.parameters())


def test_progress_counts_distinct_sentences():
    seen = []
    encode(ENCODER, ["a", "bb", "a", "ccc"], batch_tokens=1, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_what_is_no_text_is_named():
    with pytest.raises(TypeError, match="text 1 is None"):
        encode(ENCODER, ["a", None])
    with pytest.raises(ValueError, match="between 1 and the encoder's 16"):
        encode(ENCODER, ["a"], truncate_dim=17)


def test_a_vector_that_is_not_finite_is_an_error(toy_static):
    with torch.no_grad():
        toy_static.table.fill_(float("nan"))
    with pytest.raises(EncoderError, match="'the cat' is not finite"):
        encode(toy_static, ["the cat"])


@pytest.mark.parametrize("odd", ["\0", "\ud800 half", "\u202eright to left", "👩‍👩‍👧", "x" * 1_000_000, "\n", " "])
def test_odd_text_gives_a_vector_and_leaves_its_company_alone(odd, toy_static):
    for encoder in (ENCODER, toy_static):
        vectors = encode(encoder, [odd, SENTENCES[0]])
        assert np.isfinite(vectors).all()
        np.testing.assert_allclose(vectors[1], encode(encoder, SENTENCES[0]), atol=1e-6)
