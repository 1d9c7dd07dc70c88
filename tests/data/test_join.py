"""Joined groups are the connected components of the sentences, up to a size."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.join import join

SENTENCE = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["eng", "deu", "fra"]))
GROUPS = st.lists(
    st.lists(SENTENCE, min_size=1, max_size=4).map(lambda pairs: Group(*map(tuple, zip(*pairs, strict=True)))),
    max_size=25,
)


def join_all(groups, *, largest=64, counts=None):
    return list(join(groups, largest=largest, counts=Counter() if counts is None else counts))


def sentences(group):
    return set(zip(group.texts, group.langs, strict=True))


def components(groups):
    """The slow way: merge sets that overlap until none does."""
    parts = []
    for group in groups:
        new = sentences(group)
        for part in [part for part in parts if part & new]:
            parts.remove(part)
            new = new | part
        parts.append(new)
    return parts


@given(GROUPS)
def test_joined_groups_are_connected_components(groups):
    joined = join_all(groups, largest=1000)
    assert Counter(frozenset(sentences(group)) for group in joined) == Counter(map(frozenset, components(groups)))


def test_half_a_surrogate_pair_is_a_character_too():
    groups = [Group(("a\ud800", "b"), ("eng", "deu")), Group(("a\ud801", "d"), ("eng", "deu"))]
    joined = {frozenset(group.texts) for group in join_all([*groups, Group(("a\ud800", "c"), ("eng", "fra"))])}
    assert joined == {frozenset({"a\ud800", "b", "c"}), frozenset({"a\ud801", "d"})}


@given(GROUPS, st.integers(1, 10))
def test_a_cap_bounds_what_is_merged_and_loses_nothing(groups, largest):
    counts = Counter()
    joined = join_all(groups, largest=largest, counts=counts)
    assert set().union(*map(sentences, joined)) == set().union(*map(sentences, groups))
    originals = Counter(frozenset(sentences(group)) for group in groups)
    apart = [group for group in joined if len(sentences(group)) > largest]
    assert all(frozenset(sentences(group)) in originals for group in apart)
    assert len(joined) >= counts["left apart"]
    if counts["left apart"] == 0:
        assert Counter(frozenset(sentences(g)) for g in joined) == Counter(map(frozenset, components(groups)))


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("ijklmnop")), max_size=30), st.integers(2, 6))
def test_pairs_left_apart_share_a_key_with_a_group_they_touch(pairs, largest):
    counts = Counter()
    joined = join_all([Group(pair, ("eng", "deu")) for pair in pairs], largest=largest, counts=counts)
    touching = [(a, b) for a in joined for b in joined if a is not b and sentences(a) & sentences(b)]
    shared = [group for group in joined if group.key and any(a is group and a.key == b.key for a, b in touching)]
    assert len(shared) >= counts["left apart"]
    assert {group.key for group in joined} - {group.key for group in shared} <= {""}


def test_bitexts_over_one_sentence_become_one_group():
    words = "Hi eng Hallo deu, Bye eng Tschüs deu, Hi eng Salut fra, Hi fin Hei nor, Servus deu Salut fra"
    pairs = [Group(tuple(pair.split()[::2]), tuple(pair.split()[1::2])) for pair in words.split(", ")]
    counts = Counter()
    joined = Group(("Hi", "Hallo", "Salut", "Servus"), ("eng", "deu", "fra", "deu"))
    assert join_all(pairs, counts=counts) == [pairs[1], pairs[3], joined]
    assert counts["joined"] == 3


def test_keys_extras_and_hard_negatives_are_gathered():
    one = Group(("a", "b"), ("eng", "deu"), "", ("n", "c"), ("eng", "fra"), {"x": 1.0})
    two = Group(("b", "c"), ("deu", "fra"), "k", ("n",), ("eng",), {"x": 2.0, "y": 3.0})
    joined = Group(("a", "b", "c"), ("eng", "deu", "fra"), "k", ("n",), ("eng",), {"x": 1.0, "y": 3.0})
    assert join_all([one, two]) == [joined]


def test_groups_without_sentences_pass():
    empty = Group((), ())
    assert join_all([empty]) == [empty]


def test_a_chain_stops_at_the_cap_and_the_rest_shares_a_key():
    chain = [Group((str(i), str(i + 1)), ("eng", "eng")) for i in range(4)]
    counts = Counter()
    joined = join_all(chain, largest=3, counts=counts)
    assert [group.texts for group in joined] == [("0", "1", "2"), ("2", "3"), ("3", "4")]
    assert joined[0].key == joined[1].key != ""
    assert counts == {"joined": 2, "left apart": 1}


def test_groups_that_change_between_the_readings_are_an_error():
    class Fickle:
        lengths = [3, 2]  # noqa: RUF012

        def __iter__(self):
            return iter([Group(("a", str(i)), ("eng", "eng")) for i in range(self.lengths.pop())])

    with pytest.raises(CorpusError, match="differ between two readings"):
        join_all(Fickle())
