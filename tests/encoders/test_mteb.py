"""An encoder of isoglot as a model of `mteb`, run by `mteb` itself on tasks that need no hub."""

from __future__ import annotations

import numpy as np
import pytest

import isoglot
from isoglot.encoders.mteb import for_mteb


@pytest.mark.slow
def test_mteb_runs_it_and_gets_the_same_scores_as_we_do(toy_static):
    mteb = pytest.importorskip("mteb")
    from mteb.mocks.mock_tasks.sts import MockSTSTask
    from mteb.models.models_protocols import EncoderProtocol

    model = for_mteb(toy_static, name="team/toy")
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "team/toy"
    (result,) = mteb.evaluate(model, [MockSTSTask()], cache=None).task_results
    task = MockSTSTask()
    task.load_data()
    rows = task.dataset["test"]
    first, second = (isoglot.encode(toy_static, rows[f"sentence{side}"], normalize=True) for side in (1, 2))
    from scipy.stats import spearmanr

    expected = spearmanr(np.asarray(rows["score"]), (first * second).sum(1)).statistic
    assert result.scores["test"][0]["cosine_spearman"] == pytest.approx(expected)


def test_texts_of_all_batches_come_in_order(toy_static):
    pytest.importorskip("mteb")
    model = for_mteb(toy_static)
    assert model.name == "isoglot/StaticEncoder"
    vectors = model.encode([{"text": ["a b", "c"]}, {"text": ["d"]}], task_metadata=None, hf_split="test")
    np.testing.assert_allclose(vectors, isoglot.encode(toy_static, ["a b", "c", "d"]))
    assert model.similarity(vectors, vectors).shape == (3, 3)
    assert model.similarity_pairwise(vectors, vectors).shape == (3,)
