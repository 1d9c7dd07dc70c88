"""`isoglot encode`: what it writes, what it says, and one line for a setting that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.encode import run
from isoglot.encoders import StaticEncoder, encode
from isoglot.encoders.resumable import encode_file
from isoglot.errors import EncoderError


@pytest.fixture
def project(tmp_path):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in SENTENCES), encoding="utf-8")
    return tmp_path


def test_rows_in_the_asked_shape(project, capsys):
    run(str(project / "model"), project / "lines.txt", project / "a.npy", truncate_dim=3, dtype="float16")
    rows = np.load(project / "a.npy")
    assert (rows.shape, rows.dtype) == ((len(SENTENCES), 3), np.float16)
    assert "10 lines, 3 dimensions" in capsys.readouterr().err
    run(str(project / "model"), project / "lines.txt", project / "b.npy", devices="cpu, ", normalize=False)
    expected = encode(StaticEncoder.create(build_tokenizer(), 8, seed=1), SENTENCES, normalize_embeddings=False)
    np.testing.assert_allclose(np.load(project / "b.npy"), expected, atol=1e-6)


def test_it_says_that_it_goes_on(project, capsys, monkeypatch):
    from isoglot.encoders import engine, load

    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)

    def stop(done, total):
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_file(load(project / "model"), project / "lines.txt", output=project / "a.npy", progress=stop)
    run(str(project / "model"), project / "lines.txt", project / "a.npy")
    assert "4 lines were done already; resuming" in capsys.readouterr().err
    assert len(np.load(project / "a.npy")) == len(SENTENCES)


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"precision": "fp8"}, "precision must be one of"),
        ({"dtype": "float99"}, "float99"),
        ({"truncate_dim": 9}, "truncate_dim must lie between 1 and the encoder's 8"),
        ({"devices": "nonsense:0"}, "nonsense"),
        ({"precision": "int8"}, "int8 is for transformers"),
    ],
)
def test_a_wrong_setting_is_one_line_and_writes_nothing(project, settings, words):
    with pytest.raises(EncoderError, match=words):
        run(str(project / "model"), project / "lines.txt", project / "a.npy", **settings)
    assert sorted(path.name for path in project.iterdir()) == ["lines.txt", "model"]
