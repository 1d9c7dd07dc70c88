"""File to file: killed at any moment and run again, it has the bytes of a run that was left alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from conftest import SENTENCES, build_tokenizer
from isoglot.encoders import StaticEncoder, encode, engine
from isoglot.encoders.resumable import encode_file, journal_path, partial_path
from isoglot.errors import CorpusError, EncoderError, OutputError

SLOW = """
import sys, time
from isoglot.encoders import engine, load
from isoglot.encoders.resumable import encode_file
engine.STATIC_WINDOW = 4
encoder = load(sys.argv[1])
encode_file(encoder, sys.argv[2], output=sys.argv[3], progress=lambda done, total: time.sleep(0.05))
"""


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)


@pytest.fixture
def encoder():
    return StaticEncoder.create(build_tokenizer(), 8, seed=1)


@pytest.fixture
def lines(tmp_path):
    texts = [f"{SENTENCES[row % 7]} {row // 2}" if row % 5 else "" for row in range(62)]
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path, texts


class StopError(Exception):
    pass


def stopped(encoder, source, output, *, after, **settings):
    """A run that ends with an exception after so many distinct lines."""

    def progress(done, total):
        if done >= after:
            raise StopError

    with pytest.raises(StopError):
        encode_file(encoder, source, output=output, progress=progress, **settings)


def test_a_row_a_line(encoder, lines, tmp_path):
    path, texts = lines
    rows = encode_file(encoder, path, output=tmp_path / "rows.npy")
    np.testing.assert_allclose(rows, encode(encoder, texts), atol=1e-6)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lines.txt", "rows.npy"]
    half = encode_file(encoder, path, output=tmp_path / "half.npy", dtype="float16", truncate_dim=3)
    assert (half.shape, half.dtype) == ((62, 3), np.float16)


@pytest.mark.parametrize("after", [1, 5, 9, 30, 48])
def test_stopped_and_resumed_equals_uninterrupted(after, encoder, lines, tmp_path):
    path, _ = lines
    encode_file(encoder, path, output=tmp_path / "whole.npy")
    output, told = tmp_path / "rows.npy", []
    stopped(encoder, path, output, after=after)
    stopped(encoder, path, output, after=3)
    assert not output.exists()
    with pytest.raises(ValueError, match=r"."):
        np.load(partial_path(output))
    encode_file(encoder, path, output=output, resumed=told.append)
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert bool(told) == (after > 3)
    assert all(count % 4 == 0 for count in told)
    assert not partial_path(output).exists()
    assert not journal_path(output).exists()


def test_rows_that_the_journal_does_not_know_are_computed_again(encoder, lines, tmp_path):
    path, _ = lines
    encode_file(encoder, path, output=tmp_path / "whole.npy")
    output = tmp_path / "rows.npy"
    stopped(encoder, path, output, after=30)
    with partial_path(output).open("ab") as stream:
        stream.write(b"\xff" * 100)
    encode_file(encoder, path, output=output)
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kill -9 is of POSIX systems")
def test_killed_again_and_again(encoder, lines, tmp_path):
    path, _ = lines
    encode_file(encoder, path, output=tmp_path / "whole.npy")
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
    assert output.read_bytes() == (tmp_path / "whole.npy").read_bytes()


def done(output: Path) -> int:
    journal = journal_path(output)
    return json.loads(journal.read_text())["lines"] if journal.exists() else 0


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda path: path.write_text(path.read_text().replace("cat", "bat")), "other lines than"),
        (lambda path: path.write_text(path.read_text() + "more\n"), "another input"),
        (lambda path: path.write_text("x" * (path.stat().st_size - 1) + "\n"), "other lines than"),
    ],
)
def test_another_input_is_refused(change, words, encoder, lines, tmp_path):
    path, _ = lines
    stopped(encoder, path, tmp_path / "rows.npy", after=30)
    change(path)
    with pytest.raises(EncoderError, match=words):
        encode_file(encoder, path, output=tmp_path / "rows.npy")
    partial_path(tmp_path / "rows.npy").unlink()
    assert len(encode_file(encoder, path, output=tmp_path / "rows.npy")) == path.read_text().count("\n")


def test_another_model_or_setting_is_refused(encoder, lines, tmp_path):
    path, _ = lines
    output = tmp_path / "rows.npy"
    stopped(encoder, path, output, after=30)
    other = StaticEncoder.create(build_tokenizer(), 8, seed=2)
    with pytest.raises(EncoderError, match="begun with another model; repeat that run as it was, or delete"):
        encode_file(other, path, output=output)
    for settings in ({"normalize_embeddings": False}, {"dtype": "float16"}, {"truncate_dim": 2}, {"prompt": "x"}):
        with pytest.raises(EncoderError, match="begun with another set of settings"):
            encode_file(encoder, path, output=output, **settings)


def test_damage_is_told(encoder, lines, tmp_path):
    path, _ = lines
    output = tmp_path / "rows.npy"
    stopped(encoder, path, output, after=30)
    with partial_path(output).open("r+b") as stream:
        stream.truncate(200)
    with pytest.raises(EncoderError, match="holds 200 bytes where its journal says"):
        encode_file(encoder, path, output=output)
    for text in ("{", "[]", '{"x": 1}'):
        journal_path(output).write_text(text)
        with pytest.raises(EncoderError, match="is no journal of an encoding"):
            encode_file(encoder, path, output=output)


def test_two_at_once_are_refused(encoder, lines, tmp_path):
    path, _ = lines
    with ThreadPoolExecutor(1) as elsewhere:

        def again(done, total):
            elsewhere.submit(encode_file, encoder, path, output=tmp_path / "rows.npy").result()

        with pytest.raises(OutputError, match="another process is writing it"):
            encode_file(encoder, path, output=tmp_path / "rows.npy", progress=again)


def test_what_cannot_be_read_or_written_leaves_nothing(encoder, lines, tmp_path):
    with pytest.raises(CorpusError, match="no such file"):
        encode_file(encoder, tmp_path / "none.txt", output=tmp_path / "rows.npy")
    with pytest.raises(OutputError, match="is a folder"):
        encode_file(encoder, lines[0], output=tmp_path)
    path, texts = lines
    (tmp_path / "again.txt").hardlink_to(path)
    for output in (path, tmp_path / "again.txt"):
        with pytest.raises(OutputError, match="is the input"):
            encode_file(encoder, path, output=output)
    assert path.read_text(encoding="utf-8").splitlines() == texts
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.txt", "lines.txt"]
