"""Hard negatives against the rule of the paper in plain loops, over random entities, types and pages."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from isoglot.wikipedia.sample import candidates, members
from oracle import hard_negatives_allowed

ENTITIES, TYPES = [f"e{i}" for i in range(12)], ["t1", "t2", "t3"]
TYPED = st.dictionaries(
    st.sampled_from(ENTITIES), st.lists(st.sampled_from(TYPES), min_size=1, unique=True), max_size=12
)


@given(TYPED, st.sets(st.sampled_from(ENTITIES)), st.integers(0, 5), st.integers(1, 12))
@settings(max_examples=100, deadline=None)
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


def test_none_without_types():
    assert candidates("e", {}, of_type={}, seed=0) == ()
    assert candidates("e", {"e": ["t"]}, of_type={"t": ["e"]}, seed=0) == ()
