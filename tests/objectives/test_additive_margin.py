"""Additive margin softmax against the loops of tests/oracle.py."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import AdditiveMargin, InfoNCE
from toys import toy_batch


@given(batches(), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.1, 0.5]))
@settings(max_examples=60, deadline=None)
def test_agrees_with_the_loops(case, margin, temperature):
    vectors, batch = case
    losses = AdditiveMargin(margin=margin, temperature=temperature)(vectors, batch)
    for name, back in (("additive_margin", False), ("additive_margin/back", True)):
        expected = oracle.additive_margin(rows_of(vectors, batch), margin, temperature, back=back)
        assert float(losses[name]) == pytest.approx(expected, abs=1e-9)


def test_without_margin_it_is_info_nce_both_ways():
    batch = toy_batch([2] * 5, hard=[1, 0, 2, 0, 1])
    vectors = torch.randn(len(batch), 7, dtype=torch.float64)
    expected = InfoNCE(temperature=0.1, direction="two-way")(vectors, batch).values()
    found = AdditiveMargin(margin=0.0)(vectors, batch).values()
    assert [float(loss) for loss in found] == pytest.approx([float(loss) for loss in expected])
