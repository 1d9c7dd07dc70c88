"""What every task must keep, by registration and its case in `tests/evaluation/tasks/cases_<kind>.py`."""

import math
import shutil

import numpy as np
import pytest
from cases import all_cases, by_text

from conftest import permute
from isoglot.core.errors import EvaluationError
from isoglot.data.files import collecting
from isoglot.evaluation import TASKS
from isoglot.evaluation.evaluate import evaluate
from isoglot.evaluation.run import data_digest
from isoglot.evaluation.statistics import STATISTICS

CASES = all_cases()
# A task that trains the model itself cannot be given a function; its own tests see to it.
OF_VECTORS = sorted(name for name, task in TASKS.items() if not getattr(task, "needs_model", False))
TRANSLATIONS = ("retrieval", "similarity", "sib-200", "sib-200/zero-shot", "xnli", "paws-x", "sts-b-multi")
APART = ("tatoeba", "mewsc-16", "stc", "tnews", "nearest", "linked", "centroids", "map")


def by_kind():
    """Every task; those of a kind that has one already are slow tests."""
    kinds = set()
    for name in OF_VECTORS:
        again = type(TASKS[name]) in kinds
        kinds.add(type(TASKS[name]))
        yield pytest.param(name, marks=[pytest.mark.slow] if again else [])


@pytest.fixture(scope="module", params=by_kind())
def task(request, tmp_path_factory):
    case, folder = CASES[request.param], tmp_path_factory.mktemp("data")
    case.write(folder)
    return request.param, folder, case


@pytest.fixture(scope="module")
def perfect(task):
    """The scores of the perfect encoder."""
    return evaluate(task[2].oracle, [task[0]], data=task[1])


@pytest.fixture(scope="module")
def random(task):
    """The scores of unrelated vectors."""
    return evaluate(by_text, [task[0]], data=task[1])


def test_every_task_has_a_case_and_no_case_lacks_its_task():
    assert sorted(CASES) == OF_VECTORS


def test_perfect_vectors_give_the_perfect_value(task, perfect):
    assert perfect
    for score in perfect:
        assert score.value == pytest.approx(task[2].perfect[score.metric], abs=1e-9), score


def test_random_vectors_give_chance(task, random):
    for score in random:
        level, tolerance = task[2].chance[score.metric]
        assert abs(score.value - level) <= tolerance, score


def test_scores_name_their_task_and_the_subsets_announced(task, perfect):
    (name, folder, _), scores = task, perfect
    assert TASKS[name].name == name
    assert {score.task for score in scores} == {name}
    assert tuple(dict.fromkeys(score.subset for score in scores if not score.over)) == TASKS[name].subsets(folder)
    assert len({(score.subset, score.metric) for score in scores}) == len(scores)
    assert all(math.isfinite(score.value) and score.n > 0 for score in scores)


def test_scores_are_of_the_metrics_that_the_task_declares(task, random):
    """Unit, direction and main mark are of the declaration, in averages too; and of each task one is the main one."""
    declared = {metric.name: metric for metric in TASKS[task[0]].metrics}
    assert set(task[2].chance) <= set(declared)
    assert [score for score in random if declared[score.metric].describe(score) != score] == []
    assert any(score.main for score in random)


def test_the_direction_is_the_one_from_chance_to_perfect(task):
    name, _, case = task
    unlike = {"uniformity"} | ({"accuracy"} if name.startswith("language-id") else set())  # not what the oracle is for
    for metric in TASKS[name].metrics:
        if metric.name in case.perfect and metric.name in case.chance and metric.name not in unlike:
            perfect, (chance, _) = case.perfect[metric.name], case.chance[metric.name]
            assert (perfect < chance) == metric.lower_is_better, metric.name


def test_averages_are_over_subsets_that_are_there(random):
    for score in random:
        if score.over:
            parts = [other.value for other in random if other.subset in score.over and other.metric == score.metric]
            assert score.n == len(score.over) == len(parts)
            assert score.value == pytest.approx(sum(parts) / len(parts))


def test_items_make_the_value(random):
    for score in random:
        if score.items is not None:
            assert len(score.items) == score.n
            assert STATISTICS[score.statistic](score.items) == pytest.approx(score.value, abs=1e-6)


def test_one_sentence_in_many_languages_is_one_unit(task, random):
    """Sets that are translations of each other name the same units; texts that every language has of its own none."""
    units = {score.subset: score.item_set for score in random if score.metric == random[0].metric and not score.over}
    if task[0] in TRANSLATIONS or task[0].startswith("xsim/"):
        assert len(units) > 1
        assert len(set(units.values())) == 1
        assert all(units.values())
    elif task[0] in APART or task[0].startswith("bucc/"):
        assert not any(units.values())


def test_details_are_tables_of_strings_and_finite_numbers(random):
    for score in random:
        for detail in score.details:
            assert all(len(row) == len(detail.columns) for row in detail.rows)
            assert all(isinstance(cell, str) or math.isfinite(cell) for row in detail.rows for cell in row)


def test_other_rows_in_a_file_of_the_same_size_and_time_are_other_data(task, tmp_path):
    name, folder, _ = task
    data = tmp_path / "data"
    shutil.copytree(folder, data)
    with collecting() as files:
        TASKS[name].subsets(data)
    before = data_digest(TASKS[name], data)
    texts = sorted(path for path in files if path.suffix not in (".xz", ".gz", ".bz2"))
    for path in texts or pytest.skip("all files of the case are compressed"):
        permute(path)
        after = data_digest(TASKS[name], data)
        assert after != before, path
        before = after


@pytest.mark.slow
def test_a_second_run_is_the_same(task, random):
    first, second = random, evaluate(by_text, [task[0]], data=task[1])
    assert first == second
    for a, b in zip(first, second, strict=True):
        assert a.details == b.details
        assert (a.items is None) == (b.items is None)
        assert a.items is None or np.array_equal(a.items, b.items)


@pytest.mark.slow
def test_languages_choose_subsets_and_change_no_score(task, random):
    name, folder, case = task
    if not case.languages:
        pytest.skip("a task of one language")
    everything = {(s.subset, s.metric): s.value for s in random}
    chosen = [s for s in evaluate(by_text, [name], data=folder, languages=[case.languages[-1]]) if not s.over]
    assert chosen
    assert len({score.subset for score in chosen}) < len(TASKS[name].subsets(folder))
    assert all(everything[score.subset, score.metric] == score.value for score in chosen)


def test_unusable_vectors_are_refused_with_task_and_language(task):
    name, folder, case = task
    place = f"{name}.*{case.where}"
    with pytest.raises(EvaluationError, match=rf"{place}.*[: ]\d+: .*NaN"):
        evaluate(lambda texts: by_text(texts) * np.nan, [name], data=folder)
    with pytest.raises(EvaluationError, match=rf"{place}: .*shape"):
        evaluate(lambda texts: by_text(texts)[1:], [name], data=folder)


def test_no_data_is_no_subset(task, tmp_path_factory):
    name, _, _ = task
    assert TASKS[name].subsets(tmp_path_factory.mktemp("empty")) == ()
    assert TASKS[name].needs
