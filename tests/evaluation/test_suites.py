"""Suites name scores that tasks really give, and a mean never leaves one out in silence."""

from __future__ import annotations

import pytest
from cases import all_cases, by_text

from isoglot.errors import EvaluationError
from isoglot.evaluation import TASKS, Score
from isoglot.evaluation.run import evaluate, plan
from isoglot.evaluation.suites import SUITES, Column, Suite


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_names_tasks_and_metrics_that_exist(name, tmp_path_factory):
    cases = all_cases()
    for task in SUITES[name].tasks:
        asked = {key[2] for column in SUITES[name].columns for key in column.keys if key[0] == task}
        if task in cases:
            assert asked <= set(cases[task].perfect), task
        else:
            assert TASKS[task].needs_model
            assert asked == {"accuracy"}


def test_a_column_is_a_mean_and_is_empty_when_a_part_is_missing():
    suite = Suite("two", (Column("both", (("t", "a", "m"), ("t", "b", "m"))), Column("a", (("t", "a", "m"),))))
    scores = [Score("t", "a", "m", 0.25, 9), Score("t", "b", "m", 0.75, 3)]
    assert [cell.value for cell in suite.table(scores)] == [0.5, 0.25]
    first, second = suite.table(scores[:1])
    assert (first.value, first.lacking) == (None, (("t", "b", "m"),))
    assert second.value == 0.25


def test_a_suite_brings_its_languages_and_yours_go_first():
    languages = {task.name: wanted for task, wanted in plan(["quick"])}
    assert languages["tatoeba"] == SUITES["quick"].languages["tatoeba"]
    assert languages["sts17"] == ()
    assert {wanted for _, wanted in plan(["quick"], languages=["ko"])} == {("ko",)}
    assert [task.name for task, _ in plan(["tatoeba", "quick", "tatoeba"])] == ["tatoeba", "sts17", "sib-200"]


def test_a_task_that_trains_the_model_is_told_and_left_out_without_one(tmp_path):
    told = []
    task = TASKS["paws-x/finetune"]
    data = tmp_path / "x"
    data.mkdir()
    for file in ("train-en", "dev-en", "test-en"):
        (data / f"{file}.tsv").write_text("a b\tc d\t1\nc d\ta b\t0\n")
    if not task.subsets(data):
        pytest.fail("the layout of PAWS-X has changed")
    assert evaluate(by_text, [task], data=data, on_missing=told.append) == []
    assert told == ["paws-x/finetune: needs a transformer to train, not vectors alone; it was left out"]
    with pytest.raises(EvaluationError, match="needs a transformer"):
        evaluate(by_text, [task], data=data)
