"""Selecting languages and dropping repetitions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.data import filters
from isoglot.data.filters import Seen
from isoglot.data.groups import Group
from isoglot.errors import CorpusError

PAIR = Group(("Hi", "Hallo"), ("eng", "deu"))


def test_only_the_wanted_languages_stay():
    groups = [PAIR, Group(("Hi", "你好", "Salut"), ("eng", "zho_Hans", "fra"), "k", ("No", "Non"), ("eng", "fra"))]
    counts = Counter()
    assert list(filters.select_languages(groups, "en,zh", counts=counts)) == [
        Group(("Hi", "你好"), ("eng", "zho_Hans"), "k", ("No",), ("eng",))
    ]
    assert counts == {"of other languages": 1, "shortened": 1}
    assert list(filters.select_languages([PAIR], ["en"], smallest=1)) == [Group(("Hi",), ("eng",))]
    assert list(filters.select_languages([PAIR], ["de", "en"])) == [PAIR]


def test_selecting_an_unknown_language_is_an_error():
    with pytest.raises(CorpusError, match="unknown language 'xx'"):
        list(filters.select_languages([PAIR], "en,xx"))


def test_groups_with_the_same_sentences_are_repetitions():
    others = [
        Group(("Hi", "Hallo"), ("eng", "nld")),
        Group(("HiHallo",), ("eng",)),
        Group(("Hi", "Hallo"), ("eng", "deu"), "", ("No",), ("eng",)),
        Group(("Hi",), ("eng",), "", ("Hallo",), ("deu",)),
    ]
    counts = Counter()
    again = [Group(("Hallo", "Hi"), ("deu", "eng")), PAIR, Group(("Hi", "Hallo", "Hi"), ("eng", "deu", "eng"))]
    assert list(filters.deduplicate([PAIR, *others, *again, *others], counts=counts)) == [PAIR, *others]
    assert counts == {"repeated": 7}


def test_one_memory_finds_repetitions_across_sources():
    seen = filters.Seen()
    assert list(filters.deduplicate([PAIR], seen=seen)) == [PAIR]
    assert list(filters.deduplicate([PAIR], seen=seen)) == []


@given(st.lists(st.lists(st.integers(0, 300) | st.integers(0, 2**64 - 1), max_size=1500), max_size=4))
def test_seen_is_a_set(blocks):
    seen, reference = Seen(), set()
    for block in blocks:
        fresh = []
        for value in block:
            fresh.append((value or 1) not in reference)  # zero marks an empty place and is one with one
            reference.add(value or 1)
        assert seen.add(np.array(block, np.uint64)).tolist() == fresh
    assert len(seen) == len(reference)


def test_numbers_that_want_one_place_all_find_theirs():
    numbers = np.arange(1, 3000, dtype=np.uint64) << np.uint64(40)
    seen = Seen()
    assert seen.add(numbers).all()
    assert not seen.add(numbers).any()
