"""The sample against sorting everything, and hard negatives against the rule of the paper in plain loops."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from isoglot.wikipedia import sample
from isoglot.wikipedia.sample import Sample, candidates, draw_number, members
from oracle import hard_negatives_allowed, sample_of_instances


@given(
    st.dictionaries(st.integers(0, 2**63 - 1), st.integers(0, 3), max_size=60).map(lambda d: list(d.items())),
    st.integers(1, 20),
    st.integers(1, 8),
    st.integers(0, 5),
)
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
        drawn.add(draw_number(0, i), i % 7)
        most = max(most, len(drawn._new) + len(drawn._numbers))
    assert most <= 100 + 100 + 50 + 1
    assert len(drawn.numbers()) == 100


def test_numbers_depend_on_seed_and_place_only():
    assert draw_number(0, "en", "A", 3) == draw_number(0, "en", "A", 3)
    assert len({draw_number(*place) for place in [(0, "en", 1), (1, "en", 1), (0, "de", 1), (0, "en", 2)]}) == 4
    assert 0 <= draw_number(0) < 2**63


ENTITIES, TYPES = [f"e{i}" for i in range(12)], ["t1", "t2", "t3"]
TYPED = st.dictionaries(
    st.sampled_from(ENTITIES), st.lists(st.sampled_from(TYPES), min_size=1, unique=True), max_size=12
)


@given(TYPED, st.sets(st.sampled_from(ENTITIES)), st.integers(0, 5), st.integers(1, 12))
def test_the_rule(types, linked, seed, size):
    of_type = members(types)
    for entity in ENTITIES:
        drawn = candidates(entity, types, of_type=of_type, seed=seed, size=size)
        found = [one for one in drawn if one not in linked]
        assert len(set(found)) == len(found) <= size
        assert any(set(found) <= allowed for allowed in hard_negatives_allowed(entity, types, linked))
        if size >= 12:  # nothing is left to chance but the type
            assert set(found) in hard_negatives_allowed(entity, types, linked)


def test_drawn_once_for_each_entity_whatever_else_is_asked():
    types = {f"e{i}": ["t", f"u{i % 3}"] for i in range(200)}
    of_type = members(types)
    first = [candidates(f"e{i}", types, of_type=of_type, seed=3) for i in range(200)]
    again = [candidates(f"e{i}", types, of_type=of_type, seed=3) for i in reversed(range(200))]
    assert first == again[::-1]
    assert first != [candidates(f"e{i}", types, of_type=of_type, seed=4) for i in range(200)]
    assert {len(drawn) for drawn in first} == {9, 10}  # nine where the entity itself was drawn


def test_every_type_and_member_is_drawn_as_often():
    types = {f"e{i}": ["a", "b"] if i == 0 else ["a" if i < 41 else "b"] for i in range(81)}
    of_type = members(types)
    drawn = [candidates("e0", types, of_type=of_type, seed=seed, size=4) for seed in range(4000)]
    of_a = sum(1 for one in drawn if one and int(one[0][1:]) < 41)
    assert 1800 < of_a < 2200  # 2000, five standard deviations are 158
    counts = Counter(e for one in drawn for e in one)
    assert len(counts) == 80
    assert 120 < min(counts.values()) <= max(counts.values()) < 280  # 195, six standard deviations are 84
