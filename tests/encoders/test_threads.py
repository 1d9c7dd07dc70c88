"""Threads that share an encoder: each has the vectors it asked for, and nothing in the encoder changes."""

from __future__ import annotations

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.encoders import StaticEncoder, encode
from isoglot.encoders.base import evaluating
from isoglot.encoders.layers import Dense, WithLayer
from isoglot.encoders.towers import Towers

TEXTS = [f"{text} {number}" for number in range(6) for text in SENTENCES]
PROMPTS = ["", "query: ", "The cat ", "passage: ", "A dog ", "1 22 ", "Die Katze ", "numbers "]
ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))


def static() -> StaticEncoder:
    return StaticEncoder.create(build_tokenizer(), 16, seed=1).eval()


ENCODERS = {
    "transformer": lambda: build_transformer(prompt="own: "),
    "first-last": lambda: build_transformer(pooling="first-last", prompt="own: ").eval(),
    "static": static,
    "layer": lambda: WithLayer(build_transformer(), Dense(16, 5)),
    "towers": lambda: Towers({"a": build_transformer(prompt="own: "), "b": static()}, {"a": ["LATIN"]}),
}


def state(encoder):
    """All that encoding might change."""
    backends = [
        getattr(module.tokenizer, "backend_tokenizer", module.tokenizer)
        for module in encoder.modules()
        if hasattr(module, "tokenizer")
    ]
    own = [(module.training, getattr(module, "prompt", None)) for module in encoder.modules()]
    return own, [(backend.truncation, backend.padding) for backend in backends], torch.get_num_threads()


def together(encoder, count, settings):
    """The rows of `count` threads that begin at once, with a prompt each."""
    begin = Barrier(count)

    def work(prompt):
        begin.wait()
        return [encode(encoder, TEXTS, prompt=prompt, batch_tokens=60, **settings) for _ in range(2)]

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(work, PROMPTS[:count]))


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        *((kind, {}) for kind in ENCODERS),
        ("transformer", {"normalize_embeddings": True, "truncate_dim": 5}),
        ("transformer", {"precision": "bf16", "normalize_embeddings": True}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value) or "plain",
)
def test_each_thread_has_its_own_prompt(kind, settings, count):
    encoder = ENCODERS[kind]()
    before, expected = state(encoder), [encode(encoder, TEXTS, prompt=prompt, **settings) for prompt in PROMPTS]
    assert not np.array_equal(expected[0], expected[1])
    for rows, wanted in zip(together(encoder, count, settings), expected, strict=False):
        for found in rows:
            np.testing.assert_allclose(found, wanted, atol=2e-2 if "precision" in settings else 1e-5)
    assert state(encoder) == before


@pytest.mark.skipif(not ONNX, reason="needs the extra `onnx`")
def test_threads_in_int8_beside_one_in_float():
    encoder = build_transformer(prompt="own: ").train()
    before, plain = state(encoder), encode(encoder, TEXTS)
    alone = [encode(encoder, TEXTS, prompt=prompt, precision="int8", batch_tokens=60) for prompt in PROMPTS[:2]]
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(lambda: [encode(encoder, TEXTS) for _ in range(20)])
        for rows, wanted in zip(together(encoder, 2, {"precision": "int8"}), alone, strict=True):
            np.testing.assert_array_equal(rows[0], wanted)
        for rows in beside.result():
            np.testing.assert_allclose(rows, plain, atol=1e-6)
    assert state(encoder) == before
    assert encoder.backbone.config._attn_implementation != "eager"


def test_threads_of_torch_are_as_they_were():
    encoder = build_transformer().eval()
    torch.set_num_threads(2)
    try:
        wanted = encode(encoder, TEXTS)
        assert all(np.allclose(rows, wanted, atol=1e-5) for rows in together(encoder, 1, {})[0])
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda _: (encode(encoder, TEXTS, batch_tokens=30), torch.get_num_threads()), range(8))
            )
            assert {count for _, count in found} == {2}
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(1)


def test_encoders_of_two_lengths_may_share_a_tokenizer():
    tokenizer = build_tokenizer()
    tokenizer.enable_padding(pad_id=0)
    tokenizer.enable_truncation(11)
    encoders = [StaticEncoder.create(tokenizer, 8, seed=1, max_length=length) for length in (2, 40)]
    wanted = [encoder.tokenize(TEXTS).lengths for encoder in encoders]
    assert (int(wanted[0].max()), int(wanted[1].max()) > 11) == (2, True)
    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(lambda n: encoders[n % 2].tokenize(TEXTS).lengths, range(200))):
            assert torch.equal(found, wanted[number % 2])
    assert (tokenizer.truncation["max_length"], tokenizer.padding["pad_id"]) == (11, 0)


def test_a_copy_in_evaluation_mode_shares_the_weights():
    encoder = build_transformer().train()
    copied = evaluating(encoder)
    assert encoder.training
    assert not any(module.training for module in copied.modules())
    assert copied.backbone.config is encoder.backbone.config
    assert all(a is b for a, b in zip(encoder.parameters(), copied.parameters(), strict=True))
    assert evaluating(copied) is copied


def test_huge_and_tiny_vectors_have_length_one():
    encoder = static()
    encoder.max_length = 1  # the sum of two such rows does not fit float32
    for scale in (3e38, 1e-37):
        with torch.no_grad():
            encoder.table.copy_(torch.full_like(encoder.table, scale))
            encoder.token_weights.fill_(1)
        np.testing.assert_allclose(encode(encoder, ["cat"]), 0.25, rtol=1e-6)
    assert (encode(encoder, [""]) == 0).all()
