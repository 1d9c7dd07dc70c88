"""Additive margin softmax against the loops of tests/oracle.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import AdditiveMargin


@given(batches(), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.1, 0.5]))
def test_agrees_with_the_loops(case, margin, temperature):
    vectors, batch = case
    losses = AdditiveMargin(margin=margin, temperature=temperature)(vectors, batch)
    for name, back in (("additive_margin", False), ("additive_margin/back", True)):
        expected = oracle.additive_margin(rows_of(vectors, batch), margin, temperature, back=back)
        assert float(losses[name]) == pytest.approx(expected, abs=1e-9)
