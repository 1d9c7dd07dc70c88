"""Distillation by squared error against the loops of tests/oracle.py."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.core.errors import RecipeError
from isoglot.objectives import Distillation
from toys import TOY_LANGUAGES, toy_batch


def taught(case):
    """The batch with teacher's vectors of the student's width, and its rows."""
    vectors, batch = case
    batch.extras["teacher"] = batch.extras["teacher"][:, : vectors.shape[1]]
    rows = rows_of(vectors, batch)
    for row, teacher in zip(rows, batch.extras["teacher"].tolist(), strict=True):
        row["teacher"] = teacher
    return rows


@given(batches(), st.sampled_from(["raw", "unit"]), st.sampled_from(["skipped", "taught"]))
def test_agrees_with_the_loops(case, student, singles):
    rows, smallest = taught(case), 1 if singles == "taught" else 2
    loss = Distillation(student=student, singles=singles)(*case)["distillation"]
    assert float(loss) == pytest.approx(oracle.distillation(rows, student == "unit", smallest=smallest), abs=1e-9)


@given(batches(), st.sampled_from([("aab",), ("aac", "aaa"), ("aaa", "aab", "aac")]))
def test_the_source_is_the_sentence_in_the_most_trusted_language(case, priority):
    rows = taught(case)
    for row, lang in zip(rows, case[1].lang.tolist(), strict=True):
        row["lang"] = lang
    places = [priority.index(code) if code in priority else 9 for code in TOY_LANGUAGES]
    loss = Distillation(priority=priority, languages=TOY_LANGUAGES)(*case)["distillation"]
    assert float(loss) == pytest.approx(oracle.distillation(rows, False, places), abs=1e-9)


def test_it_is_nothing_at_the_teacher_and_the_teacher_receives_no_gradient():
    batch = toy_batch([2, 2])
    teacher = batch.extras["teacher"].requires_grad_()
    goal = torch.nn.functional.normalize(teacher.detach()[[0, 0, 2, 2]], dim=1)
    assert float(Distillation()(goal, batch)["distillation"]) == pytest.approx(0.0)
    leaf = torch.randn(goal.shape, dtype=goal.dtype, requires_grad=True)
    Distillation()(leaf, batch)["distillation"].backward()
    assert teacher.grad is None
    assert bool((leaf.grad.abs().sum(1) > 0).all())


def test_a_teacher_of_another_dimension_is_one_clear_line():
    batch = toy_batch([2, 2])
    with pytest.raises(RecipeError, match="the teacher has 12 dimensions and the student 8"):
        Distillation()(torch.randn(4, 8), batch)
