"""The model in other packages: each adapter against its real package, and the blocks of docs/integrations.md.

A test of a package that is not installed is skipped; docs/integrations.md has a table of them.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isoglot
from conftest import SENTENCES, build_transformer
from isoglot.integrations import stored_name

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "integrations.md"
BLOCK = re.compile(r"^## (?P<title>[^\n]+)\n(?:(?!^## ).)*?^```python\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = {match["title"]: match for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}
NEEDS = {  # section of the page -> the package that its block imports
    "BERTopic": "bertopic",
    "KeyBERT": "keybert",
    "SetFit": "setfit",
    "LangChain": "langchain_core",
    "LlamaIndex": "llama_index.core",
    "Haystack": "haystack",
    "Chroma": "chromadb",
    "LanceDB": "lancedb",
    "Qdrant": "qdrant_client",
    "sentence-transformers": "sentence_transformers",
    "MTEB": "mteb",
    "Hugging Face's hub": "huggingface_hub",
}
pytestmark = pytest.mark.slow


@pytest.fixture
def model(tmp_path):
    """A model with prompts, from a folder."""
    prompts = {"query": "SENTENCE: ", "passage": "numbers: "}
    build_transformer(normalizes=True, prompts=prompts).save(tmp_path / "model")
    found = isoglot.load(tmp_path / "model")
    assert np.abs(found.encode_query(SENTENCES) - found.encode_document(SENTENCES)).max() > 0.01
    return found


def close(rows, expected):
    np.testing.assert_allclose(np.asarray(rows, np.float32), expected, atol=1e-5)


@pytest.mark.parametrize("title", NEEDS)
def test_the_block_of_a_package(title, tmp_path):
    """As printed, in a process of its own, as packages change settings of the whole process."""
    assert BLOCKS.keys() == NEEDS.keys()
    pytest.importorskip(NEEDS[title])
    text = BLOCKS[title]["text"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    for line, printed in zip(re.findall(r"^print.*$", text, re.MULTILINE), done.stdout.splitlines(), strict=False):
        if expected := re.search(r"  # (\[.*\]|True|Die [^#]*)(?::|$)", line):
            assert printed == expected[1], (line, printed)


@pytest.mark.parametrize("package", ["bertopic", "keybert"])
def test_bertopic_and_keybert_use_the_model(model, package):
    pytest.importorskip(package)
    module = pytest.importorskip(f"isoglot.integrations.{package}")
    utils = pytest.importorskip(f"{package}.backend._utils")
    embedder = module.Embedder(model)
    assert utils.select_backend(embedder) is embedder
    close(embedder.embed(SENTENCES), model.encode(SENTENCES))


def test_langchain(model):
    embeddings = pytest.importorskip("langchain_core.embeddings")
    from isoglot.integrations.langchain import IsoglotEmbeddings

    adapter = IsoglotEmbeddings(model)
    assert isinstance(adapter, embeddings.Embeddings)
    close(adapter.embed_documents(SENTENCES), model.encode_document(SENTENCES))
    close(adapter.embed_query(SENTENCES[0]), model.encode_query(SENTENCES[0]))
    close(asyncio.run(adapter.aembed_query(SENTENCES[0])), model.encode_query(SENTENCES[0]))


def test_llama_index(model):
    pytest.importorskip("llama_index.core")
    from isoglot.integrations.llama_index import IsoglotEmbedding

    adapter = IsoglotEmbedding(model, embed_batch_size=3)
    close(adapter.get_text_embedding_batch(SENTENCES), model.encode_document(SENTENCES))
    close(adapter.get_text_embedding(SENTENCES[1]), model.encode_document(SENTENCES[1]))
    close(adapter.get_query_embedding(SENTENCES[0]), model.encode_query(SENTENCES[0]))
    close(asyncio.run(adapter.aget_query_embedding(SENTENCES[0])), model.encode_query(SENTENCES[0]))
    assert adapter.model_name == model.origin


@pytest.mark.parametrize("engine", ["torch", "onnx"])
def test_the_name_that_packages_store_opens_the_same_model(model, engine, tmp_path):
    """What is opened with other settings, or changed since, would be another model in the stored pipeline or table."""
    model.save(tmp_path / "graph", weights="onnx")
    folder = tmp_path / "graph"
    assert stored_name(isoglot.load(folder, engine=engine)) == str(folder)
    for settings in ({"prompt": "q: "}, {"max_length": 7}):
        with pytest.raises(isoglot.IsoglotError, match="save the model, and pass its folder"):
            stored_name(isoglot.load(folder, engine=engine, **settings))
    changed = isoglot.load(folder, engine=engine)
    changed.prompts = {"query": "q: "}
    with pytest.raises(isoglot.IsoglotError, match="save the model"):
        stored_name(changed)
    assert stored_name(build_transformer()) == ""


def test_haystack_stores_the_name_of_the_model(model):
    haystack = pytest.importorskip("haystack")
    from isoglot.integrations.haystack import IsoglotDocumentEmbedder, IsoglotTextEmbedder

    pipeline = haystack.Pipeline()
    pipeline.add_component("documents", IsoglotDocumentEmbedder(model))
    pipeline.add_component("query", IsoglotTextEmbedder(model))
    again = haystack.Pipeline.loads(pipeline.dumps(), allowed_modules=["isoglot.integrations.haystack"])
    documents = [haystack.Document(content=text, meta={"n": n}) for n, text in enumerate(SENTENCES)]
    answer = again.run({"documents": {"documents": documents}, "query": {"text": SENTENCES[0]}})
    close([document.embedding for document in answer["documents"]["documents"]], model.encode_document(SENTENCES))
    assert [document.meta["n"] for document in answer["documents"]["documents"]] == [*range(len(SENTENCES))]
    close(answer["query"]["embedding"], model.encode_query(SENTENCES[0]))
    assert documents[0].embedding is None


def test_a_chroma_collection_opens_its_model(model, tmp_path):
    chromadb = pytest.importorskip("chromadb")
    from isoglot.integrations.chroma import IsoglotEmbeddingFunction

    client = chromadb.PersistentClient(tmp_path / "chroma")
    collection = client.create_collection("texts", embedding_function=IsoglotEmbeddingFunction(model))
    ids = [*map(str, range(len(SENTENCES)))]
    collection.add(ids=ids, documents=SENTENCES)
    collection = client.get_collection("texts")  # the function is made of the stored name
    stored = collection.get(ids=ids, include=["embeddings"])
    places = [stored["ids"].index(name) for name in ids]
    close(stored["embeddings"][places], model.encode_document(SENTENCES))
    found = collection.query(query_texts=SENTENCES[:2], n_results=3)
    cosines = model.encode_query(SENTENCES[:2]) @ model.encode_document(SENTENCES).T
    close(found["distances"], 1 - np.sort(cosines, axis=1)[:, ::-1][:, :3])


def test_a_lancedb_table_opens_its_model(model, tmp_path):
    lancedb = pytest.importorskip("lancedb")
    from lancedb.pydantic import LanceModel, Vector

    from isoglot.integrations.lancedb import embedding_function

    function = embedding_function(model)

    class Row(LanceModel):
        text: str = function.SourceField()
        vector: Vector(function.ndims()) = function.VectorField()

    lancedb.connect(tmp_path / "lance").create_table("texts", schema=Row).add([{"text": text} for text in SENTENCES])
    table = lancedb.connect(tmp_path / "lance").open_table("texts")
    found = table.search(SENTENCES[0]).distance_type("cosine").limit(3).to_list()
    cosines = model.encode_document(SENTENCES) @ model.encode_query(SENTENCES[0])
    close([row["_distance"] for row in found], 1 - np.sort(cosines)[::-1][:3])
    rows = {row["text"]: row["vector"] for row in table.to_arrow().to_pylist()}
    close([rows[text] for text in SENTENCES], model.encode_document(SENTENCES))


def test_setfit_trains_the_model(model):
    setfit = pytest.importorskip("setfit")
    datasets = pytest.importorskip("datasets")
    linear = pytest.importorskip("sklearn.linear_model")
    from isoglot.integrations.sentence_transformers import as_sentence_transformer

    body = as_sentence_transformer(model)
    close(body.encode(SENTENCES), model.encode(SENTENCES))
    close(body.encode_query(SENTENCES), model.encode_query(SENTENCES))
    close(body.encode_document(SENTENCES), model.encode_document(SENTENCES))
    classifier = setfit.SetFitModel(model_body=body, model_head=linear.LogisticRegression())
    data = datasets.Dataset.from_dict({"text": SENTENCES[:8], "label": [0, 1] * 4})
    settings = setfit.TrainingArguments(batch_size=4, max_steps=2, report_to="none", save_strategy="no")
    setfit.Trainer(model=classifier, args=settings, train_dataset=data).train()
    assert np.abs(body.encode(SENTENCES) - model.encode(SENTENCES)).max() > 1e-6
    assert classifier.predict(SENTENCES).shape == (len(SENTENCES),)


def test_what_sentence_transformers_cannot_run_is_an_error(model):
    pytest.importorskip("sentence_transformers")
    from isoglot.encoders import StaticEncoder, towers
    from isoglot.integrations.sentence_transformers import as_sentence_transformer

    backend = model.tokenizer.backend_tokenizer
    parts = {name: StaticEncoder.create(backend, 8) for name in ("one", "other")}
    with pytest.raises(isoglot.IsoglotError, match="Towers"):
        as_sentence_transformer(towers.Towers(parts, {"one": ["LATIN"]}))
