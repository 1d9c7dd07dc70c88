"""The example for Node gives the vectors of Python."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

import isoglot
from conftest import SENTENCES, build_transformer
from isoglot.encoders.onnx_export import write_onnx
from isoglot.model import layout

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "javascript"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("node") is None, reason="needs Node"),
    pytest.mark.skipif(not (EXAMPLE / "node_modules").exists(), reason="make slow installs its packages"),
]
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra `onnx`")
PAD = 1  # of the vocabulary of isoglot-small
TEXTS = [
    *(
        "Guten Morgen!",
        "Good morning!",
        "おはようございます。",
        "صباح الخير",
        "सुप्रभात",
        "Καλημέρα 😀",
        "  two   spaces  ",
    ),
    *("ＦＵＬＬ width", "cafe\u0301 and café", "中文句子没有空格", "สวัสดีตอนเช้า", "A long one. " * 300),
]


def run(program, folder, *words, texts=()):
    command = ["node", EXAMPLE / program, folder, *words]
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return np.array([json.loads(line) for line in done.stdout.splitlines()])


def test_in_float32_the_vectors_are_equal(tmp_path):
    encoder = build_transformer(prompt="query: ", dim=8, normalizes=True).eval()
    write_onnx(encoder, tmp_path / "model", words="float32", layers="float32")
    texts = [*SENTENCES, "many words " * 50]
    np.testing.assert_allclose(run("encode.mjs", tmp_path / "model", texts=texts), encoder.encode(texts), atol=1e-5)


def run_graph(folder, ids):
    session = onnxruntime.InferenceSession(folder / layout.GRAPH)
    (rows,) = session.run(["sentence_embedding"], {"input_ids": ids, "attention_mask": (ids != PAD).astype(np.int64)})
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    encoder = isoglot.encoders.load("isoglot-small", device="cpu")
    encoder.save(folder, weights="onnx")
    assert encoder.pad == PAD
    return folder, encoder, run_graph(folder, encoder.tokenize(TEXTS).pad(PAD)[0])


def test_the_default_model_has_the_same_vectors_in_both(small):
    folder, encoder, rows = small
    found = run("encode.mjs", folder, texts=TEXTS)
    assert (found * rows).sum(1).min() > 0.9999  # the same graph, in two builds of ONNX Runtime
    assert (found * encoder.encode(TEXTS)).sum(1).min() > 0.99


def test_transformers_js_finds_the_files(small):
    if not (EXAMPLE / "node_modules" / "@huggingface" / "transformers").exists():
        pytest.skip("needs the optional package @huggingface/transformers")
    folder, encoder, rows = small
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    ids = tokenizer.encode(TEXTS[-1]).ids[: encoder.max_length]  # without the special token at the end, as it cuts them
    expected = np.concatenate([rows[:-1], run_graph(folder, np.array([ids]))])
    assert (run("pipeline.mjs", folder, *TEXTS) * expected).sum(1).min() > 0.9999
