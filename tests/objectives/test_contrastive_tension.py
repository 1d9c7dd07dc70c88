"""Contrastive Tension against the loops of tests/oracle.py, and what pairs a batch of the paper's size holds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import ContrastiveTension
from toys import toy_batch


def loss_of(vectors, batch, **options) -> float:
    return float(ContrastiveTension(**options)(vectors, batch)["contrastive_tension"])


@given(batches(), st.integers(1, 4))
def test_agrees_with_the_loops(case, negatives):
    vectors, batch = case
    both = torch.cat([vectors, vectors.roll(1, 0) * 0.7], dim=1)
    assert loss_of(both, batch, negatives=negatives) == pytest.approx(
        oracle.contrastive_tension(rows_of(both, batch), negatives), abs=1e-9
    )


def test_sixteen_sentences_are_two_anchors_with_seven_negatives_each():
    """The gradient of f1 reaches the two anchors alone, that of f2 all sixteen; pulled twice, pushed fourteen times."""
    vectors = torch.full((16, 4), 0.1, dtype=torch.float64, requires_grad=True)
    ContrastiveTension()(vectors, toy_batch([1] * 16))["contrastive_tension"].backward()
    assert vectors.grad[:, :2].any(dim=1).nonzero()[:, 0].tolist() == [0, 8]
    assert (vectors.grad[:, 2] < 0).nonzero()[:, 0].tolist() == [0, 8]
    assert (vectors.grad[:, 2] > 0).sum() == 14
