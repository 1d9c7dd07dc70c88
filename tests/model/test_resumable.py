"""File to file: killed at any moment and run again, it has the bytes of a run that was left alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from conftest import SENTENCES, build_tokenizer
from isoglot.core.errors import CorpusError, EncoderError, OutputError
from isoglot.data.store import Rows, journal_of
from isoglot.encoders import StaticEncoder
from isoglot.model import encode, engine
from isoglot.model.resumable import encode_file, partial_path

SLOW = """
import sys, time
from isoglot.encoders import load
from isoglot.model import engine
from isoglot.model.resumable import encode_file
engine.STATIC_WINDOW = 4
encoder = load(sys.argv[1])
encode_file(encoder, sys.argv[2], output=sys.argv[3], progress=lambda done, total: time.sleep(0.05))
"""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)


TEXTS = [f"{SENTENCES[row % 7]} {row // 2}" if row % 5 else "" for row in range(62)]


@pytest.fixture(scope="module")
def encoder():
    return StaticEncoder.create(build_tokenizer(), 8, seed=1)


@pytest.fixture
def path(tmp_path):
    """A file of `TEXTS`."""
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    return tmp_path / "lines.txt"


@pytest.fixture(scope="module")
def whole(encoder, tmp_path_factory):
    """The file of an uninterrupted run."""
    file = tmp_path_factory.mktemp("whole") / "whole.npy"
    encode_file(encoder, TEXTS, output=file)
    return file.read_bytes()


class StopError(Exception):
    pass


def stopped(encoder, source, output, *, after, **settings):
    """A run that ends with an exception after so many distinct lines."""

    def progress(done, total):
        if done >= after:
            raise StopError

    with pytest.raises(StopError):
        encode_file(encoder, source, output=output, progress=progress, **settings)


@pytest.mark.parametrize("after", [1, 5, 9, 30, 48])
def test_stopped_and_resumed_equals_uninterrupted(after, encoder, path, whole, tmp_path):
    output, told = tmp_path / "rows.npy", []
    stopped(encoder, path, output, after=after)
    stopped(encoder, path, output, after=3)
    assert not output.exists()
    encode_file(encoder, path, output=output, report=told.append)
    assert output.read_bytes() == whole
    assert bool(told) == (after > 3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lines.txt", "rows.npy"]


def test_a_window_is_written_while_the_next_one_is_computed(encoder, path, tmp_path, monkeypatch):
    ahead, append, caught_up = threading.Event(), Rows.append, []

    def late(rows, block, **more):
        if not len(rows):
            caught_up.append(ahead.wait(60))
        append(rows, block, **more)

    monkeypatch.setattr(Rows, "append", late)
    seen = encode_file(encoder, path, output=tmp_path / "rows.npy", progress=lambda done, _: done > 4 and ahead.set())
    assert caught_up == [True]
    np.testing.assert_allclose(seen, encode(encoder, TEXTS), atol=1e-6)  # in their order


@pytest.mark.parametrize("window", [1, 3, 16])
def test_an_error_of_writing_is_raised_and_the_run_resumes(window, encoder, path, whole, tmp_path, monkeypatch):
    output, append, calls = tmp_path / "rows.npy", Rows.append, []

    def full(rows, block, **more):
        calls.append(len(rows))
        if len(calls) == window:  # 16 is the last one
            raise OutputError("the disk is full")
        append(rows, block, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", full)
        with pytest.raises(OutputError, match="the disk is full"):
            encode_file(encoder, path, output=output)
    assert calls == [4 * number for number in range(window)]  # nothing is written after the error
    assert not output.exists()
    assert partial_path(output).exists() == (window > 1)
    assert done(output) == 4 * (window - 1)
    encode_file(encoder, path, output=output)
    assert output.read_bytes() == whole


def test_an_interruption_waits_for_the_window_that_is_being_written(encoder, path, whole, tmp_path, monkeypatch):
    output, append = tmp_path / "rows.npy", Rows.append

    def slow(rows, block, **more):
        time.sleep(0.2)
        append(rows, block, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "append", slow)
        stopped(encoder, path, output, after=5)
    assert done(output) == 4
    encode_file(encoder, path, output=output)
    assert output.read_bytes() == whole


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is of POSIX systems")
def test_killed_again_and_again(encoder, path, whole, tmp_path):
    encoder.save(tmp_path / "model")
    output = tmp_path / "rows.npy"
    met, kills = 0, 0
    while not output.exists() and kills < 30:
        with subprocess.Popen([sys.executable, "-c", SLOW, tmp_path / "model", path, output]) as child:
            while child.poll() is None and done(output) < met + 24:
                time.sleep(0.01)
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
                kills += 1
        assert done(output) >= met or output.exists()  # nothing that was computed is lost
        met = done(output)
    assert kills >= 2
    assert output.read_bytes() == whole


def done(output: Path) -> int:
    return len(Rows(partial_path(output), replace=True))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text(path.read_text().replace("cat", "bat")),
        lambda path: path.write_text("x" * (path.stat().st_size - 1) + "\n"),
        lambda path: path.write_text("".join(path.read_text().splitlines(keepends=True)[:10])),
    ],
)
def test_another_input_is_refused(change, encoder, path, tmp_path):
    stopped(encoder, path, tmp_path / "rows.npy", after=30)
    change(path)
    with pytest.raises(EncoderError, match="differs in its input"):
        encode_file(encoder, path, output=tmp_path / "rows.npy")
    partial_path(tmp_path / "rows.npy").unlink()
    assert len(encode_file(encoder, path, output=tmp_path / "rows.npy")) == path.read_text().count("\n")


def test_another_model_or_setting_is_refused(encoder, path, tmp_path):
    output = tmp_path / "rows.npy"
    stopped(encoder, path, output, after=30)
    other = StaticEncoder.create(build_tokenizer(), 8, seed=2)
    with pytest.raises(EncoderError, match="a run that differs in encoder; repeat that run unchanged, delete"):
        encode_file(other, path, output=output)
    changes = ({"normalize_embeddings": False}, "unit"), ({"dtype": "float16"}, "dtype"), ({"prompt": "x"}, "prompt")
    for settings, place in (*changes, ({"truncate_dim": 2}, "width")):
        with pytest.raises(EncoderError, match=rf"differs in settings\.{place};"):
            encode_file(encoder, path, output=output, **settings)


def test_lines_that_were_added_meanwhile_are_encoded_too(encoder, path, tmp_path):
    stopped(encoder, path, tmp_path / "rows.npy", after=30)
    path.write_text("".join(f"{text}\n" for text in [*TEXTS, "more"]), encoding="utf-8")
    rows = encode_file(encoder, path, output=tmp_path / "rows.npy")
    np.testing.assert_allclose(rows, encode(encoder, [*TEXTS, "more"]), atol=1e-6)


def test_texts_in_memory_go_to_a_file_too(encoder, tmp_path):
    texts = ["a cat", "line\nend", "", "a cat", *SENTENCES]
    output = tmp_path / "rows.npy"
    stopped(encoder, iter(texts), output, after=5)
    with pytest.raises(EncoderError, match="differs in its input"):
        encode_file(encoder, ["a cat", "line", "end"], output=output)
    rows = encode_file(encoder, (text for text in texts), output=output)
    np.testing.assert_allclose(rows, encode(encoder, texts), atol=1e-6)
    assert encode_file(encoder, [], output=output).shape == (0, 8)


def test_two_at_once_are_refused(encoder, path, tmp_path):
    with ThreadPoolExecutor(1) as elsewhere:

        def again(done, total):
            elsewhere.submit(encode_file, encoder, path, output=tmp_path / "rows.npy").result()

        with pytest.raises(OutputError, match="another process is writing it"):
            encode_file(encoder, path, output=tmp_path / "rows.npy", progress=again)


def test_what_cannot_be_read_or_written_leaves_nothing(encoder, path, tmp_path):
    with pytest.raises(CorpusError, match="no such file"):
        encode_file(encoder, tmp_path / "none.txt", output=tmp_path / "rows.npy")
    with pytest.raises(OutputError, match="is a folder"):
        encode_file(encoder, path, output=tmp_path)
    (tmp_path / "again.txt").hardlink_to(path)
    for output in (path, tmp_path / "again.txt"):
        with pytest.raises(OutputError, match="is the input"):
            encode_file(encoder, path, output=output)
    assert path.read_text(encoding="utf-8").splitlines() == TEXTS
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.txt", "lines.txt"]


# Vectors that are kept, as mining keeps them in its work folder


def kept(encoder, path, output, **options):
    """The vectors, and how many lines progress was told of."""
    told = []
    found = encode_file(encoder, path, output=output, keep=True, progress=lambda done, _: told.append(done), **options)
    return np.array(found), told


def test_kept_vectors_are_not_encoded_again(encoder, path, tmp_path):
    first, told = kept(encoder, path, tmp_path / "rows.npy")
    np.testing.assert_allclose(first, encode(encoder, TEXTS), atol=1e-6)
    assert told
    again, told = kept(encoder, path, tmp_path / "rows.npy")
    np.testing.assert_array_equal(again, first)
    assert told == []


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("change", ["text", "encoder", "dtype"])
def test_other_lines_another_encoder_or_type_begin_kept_vectors_anew(change, cut, encoder, path, tmp_path):
    output = tmp_path / "rows.npy"
    kept(encoder, path, output)
    if cut:
        output.unlink()
        stopped(encoder, path, output, after=5, keep=True)
        assert len(Rows(output)) == 4
    options = {"dtype": "float16"} if change == "dtype" else {}
    if change == "text":
        path.write_text("".join(f"{text}\n" for text in reversed(TEXTS)), encoding="utf-8")
    if change == "encoder":
        encoder = StaticEncoder.create(build_tokenizer(), 8, seed=2)
    found, told = kept(encoder, path, output, **options)
    expected = encode(encoder, TEXTS[::-1] if change == "text" else TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-3 if options else 1e-6)
    assert told
    assert found.dtype == options.get("dtype", "float32")


DAMAGE = {
    "a flipped bit": lambda data: data[:-20] + bytes([data[-20] ^ 1]) + data[-19:],
    "cut short": lambda data: data[:-9],
    "too long": lambda data: data + b"\xff" * 100,
    "none left": lambda data: b"",
}


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("file", ["rows", "journal"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_encoded_again(damage, file, keep, encoder, path, whole, tmp_path):
    output, told = tmp_path / "rows.npy", []
    stopped(encoder, path, output, after=30, keep=keep)
    place = output if keep else partial_path(output)
    damaged = journal_of(place) if file == "journal" else place
    damaged.write_bytes(DAMAGE[damage](damaged.read_bytes()))
    if damage == "none left" and file == "journal" and not keep:  # it may be a file of others
        with pytest.raises(OutputError, match=r"rows\.npy\.partial\.journal: .*move it away"):
            encode_file(encoder, path, output=output)
        return
    encode_file(encoder, path, output=output, keep=keep, report=told.append)
    assert output.read_bytes() == whole
    assert len(told) == (damage != "none left")
