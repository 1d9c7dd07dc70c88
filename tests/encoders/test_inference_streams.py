"""Streams, windows, files and number formats: the same rows whichever way texts come in and go out."""

from __future__ import annotations

import tracemalloc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.encoders import StaticEncoder, encode, engine
from isoglot.encoders.device import settle
from isoglot.encoders.engine import distinct, plan, windows

ENCODER = build_transformer(pooling="mean", prompt="")
STATIC = StaticEncoder.create(build_tokenizer(), 8, seed=1)
ODD = ["", " ", "\0", "a\0b", "\ud800", "x\udfff\ud83d", "\u202e\u2066abc", "👩‍👩‍👧" * 40, "\u0301" * 300, "ﷺ" * 99]


@pytest.fixture
def small_windows(monkeypatch):
    monkeypatch.setattr(engine, "CPU_WINDOW", 3)
    monkeypatch.setattr(engine, "STATIC_WINDOW", 3)


def cosines(a, b):
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("encoder", [ENCODER, STATIC])
def test_a_stream_a_list_and_a_file_agree(encoder, tmp_path, small_windows):
    texts = [*SENTENCES, "", SENTENCES[0], *SENTENCES[3:6]]
    whole = np.concatenate([encode(encoder, [text]) for text in texts])
    np.testing.assert_allclose(encode(encoder, texts), whole, atol=1e-6)
    np.testing.assert_allclose(encode(encoder, iter(texts)), whole, atol=1e-6)
    mapped = encode(encoder, iter(texts), output=tmp_path / "new" / "rows.npy")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_allclose(mapped, whole, atol=1e-6)
    np.save(tmp_path / "saved.npy", np.array(mapped))
    assert (tmp_path / "saved.npy").read_bytes() == (tmp_path / "new" / "rows.npy").read_bytes()


@pytest.mark.parametrize("empty", [[], (), iter([])])
def test_no_text_gives_no_row_in_any_shape(empty, tmp_path):
    assert encode(ENCODER, empty).shape == (0, ENCODER.dim)
    mapped = encode(ENCODER, [], output=tmp_path / "rows.npy", dtype=np.float16, truncate_dim=3)
    assert (mapped.shape, mapped.dtype) == ((0, 3), np.float16)


def test_a_failed_write_leaves_the_old_file(tmp_path):
    (tmp_path / "rows.npy").write_bytes(b"old")
    with pytest.raises(TypeError, match="text 1 is 7"):
        encode(ENCODER, ["a", 7], output=tmp_path / "rows.npy")
    assert (tmp_path / "rows.npy").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "rows.npy"]


def test_a_wrong_text_of_a_stream_is_numbered(small_windows):
    with pytest.raises(TypeError, match="text 7 is None"):
        encode(STATIC, (None if row == 7 else str(row) for row in range(20)))


def test_a_stream_is_never_held_as_a_whole(monkeypatch):
    class Text(str):
        __slots__ = ("__weakref__",)

    monkeypatch.setattr(engine, "STATIC_WINDOW", 50)
    alive, most = weakref.WeakSet(), 0

    def lines():
        nonlocal most
        for row in range(1000):
            text = Text(f"line {row}")
            alive.add(text)
            most = max(most, len(alive))
            yield text

    rows = encode(STATIC, lines())
    assert rows.shape == (1000, 8)
    assert 100 <= most <= 250


def test_memory_is_that_of_the_rows_and_no_second_copy(monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 200)
    wide = StaticEncoder.create(build_tokenizer(), 512, seed=1)
    encode(wide, ["warm"])
    tracemalloc.start()
    rows = encode(wide, [f"{row % 3000}" for row in range(4000)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows.nbytes < peak < 1.5 * rows.nbytes


@given(st.lists(st.sampled_from(["", "a", "b", "cc", "ddd"]), max_size=40), st.integers(1, 7), st.integers(1, 9))
def test_windows_hold_every_text_once_in_order(texts, size, characters):
    def tokenize(found):
        return STATIC.tokenize(found)

    before, engine.CHARACTERS = engine.CHARACTERS, characters
    try:
        parts = list(windows(iter(texts), size, tokenize))
    finally:
        engine.CHARACTERS = before
    assert [text for part in parts for text in part.texts] == texts
    for part in parts:
        assert 1 <= len(part.texts) <= size
        assert len(set(part.distinct)) == len(part.distinct) == len(part.tokens)
        rows = range(len(part.texts)) if part.rows is None else part.rows
        assert [part.distinct[row] for row in rows] == part.texts


def test_very_long_texts_end_a_window(monkeypatch):
    monkeypatch.setattr(engine, "CHARACTERS", 1000)
    parts = list(windows(["x" * 100] * 300, 4096, STATIC.tokenize))
    assert [len(part.texts) for part in parts] == [64, 64, 64, 64, 44]


def test_distinct_in_order_of_appearance():
    found, rows = distinct(["b", "a", "b"])
    assert (found, rows.tolist()) == (["b", "a"], [0, 1, 0])
    assert distinct(["b", "a"]) == (["b", "a"], None)
    assert distinct([np.str_("a"), "a"])[0] == ["a"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=40), st.sampled_from(ODD)), max_size=8), st.randoms(use_true_random=False))
def test_whatever_the_company_a_row_stays_what_it_is(company, random):
    texts = [*company, *SENTENCES[:3]]
    random.shuffle(texts)
    for encoder in (ENCODER, STATIC):
        rows = encode(encoder, texts)
        assert np.isfinite(rows).all()
        for place in {0, len(texts) // 2, len(texts) - 1}:
            np.testing.assert_allclose(rows[place], encode(encoder, texts[place]), atol=1e-6)


@pytest.mark.slow
def test_bytes_that_are_no_text_and_a_million_characters():
    random = np.random.default_rng(0)
    noise = [random.integers(0, 256, 200, dtype=np.uint8).tobytes().decode("utf-8", "surrogateescape") for _ in "abcd"]
    long = ["ab " * 333_333, "字" * 1_000_000, "\0" * 1_000_000, "\U0001f600" * 250_000]
    for encoder in (ENCODER, STATIC):
        rows = encode(encoder, iter([*noise, *long, *SENTENCES]))
        assert np.isfinite(rows).all()
        np.testing.assert_allclose(rows[8:], encode(encoder, SENTENCES), atol=1e-6)


def test_bf16_is_near_and_told_apart():
    full, half = encode(ENCODER, SENTENCES), encode(ENCODER, SENTENCES, precision="bf16")
    assert half.dtype == np.float32
    assert not np.array_equal(full, half)
    assert cosines(full, half).min() > 0.999


def test_what_precision_may_be():
    cpu = torch.device("cpu")
    assert settle("auto", cpu) in ("float32", "bfloat16")
    assert settle("bf16", cpu) == "bfloat16"
    with pytest.raises(ValueError, match=r"float32.*got 'fp64'"):
        encode(ENCODER, ["a"], precision="fp64")
    with pytest.raises(ValueError, match=r"int8.*cuda:0"):
        settle("int8", torch.device("cuda:0"))
    with pytest.raises(ValueError, match="kind of float, such as float32 or float16, got int8"):
        encode(ENCODER, ["a"], dtype=np.int8)
    with pytest.raises(ValueError, match="batch_tokens must be at least 1, got 0"):
        encode(STATIC, ["a"], batch_tokens=0)


def test_progress_of_a_stream_has_no_total(small_windows):
    seen = []
    encode(STATIC, iter("abcde"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, None)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_plan_is_complete():
    made = plan(ENCODER, truncate_dim=4, normalize_embeddings=True, dtype="float16")
    assert (made.width, made.unit, made.dtype, made.budget, made.precision) == (4, True, "<f2", 512, "float32")
    assert plan(ENCODER, devices=[torch.device("cuda:0")]).budget == engine.DEVICE_TOKENS
