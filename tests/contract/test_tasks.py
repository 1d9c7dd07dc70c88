"""What every task must keep: perfect vectors score one, random ones score chance, and order of languages is no matter.

A new task is added here with a folder of its data in which the last word of a text tells its meaning.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.run import evaluate

PAIRS = 400
CODES = ("deu", "kor")


def tatoeba_data(folder):
    for code in CODES:
        for side in (code, "eng"):
            lines = "".join(f"{code} {side} {i}\n" for i in range(PAIRS))
            (folder / f"tatoeba.{code}-eng.{side}").write_text(lines, encoding="utf-8")


def retrieval_data(folder):
    lines = "".join("\t".join(f"{code} {i}" for code in (*CODES, "eng")) + "\n" for i in range(PAIRS))
    (folder / "retrieval.tsv").write_text("\t".join((*CODES, "eng")) + "\n" + lines, encoding="utf-8")


# Task -> what writes its data, and the share that a random encoder gets right.
DATA = {"tatoeba": (tatoeba_data, 1 / PAIRS), "retrieval": (retrieval_data, 1 / PAIRS)}


def random_vector(text):
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(32)


def oracle(texts):
    return np.array([random_vector(text.split()[-1]) for text in texts])


def chance(texts):
    return np.array([random_vector(text) for text in texts])


@pytest.fixture(params=sorted(TASKS))
def task(request, tmp_path):
    write, level = DATA[request.param]
    write(tmp_path)
    return request.param, tmp_path, level


def test_perfect_vectors_score_one(task):
    name, folder, _ = task
    scores = evaluate(oracle, [name], data=folder)
    assert scores
    assert {score.value for score in scores} == {1.0}


def test_random_vectors_score_chance(task):
    name, folder, level = task
    for score in evaluate(chance, [name], data=folder):
        items = score.n if score.items is not None else score.n * PAIRS
        assert abs(score.value - level) <= 5 * (level * (1 - level) / items) ** 0.5


def test_scores_name_their_task_and_the_subsets_announced(task):
    name, folder, _ = task
    scores = evaluate(oracle, [name], data=folder)
    subsets = TASKS[name].subsets(folder)
    assert TASKS[name].name == name
    assert {score.task for score in scores} == {name}
    assert tuple(dict.fromkeys(score.subset for score in scores if score.items is not None)) == subsets
    assert len({(score.subset, score.metric) for score in scores}) == len(scores)


def test_items_agree_with_the_value(task):
    name, folder, _ = task
    for score in evaluate(chance, [name], data=folder):
        if score.items is not None:
            assert score.items.shape == (score.n,)
            assert score.items.mean() == pytest.approx(score.value)


def test_languages_choose_subsets_and_change_no_score(task):
    name, folder, _ = task
    everything = {(s.subset, s.metric): s.value for s in evaluate(chance, [name], data=folder)}
    chosen = [s for s in evaluate(chance, [name], data=folder, languages=["ko"]) if s.items is not None]
    assert {score.subset for score in chosen} == {"kor-eng"}
    assert all(everything[score.subset, score.metric] == score.value for score in chosen)


def test_unusable_vectors_are_refused_with_task_and_language(task):
    name, folder, _ = task
    with pytest.raises(EvaluationError, match=rf"{name} deu-eng, language deu, (line|pair) 1: .*NaN"):
        evaluate(lambda texts: chance(texts) * np.nan, [name], data=folder)
    with pytest.raises(EvaluationError, match=rf"{name} deu-eng, language deu: .*shape"):
        evaluate(lambda texts: chance(texts)[1:], [name], data=folder)


def test_no_data_is_no_subset(task, tmp_path_factory):
    name, _, _ = task
    assert TASKS[name].subsets(tmp_path_factory.mktemp("empty")) == ()
    assert TASKS[name].needs
