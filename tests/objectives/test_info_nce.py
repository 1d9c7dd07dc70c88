"""InfoNCE against the loops of tests/oracle.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import batches, rows_of

import oracle
from isoglot.objectives import InfoNCE


@given(batches(), st.sampled_from([0.05, 0.3, 1.0]), st.sampled_from([0.0, 1.0]))
def test_agrees_with_the_loops(case, temperature, weight):
    vectors, batch = case
    losses = InfoNCE(temperature=temperature, direction="two-way", hard_negative_weight=weight)(vectors, batch)
    rows = rows_of(vectors, batch)
    assert float(losses["info_nce"]) == pytest.approx(oracle.info_nce(rows, temperature, weight), abs=1e-9)
    assert float(losses["info_nce/back"]) == pytest.approx(oracle.info_nce_back(rows, temperature), abs=1e-9)
    one_way = InfoNCE(temperature=temperature, hard_negative_weight=weight)(vectors, batch)
    assert one_way == {"info_nce": pytest.approx(float(losses["info_nce"]), abs=1e-9)}
