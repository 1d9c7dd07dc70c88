"""How rows are divided into chunks: positions are counted over texts as they come, and limits hold for any lengths."""

from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isoglot.data.tokens import Tokens, pack, padding_on
from isoglot.training.step import Chunks, StepLimits
from toys import ToyEncoder

DEVICE = torch.device("meta")  # not the CPU: nothing is computed here


def positions(chunks, counts):
    return sum(len(chunk) * int(counts[chunk].max()) for chunk in chunks)


def news(count, seed=0):
    """Token counts of news in several languages: half between 20 and 46, the longest cut at 128."""
    drawn = np.random.default_rng(seed).lognormal(3.4, 0.6, count)
    return np.clip(drawn, 3, 128).astype(np.int64)


def examples(count, seed=0):
    """Token counts of short examples: half between 8 and 15, a few very long ones."""
    drawn = np.random.default_rng(seed).lognormal(2.4, 0.5, count)
    return np.where(np.random.default_rng(seed).random(count) < 0.002, 128, np.clip(drawn, 3, 128)).astype(np.int64)


def mixture(count, seed=0):
    return np.concatenate([news(count // 2, seed), examples(count - count // 2, seed)])


@pytest.mark.parametrize("texts", [news, examples, mixture])
@pytest.mark.parametrize("count", [256, 2048, 16_384, 65_536])
def test_an_accelerator_cuts_further_where_a_chunk_costs_less_than_it_saves(texts, count):
    """In training and, with larger chunks, in inference."""
    counts = texts(count)
    for budget in (16_384, 32_768):
        whole, chunks = pack(counts, budget), pack(counts, budget, padding=padding_on(DEVICE))
        saved, more = positions(whole, counts) - positions(chunks, counts), len(chunks) - len(whole)
        assert saved >= 8192 * more
        assert len(chunks) <= max(4, len(whole) + 4)
        assert positions(chunks, counts) <= (1.2 if count > 10_000 else 4.5) * counts.sum()


def test_a_step_of_a_few_texts_on_an_accelerator_is_a_few_chunks():
    counts = news(256)
    tokens = Tokens(np.ones(counts.sum(), np.int64), counts)
    chunks = Chunks.of(ToyEncoder(), tokens, StepLimits.on(DEVICE, chunk=None, graph=None, precision="bfloat16"))
    assert chunks.padded == positions(chunks.rows, counts)
    assert len(chunks.rows) <= 3


@patch("isoglot.data.tokens._WORTH", 32)
@given(st.lists(st.integers(0, 128), max_size=200), st.integers(1, 5000), st.integers(1, 50))
def test_cuts_keep_order_and_limits_and_save_more_than_they_cost(lengths, budget, most):
    counts = np.array(lengths, dtype=np.int64)
    whole, chunks = (pack(counts, budget, most=most, padding=bound) for bound in (np.inf, 1.1))
    joined = np.concatenate([np.empty(0, np.int64), *chunks])
    assert joined.tolist() == np.concatenate([np.empty(0, np.int64), *whole]).tolist()
    assert all(len(chunk) <= max(1, min(most, budget // max(1, counts[chunk].max()))) for chunk in chunks)
    full = np.maximum(counts, 1)
    saved = positions(whole, full) - positions(chunks, full)
    assert saved >= 32 * (len(chunks) - len(whole))
    if positions(chunks, full) > 1.1 * full.sum():  # no cut is left that saves as much as it costs
        for chunk in chunks:
            assert all((len(chunk) - at) * (full[chunk[0]] - full[chunk[at]]) < 32 for at in range(len(chunk)))


def test_a_cpu_has_the_chunks_that_the_budget_makes():
    assert [len(chunk) for chunk in pack(news(64), 10**6, padding=padding_on("cpu"))] == [64]


@given(st.lists(st.integers(0, 40), max_size=200), st.integers(1, 100))
def test_every_row_once_longest_first_in_as_few_chunks_as_the_budget_makes(lengths, budget):
    counts = np.array(lengths, dtype=np.int64)
    chunks = pack(counts, budget)
    order = np.concatenate([np.empty(0, np.int64), *chunks])
    assert order.tolist() == np.argsort(-counts, kind="stable").tolist()  # equal lengths keep their order
    sizes = [len(chunk) * max(1, counts[chunk].max()) for chunk in chunks]
    assert all(size <= budget or len(chunk) == 1 for size, chunk in zip(sizes, chunks, strict=True))
    grown = [(len(chunk) + 1) * max(1, counts[chunk].max()) for chunk in chunks[:-1]]
    assert all(size > budget for size in grown)  # no chunk could have taken the next row


def test_a_budget_without_tokens_is_refused():
    with pytest.raises(ValueError, match="at least one token, got 0"):
        pack(np.array([1]), 0)
