"""Vectors for mining: made once, made again when anything is other than it was, and never read when not whole."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import SENTENCES, build_tokenizer
from isoglot.encoders import StaticEncoder
from isoglot.model import encode, engine
from isoglot.model.resumable import encode_file
from isoglot.store import Rows, journal_of


def encoded(encoder, text, into, *, progress, **options):
    def done(count, _):
        return progress(count)

    return encode_file(encoder, text, output=into, normalize_embeddings=True, keep=True, progress=done, **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)
    (tmp_path / "side.txt").write_text("".join(f"{text}\n" for text in SENTENCES), encoding="utf-8")
    return tmp_path


@pytest.fixture
def encoder():
    return StaticEncoder.create(build_tokenizer(), 8, seed=1)


def run(encoder, folder, **options):
    """The vectors, and what progress was told."""
    told = []
    found = encoded(encoder, folder / "side.txt", folder / "side.npy", progress=told.append, **options)
    return np.array(found), told


def test_the_second_time_nothing_is_encoded(encoder, folder):
    first, told = run(encoder, folder)
    np.testing.assert_allclose(first, encode(encoder, SENTENCES, normalize_embeddings=True), atol=1e-6)
    assert told[-1] == len(SENTENCES)
    again, told = run(encoder, folder)
    np.testing.assert_array_equal(again, first)
    assert told == []


def test_what_was_stopped_goes_on(encoder, folder, monkeypatch):
    whole, _ = run(encoder, folder)
    (folder / "side.npy").unlink()

    def stop(done):
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoded(encoder, folder / "side.txt", folder / "side.npy", progress=stop)
    rest, told = run(encoder, folder)
    assert told[0] > 4
    assert told[-1] == len(SENTENCES)
    np.testing.assert_array_equal(rest, whole)
    assert sorted(path.name for path in folder.iterdir()) == ["side.npy", "side.npy.journal", "side.txt"]


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("change", ["text", "encoder", "dtype"])
def test_other_lines_another_encoder_or_type_begin_anew(change, stopped, encoder, folder):
    run(encoder, folder)
    if stopped:
        (folder / "side.npy").unlink()
        with pytest.raises(ZeroDivisionError):
            encoded(encoder, folder / "side.txt", folder / "side.npy", progress=lambda done: 1 // (done < 5))
        assert len(Rows(folder / "side.npy")) == 4
    options = {"dtype": "float16"} if change == "dtype" else {}
    if change == "text":
        (folder / "side.txt").write_text("".join(f"{text}\n" for text in SENTENCES[::-1]), encoding="utf-8")
    if change == "encoder":
        encoder = StaticEncoder.create(build_tokenizer(), 8, seed=2)
    found, told = run(encoder, folder, **options)
    texts = SENTENCES[::-1] if change == "text" else SENTENCES
    np.testing.assert_allclose(found, encode(encoder, texts, normalize_embeddings=True), atol=1e-3 if options else 1e-6)
    assert told[-1] == len(SENTENCES)
    assert found.dtype == options.get("dtype", "float32")


@pytest.mark.parametrize("damage", ["byte", "journal", "cut", "none left"])
def test_what_is_damaged_is_not_read(damage, encoder, folder):
    whole, _ = run(encoder, folder)
    path = journal_of(folder / "side.npy") if damage == "journal" else folder / "side.npy"
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data[:-8] if damage == "cut" else data if damage != "none left" else b"")
    again, told = run(encoder, folder)
    np.testing.assert_array_equal(again, whole)
    assert told[-1] == len(SENTENCES)
    assert told[0] > (0 if damage == "none left" else 8)
    assert run(encoder, folder)[1] == []


def test_vectors_of_an_earlier_version_are_made_again(encoder, folder):
    np.save(folder / "side.npy", np.zeros((len(SENTENCES), 8), np.float32))
    found, _ = run(encoder, folder)
    np.testing.assert_allclose(found, encode(encoder, SENTENCES, normalize_embeddings=True), atol=1e-6)
