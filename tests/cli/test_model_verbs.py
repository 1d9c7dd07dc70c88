"""Verbs that make a model or vectors of one: `trim`, `fit`, `average`, `convert`, `export` and `encode`."""

import json

import numpy as np
import pytest
import torch
from command_line import runner

from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.cli import encode, index, models
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder, load, vocabulary
from isoglot.model import encode as vectors_of
from isoglot.model import engine
from isoglot.model.layout import GRAPH
from isoglot.model.output import find_ranges, quantize_vectors
from isoglot.model.resumable import encode_file

run = runner(
    trim=models.trim, fit=models.fit, average=models.average, convert=models.convert, export=index.export,
    encode=encode.encode,
)  # fmt: skip
CORPUS = [f"{a} {b}" for a in SENTENCES for b in SENTENCES[:5]]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two models, `model` and `other`, and text in every kind of file, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for seed, name in enumerate(("other", "model")):
        StaticEncoder.create(build_tokenizer(), 8, seed=seed).save(name)
    hard = {"texts": [SENTENCES[5]], "langs": ["jpn"], "hard_negatives": [SENTENCES[6]], "hard_langs": ["zho"]}
    files = {
        "few.txt": "".join(f"{text}\n" for text in SENTENCES[:3]), "more.jsonl": json.dumps(hard) + "\n",
        "pairs.tsv": f"spa\trus\n{SENTENCES[3]}\t{SENTENCES[4]}\n", "many.txt": "\n\n".join(CORPUS) + "\n",
        "lines.txt": "".join(f"{text}\n" for text in SENTENCES),
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_every_kind_of_corpus_counts_when_trimming(project):
    said = run("trim", "model", "few.txt", "pairs.tsv", "more.jsonl", "-o", "small")
    before, after = load("model"), load("small")
    np.testing.assert_array_equal(vectors_of(after, SENTENCES[:7]), vectors_of(before, SENTENCES[:7]))
    assert f"7 sentences use {len(after.table)} of {len(before.table)} pieces" in said.replace(",", "")
    assert "vectors of the corpus unchanged" in said
    assert len(after.table) < len(before.table)


def test_the_options_of_trim_are_heeded(project, monkeypatch):
    words = ("trim", "model", "few.txt", "-o", "small", "--prompt", "%: ", "--minimum-count", 2, "--no-keep-characters")
    assert "sentences with rarer pieces have other vectors" in run(*words)
    small = load("small")
    assert small.prompt == "%: "
    pieces = small.tokenizer.get_vocab()
    assert "%" in pieces
    assert "猫" not in pieces
    monkeypatch.setattr(vocabulary, "KINDS", ("Unigram",))
    with pytest.raises(EncoderError, match=r"model: .*vocabulary"):
        run("trim", "model", "few.txt", "-o", "other-small")
    assert not (project / "other-small").exists()


def test_whitening_and_a_flow(project):
    assert "50 sentences, 3 dimensions with" in run("fit", "whitening", "model", "many.txt", "-o", "white", "--dim", 3)
    vectors = vectors_of(load("white"), CORPUS, normalize_embeddings=False)
    np.testing.assert_allclose(np.cov(vectors.T), np.eye(3), atol=1e-3)
    said = run("fit", "flow", "model", "many.txt", "-o", "flow", "--permutation", "reversed")
    assert "50 sentences, mean log-likelihood" in said
    opened = load("flow")
    assert opened.layer.config["permutation"] == "reversed"
    assert vectors_of(opened, CORPUS).shape == (50, 8)


@pytest.mark.parametrize(
    ("weights", "first"), [((), 0.5), (("--weights", ".25, .75"), 0.25), (("--weights=1.5,-.5",), 1.5)]
)
def test_the_mean_of_models_is_written(weights, first, project):
    assert "2 models" in run("average", "model", "other", *weights, "-o", "mean")
    one, two, mean = (load(name).table for name in ("model", "other", "mean"))
    torch.testing.assert_close(mean, first * one + (1 - first) * two)


def test_convert_changes_the_weights_and_back(project):
    run("convert", "model", "-o", "int8")
    run("convert", "int8", "-o", "full", "--weights", "float32")
    assert "MB: small" in run("convert", "full", "-o", "small", "--weights", "int4", "--words", "int8")
    assert (load("small").encode(SENTENCES) == load("full").encode(SENTENCES)).all()


@pytest.mark.slow
def test_a_model_is_exported_as_onnx_and_comes_back(project):
    pytest.importorskip("onnx", reason="needs the extra `onnx`")
    build_transformer().save("transformer")
    assert "MB: made" in run("export", "transformer", "--format", "onnx", "--output", "made", "--words", "int8")
    run("convert", "transformer", "-o", "same", "--weights", "onnx", "--words", "int8")
    assert (project / "made" / GRAPH).read_bytes() == (project / "same" / GRAPH).read_bytes()
    run("convert", "made", "-o", "full", "--weights", "float32")
    assert (project / "full" / "model.safetensors").exists()
    np.testing.assert_allclose(load("full").encode(SENTENCES), load("made").encode(SENTENCES), atol=1e-6)


def test_encoded_rows_have_the_asked_shape(project):
    said = run("encode", "model", "lines.txt", "-o", "a.npy", "--truncate-dim", 3, "--dtype", "float16")
    rows = np.load("a.npy")
    assert (rows.shape, rows.dtype) == ((len(SENTENCES), 3), np.float16)
    assert "10 lines, 3 dimensions" in said
    run("encode", "model", "lines.txt", "-o", "b.npy", "--devices", "cpu, ", "--no-normalize")
    expected = vectors_of(load("model"), SENTENCES, normalize_embeddings=False)
    np.testing.assert_allclose(np.load("b.npy"), expected, atol=1e-6)


def test_a_calibration_is_checked_before_anything_is_encoded(project):
    vectors = vectors_of(load("model"), SENTENCES)
    np.save("ranges.npy", find_ranges(vectors[:5]))
    np.save("wrong.npy", np.eye(2))
    words = ("encode", "model", "lines.txt", "-o", "a.npy", "--output-precision", "int8", "--calibration")
    before = {path.name for path in project.iterdir()}
    with pytest.raises(EncoderError, match=r"wrong\.npy: .*8 dimensions, got 2"):
        run(*words, "wrong.npy")
    with pytest.raises(EncoderError, match=r"truncate_dim .*got 9"):
        run(*words, "ranges.npy", "--truncate-dim", 9)
    assert {path.name for path in project.iterdir()} == before
    run(*words, "ranges.npy")
    expected = quantize_vectors(vectors, "int8", calibration=vectors[:5])
    assert np.abs(np.load("a.npy").astype(int) - expected).max() <= 1


def test_an_encoding_resumes(project, monkeypatch):
    monkeypatch.setattr(engine, "STATIC_WINDOW", 4)

    def stop(done, total):
        if done > 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_file(load("model"), project / "lines.txt", output=project / "a.npy", progress=stop)
    said = run("encode", "model", "lines.txt", "-o", "a.npy")
    assert "4 lines" in said
    assert "resuming" in said
    assert len(np.load("a.npy")) == len(SENTENCES)


def test_the_format_of_vectors_follows_the_name_of_the_file(project):
    parquet = pytest.importorskip("pyarrow.parquet")
    before = {path.name for path in project.iterdir()}
    for name in ("a.npy", "a.jsonl", "a.parquet"):
        run("encode", "model", "lines.txt", "-o", name)
    rows, table = np.load("a.npy"), parquet.read_table("a.parquet").to_pydict()
    objects = [json.loads(line) for line in (project / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert table["text"] == [one["text"] for one in objects] == SENTENCES
    for made in (table["vector"], [one["vector"] for one in objects]):
        np.testing.assert_allclose(made, rows, atol=1e-7)
    assert {path.name for path in project.iterdir()} - before == {"a.jsonl", "a.npy", "a.parquet"}
