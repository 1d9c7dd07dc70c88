"""Index pairs against comparing all with all."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from isoglot.objectives.kernel import filter_pairs, matches, same_meaning, slice_pairs, slot_pairs, union

NUMBERS = st.lists(st.integers(-2, 4), max_size=12).map(lambda values: torch.tensor(values, dtype=torch.long))


def listed(pairs):
    return list(zip(*(part.tolist() for part in pairs), strict=True))


@given(NUMBERS, NUMBERS)
def test_matches_are_all_pairs_of_equal_values(left, right):
    found = listed(matches(left, right))
    assert sorted(found) == [(i, j) for i, a in enumerate(left) for j, b in enumerate(right) if a == b]
    assert [i for i, _ in found] == sorted(i for i, _ in found)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 2)), unique=True, max_size=14))
def test_couples_are_slots_0_and_1_of_a_group_in_the_order_of_groups(rows):
    group, slot = (torch.tensor(column, dtype=torch.long) for column in (zip(*rows, strict=True) if rows else ([], [])))
    places = {row: number for number, row in enumerate(rows)}
    both = [(places[g, 0], places[g, 1]) for g in range(6) if (g, 0) in places and (g, 1) in places]
    assert listed(slot_pairs(group, slot)) == both


@given(NUMBERS, NUMBERS, st.integers(0, 12), st.integers(0, 12))
def test_pairs_of_a_block_of_rows_and_of_two_halves(left, right, start, stop):
    pairs = matches(left, right)
    block = slice(min(start, stop), max(start, stop))
    inside = [(i - block.start, j) for i, j in listed(pairs) if block.start <= i < block.stop]
    assert listed(slice_pairs(pairs, block)) == inside
    odd = pairs[1] % 2 == 1
    assert sorted(listed(union(filter_pairs(pairs, odd), filter_pairs(pairs, ~odd)))) == sorted(listed(pairs))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(-1, 2)), max_size=10))
def test_equal_meanings_of_other_groups_but_for_hard_negatives(rows):
    group, key, slot = (
        torch.tensor(column, dtype=torch.long) for column in (zip(*rows, strict=True) if rows else ([], [], []))
    )
    wanted = [
        (i, j)
        for i, (g, k, _) in enumerate(rows)
        for j, (other, meaning, place) in enumerate(rows)
        if k == meaning and g != other and place >= 0
    ]
    assert sorted(listed(same_meaning(group, key, group, key, slot))) == wanted
