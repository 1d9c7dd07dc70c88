"""Settings of `encode` that sentence-transformers has too, and what type checkers know of all."""

import inspect
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
import torch

import isoglot
from conftest import SENTENCES, build_tokenizer, build_transformer
from isoglot.core.errors import EncoderError
from isoglot.encoders import StaticEncoder
from isoglot.model.base import Model, Settings

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """The folder of a model that is opened by ONNX Runtime."""
    folder = tmp_path_factory.mktemp("graph") / "model"
    build_transformer().save(folder, weights="onnx")
    return folder


@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_vectors_of_tokens_have_the_vector_of_the_text_as_their_mean(graph, engine):
    model = build_transformer() if engine == "torch" else isoglot.load(graph)
    texts = [*SENTENCES, SENTENCES[2], ""]
    found = model.encode(texts, output_value="token_embeddings", batch_size=4)
    lengths = model.tokenize(texts).lengths
    assert [row.shape for row in found] == [(length, model.dim) for length in lengths]
    tolerance = 1e-5 if engine == "torch" else 0.02  # layers in int8 depend on the chunk
    np.testing.assert_allclose([row.mean(0) for row in found], model.encode(texts, batch_size=4), atol=tolerance)
    assert model.encode(texts[0], output_value="token_embeddings").shape == found[0].shape
    assert model.encode([], output_value="token_embeddings") == []
    tensor = model.encode(texts[0], output_value="token_embeddings", convert_to_numpy=False)
    np.testing.assert_array_equal(tensor, model.encode(texts[0], output_value="token_embeddings"))
    (tensor,) = model.encode(texts[:1], output_value="token_embeddings", convert_to_numpy=False)
    np.testing.assert_array_equal(tensor, model.encode(texts[0], output_value="token_embeddings"))
    found[2][:] = 0  # of the same text as the sixth, whose vectors are its own
    assert found[5].any()


@pytest.fixture(params=["float32", "onnx"])
def without_torch(request, tmp_path, toy_static, graph):
    """A model that is opened without torch."""
    if request.param == "float32":
        toy_static.save(tmp_path / "model")
    else:
        shutil.copytree(graph, tmp_path / "model")
    return isoglot.load(tmp_path / "model")


def test_settings_that_were_changed_are_saved(without_torch, tmp_path):
    model = without_torch
    assert not isinstance(model, torch.nn.Module)
    model.prompt, model.prompts, model.max_seq_length = "a: ", {"query": "b: "}, 7
    model.save(tmp_path / "copy")
    copy = isoglot.load(tmp_path / "copy")
    assert (copy.prompt, copy.max_length) == ("a: ", 7)
    assert copy.prompts["query"] == "b: "


def test_a_model_saved_over_one_that_is_open_is_not_taken_for_it(without_torch, tmp_path):
    model = without_torch
    vectors, identity = model.encode(SENTENCES), model.identity()
    StaticEncoder.create(build_tokenizer(), 8, seed=2).save(tmp_path / "model")
    for call in (model.trainable, partial(model.save, tmp_path / "copy"), partial(model.encode, "a", precision="tf32")):
        with pytest.raises(EncoderError, match="another model was saved there since"):
            call()
    np.testing.assert_array_equal(model.encode(SENTENCES), vectors)
    try:
        assert model.identity() == identity
    except EncoderError as error:
        assert "another model was saved there" in str(error)  # noqa: PT017
    shutil.rmtree(model.folder)
    with pytest.raises(EncoderError):
        model.trainable()


def test_a_graph_has_a_maximum_length(graph):
    model = isoglot.load(graph)
    for length in (1, 49):
        with pytest.raises(ValueError, match="max_length must lie between 2 and 48"):
            model.max_seq_length = length
        with pytest.raises(EncoderError, match="model: max_length must lie between 2 and 48"):
            isoglot.load(graph, max_length=length)
    model.max_seq_length = 2
    assert model.tokenize(SENTENCES).lengths.tolist() == [2] * len(SENTENCES)


def test_vectors_of_tokens_as_sentence_transformers_gives_them(tmp_path):
    transformers = pytest.importorskip("sentence_transformers")
    encoder = build_transformer(prompts={"query": "q: "}).eval()
    encoder.save(tmp_path / "model")
    other = transformers.SentenceTransformer(str(tmp_path / "model"), device="cpu")
    settings = {"prompt_name": "query", "output_value": "token_embeddings"}
    theirs, ours = other.encode(SENTENCES, **settings), encoder.encode(SENTENCES, **settings, convert_to_tensor=True)
    assert len(theirs) == len(ours)
    for one, another in zip(theirs, ours, strict=True):
        torch.testing.assert_close(one, another, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "settings", [{"truncate_dim": 4}, {"normalize_embeddings": True}, {"output": "x.npy"}, {"workers": 2}]
)
def test_vectors_of_tokens_have_no_settings_of_vectors_of_texts(settings):
    with pytest.raises(ValueError, match="leave them out"):
        build_transformer().encode(SENTENCES, output_value="token_embeddings", **settings)


def test_a_model_is_moved_to_the_device_of_the_call(toy_static):
    assert toy_static.encode(SENTENCES, device=torch.device("cpu")).shape == (len(SENTENCES), toy_static.dim)
    assert toy_static._workers_on(["cpu", "cpu"], 1) == ["cpu", "cpu"]
    toy_static._place = torch.device  # "meta" stands for an accelerator
    assert toy_static._workers_on("meta", 1) == 1
    assert toy_static.device.type == "meta"


def test_type_checkers_know_the_settings_of_encode():
    assert get_type_hints(Settings).keys() == inspect.signature(Model.encode).parameters.keys() - {"self", "texts"}


CALLS = """
import isoglot
from isoglot.model import encode

model = isoglot.load()
reveal_type(model.encode(["a"], batch_size=2, device="cpu"))
reveal_type(model.encode(sentences=["a"], convert_to_tensor=True))
model.encode("a", normalise=True)
model.encode_query("a", normalise=True)
encode(model, "a", normalise=True)
model.encode("a", batch_size="large")
"""


@pytest.mark.slow
def test_mypy_rejects_unknown_settings(tmp_path):
    mypy = shutil.which("mypy", path=str(Path(sys.executable).parent))
    if mypy is None:
        pytest.skip("mypy is not installed (extra `dev`)")
    (tmp_path / "calls.py").write_text(CALLS)
    words = [mypy, "--config-file", str(ROOT / "pyproject.toml"), "--no-pretty", str(tmp_path / "calls.py")]
    lines = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    notes = [line for line in lines if "Revealed type" in line]
    assert ["ndarray" in notes[0], "Tensor" in notes[1]] == [True, True]
    wrong = {line.split(":")[1] for line in lines if ": error:" in line}
    assert wrong == {"8", "9", "10", "11"}, lines
    assert sum('Unexpected keyword argument "normalise"' in line for line in lines) == 3
