"""What every task must keep, by registration and its case in `tests/evaluation/cases_<kind>.py`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from cases import all_cases, by_text

from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS
from isoglot.evaluation.run import evaluate
from isoglot.evaluation.statistics import STATISTICS

CASES = all_cases()
# A task that trains the model itself cannot be given a function; its own tests see to it.
OF_VECTORS = sorted(name for name, task in TASKS.items() if not getattr(task, "needs_model", False))


@pytest.fixture(params=OF_VECTORS)
def task(request, tmp_path):
    case = CASES[request.param]
    case.write(tmp_path)
    return request.param, tmp_path, case


def test_every_task_has_a_case_and_no_case_lacks_its_task():
    assert sorted(CASES) == OF_VECTORS


def test_perfect_vectors_give_the_perfect_value(task):
    name, folder, case = task
    scores = evaluate(case.oracle, [name], data=folder)
    assert scores
    for score in scores:
        assert score.value == pytest.approx(case.perfect[score.metric], abs=1e-9), score


def test_random_vectors_give_chance(task):
    name, folder, case = task
    for score in evaluate(by_text, [name], data=folder):
        level, tolerance = case.chance[score.metric]
        assert abs(score.value - level) <= tolerance, score


def test_scores_name_their_task_and_the_subsets_announced(task):
    name, folder, case = task
    scores = evaluate(case.oracle, [name], data=folder)
    assert TASKS[name].name == name
    assert {score.task for score in scores} == {name}
    assert tuple(dict.fromkeys(score.subset for score in scores if not score.over)) == TASKS[name].subsets(folder)
    assert len({(score.subset, score.metric) for score in scores}) == len(scores)
    assert all(math.isfinite(score.value) and score.n > 0 for score in scores)


def test_averages_are_over_subsets_that_are_there(task):
    name, folder, _ = task
    scores = evaluate(by_text, [name], data=folder)
    for score in scores:
        if score.over:
            parts = [other.value for other in scores if other.subset in score.over and other.metric == score.metric]
            assert score.n == len(score.over) == len(parts)
            assert score.value == pytest.approx(sum(parts) / len(parts))


def test_items_make_the_value(task):
    name, folder, _ = task
    for score in evaluate(by_text, [name], data=folder):
        if score.items is not None:
            assert len(score.items) == score.n
            assert STATISTICS[score.statistic](score.items) == pytest.approx(score.value, abs=1e-6)


def test_details_are_tables_of_strings_and_finite_numbers(task):
    name, folder, _ = task
    for score in evaluate(by_text, [name], data=folder):
        for detail in score.details:
            assert all(len(row) == len(detail.columns) for row in detail.rows)
            assert all(isinstance(cell, str) or math.isfinite(cell) for row in detail.rows for cell in row)


def test_a_second_run_is_the_same(task):
    name, folder, _ = task
    first, second = (evaluate(by_text, [name], data=folder) for _ in range(2))
    assert first == second
    for a, b in zip(first, second, strict=True):
        assert a.details == b.details
        assert (a.items is None) == (b.items is None)
        assert a.items is None or np.array_equal(a.items, b.items)


def test_languages_choose_subsets_and_change_no_score(task):
    name, folder, case = task
    if not case.languages:
        pytest.skip("a task of one language")
    everything = {(s.subset, s.metric): s.value for s in evaluate(by_text, [name], data=folder)}
    chosen = [s for s in evaluate(by_text, [name], data=folder, languages=[case.languages[-1]]) if not s.over]
    assert chosen
    assert len({score.subset for score in chosen}) < len(TASKS[name].subsets(folder))
    assert all(everything[score.subset, score.metric] == score.value for score in chosen)


def test_unusable_vectors_are_refused_with_task_and_language(task):
    name, folder, case = task
    place = f"{name}.*{case.where}"
    with pytest.raises(EvaluationError, match=rf"{place}.* \d+: .*NaN"):
        evaluate(lambda texts: by_text(texts) * np.nan, [name], data=folder)
    with pytest.raises(EvaluationError, match=rf"{place}: .*shape"):
        evaluate(lambda texts: by_text(texts)[1:], [name], data=folder)


def test_no_data_is_no_subset(task, tmp_path_factory):
    name, _, _ = task
    assert TASKS[name].subsets(tmp_path_factory.mktemp("empty")) == ()
    assert TASKS[name].needs
