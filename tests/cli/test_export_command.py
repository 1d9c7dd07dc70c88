"""`isoglot export MODEL --format onnx`, and `convert` to the same form and back."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from conftest import SENTENCES, build_transformer
from isoglot.cli.main import main
from isoglot.encoders import load
from isoglot.model.layout import GRAPH

pytest.importorskip("onnx", reason="needs the extra `onnx`")


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def given(*words):
        monkeypatch.setattr(sys, "argv", ["isoglot", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, capsys.readouterr().err

    return given


def test_a_model_is_exported_and_comes_back(run, tmp_path):
    build_transformer().save("model")
    code, err = run("export", "model", "--format", "onnx", "--output", "made", "--words", "int8")
    assert code == 0
    assert "MB: made" in err
    assert run("convert", "model", "-o", "same", "--weights", "onnx", "--words", "int8")[0] == 0
    assert (tmp_path / "made" / GRAPH).read_bytes() == (tmp_path / "same" / GRAPH).read_bytes()
    assert run("convert", "made", "-o", "full", "--weights", "float32")[0] == 0
    assert (tmp_path / "full" / "model.safetensors").exists()
    np.testing.assert_allclose(load("full").encode(SENTENCES), load("made").encode(SENTENCES), atol=1e-6)


def test_what_cannot_be_exported_is_said(run, toy_static, tmp_path):
    toy_static.save("static")
    code, err = run("export", "static", "--format", "onnx", "-o", "made")
    assert code == 1
    assert "only transformers can be exported to ONNX, and this is a StaticEncoder" in err
    code, err = run("export", "static", "-o", "made.tsv")
    assert code == 1
    assert "static: is a model; to export it, pass --format onnx" in err
    code, err = run("export", "static", "--format", "onnx", "-o", "made", "--words", "int3")
    assert code == 1
    assert "'int3'" in err
    assert not (tmp_path / "made").exists()
