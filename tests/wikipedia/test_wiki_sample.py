"""The sample against sorting everything and walking through it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.wikipedia import sample
from isoglot.wikipedia.sample import Sample, number_of
from oracle import sample_of_instances


@given(
    st.dictionaries(st.integers(0, 2**63 - 1), st.integers(0, 3), max_size=60).map(lambda d: list(d.items())),
    st.integers(1, 20),
    st.integers(1, 8),
    st.integers(0, 5),
)
@settings(max_examples=100, deadline=None)
def test_cutting_back_on_the_way_changes_nothing(instances, size, share, slack):
    before, sample._SLACK = sample._SLACK, slack
    try:
        drawn = Sample(size, share=share)
        for number, entity in instances + instances[:7]:  # some are met twice
            drawn.add(number, entity)
        assert drawn.numbers().tolist() == sample_of_instances(instances, size, share)
    finally:
        sample._SLACK = before


def test_memory_is_bounded_by_the_sample(monkeypatch):
    monkeypatch.setattr(sample, "_SLACK", 50)
    drawn, most = Sample(100, share=10_000), 0
    for i in range(5000):
        drawn.add(number_of(0, i), i % 7)
        most = max(most, len(drawn._new) + len(drawn._numbers))
    assert most <= 100 + 100 + 50 + 1
    assert len(drawn.numbers()) == 100


def test_numbers_depend_on_seed_and_place_only():
    assert number_of(0, "en", "A", 3) == number_of(0, "en", "A", 3)
    assert len({number_of(*place) for place in [(0, "en", 1), (1, "en", 1), (0, "de", 1), (0, "en", 2)]}) == 4
    assert 0 <= number_of(0) < 2**63
