"""MPCL against the loops of tests/oracle.py, and its invariants (specification of the method)."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import MultiPositive
from isoglot.objectives import multi_positive as module
from toys import toy_batch


def value(vectors, batch, **options):
    return MultiPositive(**options)(vectors, batch)["multi_positive"].item()


@given(
    batches(),
    st.sampled_from(["off", "row", "matrix"]),
    st.sampled_from(["first", "every"]),
    st.sampled_from(["batch", "non-anchors"]),
    st.sampled_from(["shared", "own"]),
)
def test_agrees_with_the_loops(case, rescale, anchors, candidates, hard):
    vectors, batch = case
    options = {"rescale": rescale, "anchors": anchors, "candidates": candidates, "hard_negatives": hard}
    expected = oracle.multi_positive(rows_of(vectors, batch), 0.2, **options)
    # A row or matrix of one candidate has no range but its rounding, 1e-16, and the slope there is 2 / (1e-6 * 0.2).
    tolerance = 1e-9 if rescale == "off" else 1e-8
    assert value(vectors, batch, temperature=0.2, **options) == pytest.approx(expected, abs=tolerance)


def test_no_list_of_cells_grows_with_anchors_times_hard_negatives(monkeypatch):
    batch, lists = toy_batch([2] * 60, hard=[3] * 60), []
    kept = module.Equation
    monkeypatch.setattr(module, "Equation", lambda **fields: lists.append(fields["dropped"]) or kept(**fields))
    value(torch.randn(len(batch), 7), batch, hard_negatives="own")
    assert len(lists[0][0]) <= len(batch)


def test_extremes_carry_gradient_only_when_live():
    batch, vectors = toy_batch([2, 2, 2]), torch.randn(6, 4, dtype=torch.float64)
    grads = []
    for extremes in ("detached", "live"):
        leaf = vectors.clone().requires_grad_()
        MultiPositive(extremes=extremes)(leaf, batch)["multi_positive"].backward()
        grads.append(leaf.grad)
    assert not torch.allclose(*grads)
