"""`isoglot encode`: what it writes, what it says, and one line for a setting that cannot be."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from command_line import runner

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.encode import encode as verb
from isoglot.encoders import StaticEncoder
from isoglot.errors import EncoderError, OutputError
from isoglot.model import encode
from isoglot.model.resumable import encode_file

run = runner(encode=verb)


@pytest.fixture
def project(tmp_path):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in SENTENCES), encoding="utf-8")
    return tmp_path


def test_rows_in_the_asked_shape(project):
    words = (project / "model", project / "lines.txt", "-o")
    said = run(*words, project / "a.npy", "--truncate-dim", 3, "--dtype", "float16")
    rows = np.load(project / "a.npy")
    assert (rows.shape, rows.dtype) == ((len(SENTENCES), 3), np.float16)
    assert "10 lines, 3 dimensions" in said
    run(*words, project / "b.npy", "--devices", "cpu, ", "--no-normalize")
    expected = encode(StaticEncoder.create(build_tokenizer(), 8, seed=1), SENTENCES, normalize_embeddings=False)
    np.testing.assert_allclose(np.load(project / "b.npy"), expected, atol=1e-6)


def test_it_resumes(project, monkeypatch):
    from isoglot.encoders import load
    from isoglot.model import engine

    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)

    def stop(done, total):
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_file(load(project / "model"), project / "lines.txt", output=project / "a.npy", progress=stop)
    said = run(project / "model", project / "lines.txt", "-o", project / "a.npy")
    assert "4 lines" in said
    assert "resuming" in said
    assert len(np.load(project / "a.npy")) == len(SENTENCES)


@pytest.mark.parametrize(
    "settings, words",
    [
        (("--precision", "fp8"), "precision"),
        (("--dtype", "float99"), "float99"),
        (("--truncate-dim", 9), "truncate_dim .*8"),
        (("--devices", "nonsense:0"), "nonsense"),
        (("--precision", "int8"), "int8"),
        (("--device", "cuda:77"), "cuda:77"),
    ],
)
def test_a_wrong_setting_is_one_line_and_writes_nothing(project, settings, words):
    with pytest.raises(EncoderError, match=words):
        run(project / "model", project / "lines.txt", "-o", project / "a.npy", *settings)
    assert sorted(path.name for path in project.iterdir()) == ["lines.txt", "model"]


def test_the_format_follows_the_name_of_the_file(project):
    import pyarrow.parquet as parquet

    words = (project / "model", project / "lines.txt", "-o")
    for name in ("a.npy", "a.jsonl", "a.parquet"):
        run(*words, project / name)
    rows = np.load(project / "a.npy")
    table = parquet.read_table(project / "a.parquet").to_pydict()
    objects = [json.loads(line) for line in (project / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert table["text"] == [one["text"] for one in objects] == SENTENCES
    for made in (table["vector"], [one["vector"] for one in objects]):
        np.testing.assert_allclose(made, rows, atol=1e-7)
    assert sorted(path.name for path in project.iterdir()) == ["a.jsonl", "a.npy", "a.parquet", "lines.txt", "model"]
    for wrong in (("a.txt",), ("b.npy", "--format", "jsonl"), ("b.npy", "--format", "nyp")):
        with pytest.raises(OutputError, match=re.escape(wrong[0]) if len(wrong) == 1 else "format"):
            run(*words, project / wrong[0], *wrong[1:])
