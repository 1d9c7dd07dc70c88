"""Chunks side by side: the same rows from however many threads and processes, and what a worker's end means."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.encoders import StaticEncoder, encode, engine
from isoglot.errors import EncoderError

ENCODER = build_transformer(pooling="mean", prompt="")
STATIC = StaticEncoder.create(build_tokenizer(), 8, seed=1)
TEXTS = [f"{sentence} {number}" for number in range(8) for sentence in SENTENCES]


@pytest.fixture
def threads():
    """Sets torch's threads for a test, whatever the machine has."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(engine, "CPU_WINDOW", 3)
    monkeypatch.setattr(engine, "STATIC_WINDOW", 3)


def callers(encoder, texts, **settings):
    """(rows, for each call of forward the thread it was in and torch's threads there)."""
    calls = []

    def note(module, inputs, output):
        calls.append((threading.current_thread(), torch.get_num_threads()))

    handle = encoder.register_forward_hook(note)
    try:
        return encode(encoder, texts, **settings), calls
    finally:
        handle.remove()


def test_threads_make_whole_chunks_and_the_very_same_rows(threads):
    encoder = build_transformer(pooling="mean")
    threads(1)
    alone, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert {caller for caller, _ in calls} == {threading.current_thread()}
    threads(3)
    together, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert threading.current_thread() not in {caller for caller, _ in calls}
    assert {count for _, count in calls} == {1}
    np.testing.assert_array_equal(alone, together)


def test_chunks_are_computed_at_once(threads):
    threads(2)
    encoder, meeting = build_transformer(pooling="mean"), threading.Barrier(2, timeout=60)
    waits = iter([True, True])

    def meet(module, inputs):
        if next(waits, False):
            meeting.wait()  # raises if no second thread comes

    encoder.register_forward_pre_hook(meet)
    assert encode(encoder, TEXTS, batch_tokens=30).shape == (len(TEXTS), encoder.dim)


def test_a_chunk_that_comes_alone_has_all_threads(threads):
    threads(2)
    _, calls = callers(build_transformer(pooling="mean"), SENTENCES[:1])
    assert calls == [(threading.current_thread(), 2)]


def test_an_encoder_is_called_by_one_thread_unless_it_allows_more(threads):
    threads(2)
    encoder = build_transformer(pooling="mean")
    encoder.concurrent = False
    _, calls = callers(encoder, TEXTS, batch_tokens=30)
    assert len(calls) > 2
    assert set(calls) == {(threading.current_thread(), 2)}


@pytest.mark.parametrize("fails", [False, True])
def test_threads_are_what_they_were_afterwards(threads, fails):
    threads(3)
    encoder, seen = build_transformer(pooling="mean"), []
    if fails:
        encoder.backbone.forward = None  # no function
        with pytest.raises(TypeError):
            encode(encoder, TEXTS, batch_tokens=30)
    else:
        encode(encoder, TEXTS, batch_tokens=30)
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert [torch.get_num_threads(), *seen] == [3, 3]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("isoglot-encode")]


@pytest.mark.slow
def test_processes_give_the_very_same_rows(small_windows):
    texts = [*SENTENCES, "", SENTENCES[0]]
    for asked in ({}, {"precision": "bf16", "truncate_dim": 5}):
        np.testing.assert_array_equal(encode(ENCODER, texts, workers=2, **asked), encode(ENCODER, texts, **asked))


@pytest.mark.slow
def test_a_process_gives_the_very_same_rows(small_windows):
    texts = [*SENTENCES, "", SENTENCES[0]]
    np.testing.assert_array_equal(encode(STATIC, iter(texts), workers=["cpu"]), encode(STATIC, iter(texts)))


@pytest.mark.slow
def test_a_worker_that_dies_is_an_error():
    with pytest.raises(EncoderError, match="worker process ended before its work was done"):
        encode(Dying(), ["a"], workers=["cpu"])


@pytest.mark.parametrize("workers", [0, [], "cuda:0"])
def test_what_workers_may_be(workers):
    with pytest.raises(ValueError, match="workers must be"):
        encode(ENCODER, ["a"], workers=workers)


class Dying(StaticEncoder):
    """Ends its process as the system does when memory runs out."""

    def __init__(self):
        super().__init__(torch.ones(300, 2), build_tokenizer())

    def forward(self, tokens):
        import os

        os._exit(9)
