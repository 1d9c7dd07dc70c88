"""`isoglot fit`: a model and a text in, a model out; one line for what cannot be."""

from __future__ import annotations

import bz2
import json

import numpy as np
import pytest
from command_line import as_function, runner

from conftest import SENTENCES, build_tokenizer
from isoglot.cli.fit import fit as fit_verb
from isoglot.data.formats import read_texts
from isoglot.encoders import StaticEncoder, load
from isoglot.errors import CorpusError, EncoderError, OutputError
from isoglot.model import encode

fit = as_function(fit_verb)

CORPUS = [f"{a} {b}" for a in SENTENCES for b in SENTENCES[:5]]


@pytest.fixture
def project(tmp_path):
    StaticEncoder.create(build_tokenizer(), 8, seed=1).save(tmp_path / "model")
    (tmp_path / "lines.txt").write_text("".join(f"{text}\n\n" for text in CORPUS), encoding="utf-8")
    return tmp_path


def test_whitening(project, capsys):
    fit("whitening", [str(project / "model"), str(project / "lines.txt")], project / "white", dim=3)
    assert "50 sentences, 3 dimensions with" in capsys.readouterr().err
    vectors = encode(load(project / "white"), CORPUS, normalize_embeddings=False)
    np.testing.assert_allclose(np.cov(vectors.T), np.eye(3), atol=1e-3)


def test_a_flow_by_the_command_line(project):
    given = [project / name for name in ("model", "lines.txt")]
    said = runner(fit=fit_verb)("flow", *given, "-o", project / "flow", "--permutation", "reversed")
    assert "50 sentences, mean log-likelihood" in said
    opened = load(project / "flow")
    assert opened.layer.config["permutation"] == "reversed"
    assert encode(opened, CORPUS).shape == (50, 8)


def sentences(path):
    return [text for _, text in read_texts(path) if text.strip()]


def test_json_strings_and_compressed_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text('"one\\ntwo"\n\n"  "\n"three"\n', encoding="utf-8")
    assert sentences(tmp_path / "a.jsonl") == ["one\ntwo", "three"]
    (tmp_path / "a.txt.bz2").write_bytes(bz2.compress(b'"one"\n \ntwo\n'))
    assert sentences(tmp_path / "a.txt.bz2") == ['"one"', "two"]
    for line in ("no", json.dumps({"text": "x"})):
        (tmp_path / "b.jsonl").write_text(f'"a"\n{line}\n', encoding="utf-8")
        with pytest.raises(CorpusError, match=r"b.jsonl:2: .*one JSON string per line"):
            sentences(tmp_path / "b.jsonl")


@pytest.mark.parametrize(
    "transform, settings, words",
    [
        ("pca", {}, "'pca'"),
        ("flow", {"dim": 3}, "--dim 3: a flow keeps every dimension"),
        ("flow", {"permutation": "conv"}, "permutation must be one of random, reversed"),
        ("whitening", {"dim": 9}, "dim must lie between 1 and the encoder's 8"),
    ],
)
def test_a_wrong_setting_is_one_line_and_writes_nothing(project, transform, settings, words):
    with pytest.raises(EncoderError, match=words) as caught:
        fit(transform, [str(project / "model"), str(project / "lines.txt")], project / "out", **settings)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in project.iterdir()) == ["lines.txt", "model"]


def test_bad_files(project):
    (project / "few.txt").write_text("one\n", encoding="utf-8")
    with pytest.raises(EncoderError, match=r"few.txt: a covariance.*got 1"):
        fit("whitening", [str(project / "model"), str(project / "few.txt")], project / "out")
    with pytest.raises(CorpusError, match="no such file"):
        fit("whitening", [str(project / "model"), str(project / "none.txt")], project / "out")
    (project / "taken").mkdir()
    (project / "taken" / "diary.txt").write_text("dear\n", encoding="utf-8")
    with pytest.raises(OutputError, match="has no list of files"):
        fit("whitening", [str(project / "model"), str(project / "lines.txt")], project / "taken")
    assert sorted(path.name for path in project.iterdir()) == ["few.txt", "lines.txt", "model", "taken"]
