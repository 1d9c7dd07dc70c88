"""Groups that are kept in a temporary file."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.data import Group
from isoglot.data.spool import BLOCK, Spool

texts = st.text(alphabet=st.characters(), max_size=9)
numbers = st.floats(allow_nan=False) | st.tuples(st.integers(), st.integers())
groups = st.builds(
    lambda pairs, hard, key, extras: Group(
        tuple(pairs), ("eng",) * len(pairs), key, tuple(hard), ("und",) * len(hard), extras
    ),
    st.lists(texts, max_size=3),
    st.lists(texts, max_size=2),
    texts,
    st.dictionaries(st.text(max_size=3), numbers, max_size=2),
)


@given(st.lists(groups, max_size=4))
def test_groups_pass_and_are_read_again_and_again(tmp_path_factory, given_groups):
    spool, counts = Spool(tmp_path_factory.getbasetemp() / "text"), Counter()
    assert list(spool.write(given_groups, counts)) == given_groups
    assert spool.complete
    assert list(spool.read()) == list(spool.read()) == given_groups
    spool.close()


def test_the_shares_of_blocks_add_up(tmp_path):
    spool, shares = Spool(tmp_path), []
    every = [Group((f"text {number}",), ("eng",)) for number in range(3 * BLOCK + 5)]
    assert sum(1 for _ in spool.write(every, Counter())) == len(every)
    assert list(spool.read(shares.append)) == every
    assert len(shares) == 4
    assert sum(shares) == pytest.approx(1)


def test_counts_are_those_at_the_end(tmp_path):
    spool, counts = Spool(tmp_path), Counter()

    def counting():
        for number in range(3):
            counts["read"] += 1
            yield Group((str(number),), ("eng",))

    assert len(list(spool.write(counting(), counts))) == 3
    counts["read"] += 1
    assert spool.counts == {"read": 3}


def test_an_abandoned_reading_is_not_complete_and_nothing_is_left_on_disk(tmp_path):
    spool = Spool(tmp_path / "text")
    next(spool.write([Group(("a",), ("eng",))] * 3, Counter()))
    assert not spool.complete
    assert not list((tmp_path / "text").iterdir())
    spool.close()
