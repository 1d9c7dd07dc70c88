"""What people do with a model needs neither torch nor transformers nor onnx.

Packages of these names that fail to import stand for their absence.
"""

import json
import os
import subprocess
import sys

import pytest

from conftest import SENTENCES, build_transformer
from isoglot.encoders import StaticEncoder

ABSENT = ("torch", "transformers", "onnx", "peft", "sentence_transformers")


@pytest.fixture
def without_torch(tmp_path):
    """Runs Python code in a folder, in a process in which these packages are not installed; its standard output."""
    site = tmp_path / "site"
    for name in ABSENT:
        (site / name).mkdir(parents=True)
        code = f'raise ModuleNotFoundError("No module named {name!r}", name={name!r})\n'
        (site / name / "__init__.py").write_text(code)
    path = os.pathsep.join([str(site), *(part for part in sys.path if part)])

    def run(*words, fails=False):
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
            env=os.environ | {"PYTHONPATH": path, "ISOGLOT_CACHE": str(tmp_path / "cache")},
        )  # fmt: skip
        assert (done.returncode != 0) is fails, done.stderr
        return done.stderr if fails else done.stdout

    return run


@pytest.fixture(params=["static", "graph"])
def model(request, tmp_path, toy_static):
    """A folder that the engines without torch open."""
    if request.param == "static":
        toy_static.save(tmp_path / "model")
    else:
        build_transformer(normalizes=True).eval().save(tmp_path / "model", weights="onnx")
    (tmp_path / "a.eng").write_text("\n".join(SENTENCES[:6]) + "\n", encoding="utf-8")
    (tmp_path / "b.deu").write_text("\n".join(SENTENCES[2:8]) + "\n", encoding="utf-8")
    rows = [f"{one}\t{other}" for one, other in zip(SENTENCES[:5], SENTENCES[5:], strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(["eng\tdeu", *rows]) + "\n", encoding="utf-8")
    return tmp_path / "model"


CALLS = """
import sys
import isoglot
model = isoglot.load("model")
texts = {texts!r}
vectors = model.encode(texts)
assert vectors.shape == (len(texts), model.dim)
assert model.encode(texts, workers=2, truncate_dim=4).shape == (len(texts), 4)
assert model.similarity(texts[0], texts).shape == (1, len(texts))
assert len(isoglot.mine(model, texts, texts[::-1]))
index = isoglot.Index.build(model, texts)
assert index.search(texts[3], k=1)[0].text == texts[3]
scores = isoglot.evaluate(model, pairs=[(text, text) for text in texts])
assert not {{*{absent!r}}} & {{*sys.modules}}, "imported"
print(len(scores))
"""


@pytest.mark.slow
def test_the_notebook_api(without_torch, model, tmp_path):
    code = tmp_path / "calls.py"
    code.write_text(f'if __name__ == "__main__":\n    exec({CALLS.format(texts=SENTENCES, absent=ABSENT)!r})\n')
    assert int(without_torch(code)) > 0


VERBS = {
    "encode": ("encode", "model", "a.eng", "-o", "a.npy"),
    "mine": ("mine", "model", "a.eng", "b.deu", "-o", "mined.tsv"),
    "filter": ("filter", "pairs.tsv", "--model", "model", "-o", "kept.jsonl"),
    "negatives": ("negatives", "model", "pairs.tsv", "-o", "triplets.jsonl"),
    "index": ("index", "model", "a.eng", "-o", "index"),
    "search": ("search", "a.eng", "the cat", "--model", "model"),
    "plot": ("plot", "model", "a.eng", "-o", "map.html", "--layout", "pca"),
    "models": ("models", "list"),
    "tasks": ("tasks",),
    "recipes": ("recipe", "list"),
}


@pytest.mark.slow
@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS)
def test_a_verb(without_torch, model, words):
    without_torch("-m", "isoglot", *words)


def test_a_folder_that_is_no_model_asks_for_no_torch(without_torch):
    assert "not a model folder" in without_torch("-c", "import isoglot; isoglot.load('site')", fails=True)


def test_onnx_runtime_sends_and_stores_nothing(without_torch, tmp_path):
    home = "import os; os.environ |= {'HOME': os.getcwd(), 'XDG_CACHE_HOME': ''}; "
    without_torch("-c", f"{home}import isoglot; isoglot.load().encode('a')")
    assert [path.name for path in tmp_path.rglob("*") if "onnxruntime" in path.name or "deviceid" in path.name] == []


@pytest.mark.slow
def test_what_needs_torch_says_which_extra(without_torch, tmp_path):
    StaticEncoder.create(build_transformer().tokenizer.backend_tokenizer, 8, seed=1).save(tmp_path / "model")
    build_transformer().save(tmp_path / "plain")
    said = without_torch("-m", "isoglot", "train", "demo/pairs", "-o", "run", fails=True)
    assert 'pip install "isoglot[torch]"' in said
    for call in ('isoglot.load("plain")', 'isoglot.train("model", [("a", "b")], steps=1)'):
        line = without_torch("-c", f"import isoglot; {call}", fails=True).strip().splitlines()[-1]
        assert 'pip install "isoglot[torch]"' in line, line
    for package in ("encoders", "objectives"):
        line = without_torch("-c", f"import isoglot.{package}", fails=True).strip().splitlines()[-1]
        assert 'MissingExtraError: torch is not installed, and this needs it: pip install "isoglot[torch]"' in line
    for name, named in [("isoglot-static", "isoglot[torch]"), ("nope", "unknown packaged model")]:
        assert named in without_torch("-m", "isoglot", "models", "get", name, fails=True)
    assert json.loads(without_torch("-c", 'import json; print(json.dumps("started"))')) == "started"
