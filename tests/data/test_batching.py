"""Batches: every sentence once, the same batch at the same place, and the choices inside groups."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError
from isoglot.data.batching import Batches, Batching, Mixing, Position, epoch_items, matching_sizes
from isoglot.data.groups import Group
from isoglot.data.table import GroupTable
from toys import ToyEncoder, toy_groups

ENCODER = ToyEncoder()


def table_of(*sources):
    return GroupTable.build([(f"source{i}", groups) for i, groups in enumerate(sources)], ENCODER.tokenize)


def epoch(table, batching, number=0, **options):
    batches = Batches(table, batching, seed=7, position=Position(number), **options)
    return [batches.next() for _ in range(batches.count(number))]


def rows_of(tokens):
    """The ids of each row as a tuple."""
    ends = tokens.lengths.cumsum().tolist()
    return [tuple(tokens.ids[start:stop].tolist()) for start, stop in zip([0, *ends], ends, strict=False)]


def sentences(batch):
    """Each row as the tuple of its ids: texts of toy groups are distinct."""
    return rows_of(batch.tokens)


def pairs_with_counts(counts):
    return [Group((f"{lang} {i} x", f"eng {lang} {i}"), (lang, "eng")) for lang, n in counts.items() for i in range(n)]


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=40),
    st.integers(1, 9),
    st.sampled_from([1, 3, 100]),
    st.sampled_from([0, 40, 200]),
    st.booleans(),
)
def test_an_epoch_holds_every_sentence_once(sizes, size, pool, tokens, one_pair):
    groups = toy_groups(sizes, hard=2)
    table = table_of(groups)
    batches = epoch(table, Batching(size=size, pool=pool, tokens=tokens, one_pair=one_pair))
    seen = Counter(row for batch in batches for row in sentences(batch))
    expected = ENCODER.tokenize([t for g in groups for t in (*g.texts, *g.hard_negatives)])
    assert seen == Counter(rows_of(expected))
    for batch in batches:
        groups_met = len(batch.group.unique())
        assert groups_met <= size
        padded = len(batch) * int(batch.tokens.lengths.max())
        assert not tokens or padded <= tokens or groups_met == 1
        for group in batch.group.unique():
            slots = batch.slot[batch.group == group]
            assert sorted(slots.tolist()) == [*range(-2, len(slots) - 2)]
        langs = [sorted(batch.lang[(batch.group == g) & (batch.slot >= 0)].tolist()) for g in batch.group.unique()]
        assert not one_pair or all(each == langs[0] for each in langs)


def test_any_position_gives_the_batch_of_an_uninterrupted_run():
    table, pairs = (table_of(toy_groups(sizes)) for sizes in ([2, 3, 1, 4] * 20, [2] * 40))
    first, second = (epoch(pairs, Batching(size=5, pool=1), number)[0] for number in (0, 1))
    other = Batches(pairs, Batching(size=5, pool=1), seed=8).next()
    assert len({frozenset(sentences(batch)) for batch in (first, second, other)}) == 3  # epochs and seeds differ
    matching = Batching(size=5, pool=1, rows="matching")
    for batching in (Batching(size=7, pool=3), Batching(size=9, tokens=60, pool=4), matching):
        straight, positions = Batches(table, batching, seed=3), []
        reference = []
        for _ in range(straight.count() * 2 + 3):  # into the third epoch
            positions.append(straight.position)
            reference.append(straight.next())
        for at in (0, 1, len(positions) // 2, len(positions) - 1):
            again = Batches(table, batching, seed=3, position=positions[at]).next()
            assert np.array_equal(again.tokens.ids, reference[at].tokens.ids)
            assert torch.equal(again.slot, reference[at].slot)
            assert torch.equal(again.group, reference[at].group)


@pytest.mark.parametrize("world", [3, 9])  # more ranks than items: some hold no rows, and say so
def test_ranks_share_a_batch_between_them(world):
    table = table_of(toy_groups([2, 3, 1] * 10, hard=1))
    parts = [epoch(table, Batching(size=7), rank=rank, world=world) for rank in range(world)]
    for number, batch in enumerate(epoch(table, Batching(size=7))):
        shared = [rank[number] for rank in parts]
        assert Counter(row for part in shared for row in sentences(part)) == Counter(sentences(batch))
        assert sum(len(part.group.unique()) for part in shared) == len(batch.group.unique())
        assert all(len(part.tokens) == len(part.slot) == len(part) for part in shared)


def test_one_pair_without_a_pool_cuts_the_epoch_into_full_batches_in_random_order():
    """IMASCL: shuffled within a pair of languages, cut, and the batches shuffled; lengths play no part."""
    counts = {"deu": 50, "fra": 33, "kor": 9}
    names = [(lang, i) for lang, n in counts.items() for i in range(n)]
    groups = [Group((f"{lang}{i}" + "x" * (i % 25), "eng"), (lang, "eng")) for lang, i in names]
    batches = epoch(table_of(groups), Batching(size=8, one_pair=True))
    assert sorted(len(batch) // 2 for batch in batches) == [1, 1, 2, *[8] * 11]
    kinds = [tuple(batch.lang.unique().tolist()) for batch in batches]
    assert all(len(kind) == 2 for kind in kinds)
    assert sorted(kinds) != kinds != sorted(kinds)[::-1]
    longest = [batch.tokens.lengths.reshape(-1, 2).max(axis=1) for batch in batches if len(batch) == 16]
    spans = [int(each.max() - each.min()) for each in longest]
    assert min(spans) > 4
    assert max(spans) > 15  # sorted by length they span 8 at most


def test_like_lengths_meet_in_a_pool():
    groups = [Group(("x" * n, "y" * n), ("aaa", "aab")) for n in range(1, 61)]
    shares = []
    for pool in (1, 10):
        batches = epoch(table_of(groups), Batching(size=6, pool=pool))
        real = sum(int(b.tokens.lengths.sum()) for b in batches)
        shares.append(1 - real / sum(len(b) * int(b.tokens.lengths.max()) for b in batches))
    assert shares[1] < 0.2 < shares[0]


def test_matching_cuts_each_group_into_random_cross_language_pairs():
    """The control of MPCL: three pairs per group of six, each sentence once, two languages, both ways round."""
    table = table_of(toy_groups([6] * 200))
    batches = epoch(table, Batching(size=50, rows="matching"))
    whole = epoch(table, Batching(size=50))
    assert Counter(r for b in batches for r in sentences(b)) == Counter(r for b in whole for r in sentences(b))
    partners, anchors = Counter(), Counter()
    for batch in batches:
        for group in batch.group.unique():
            rows = batch.group == group
            langs, slots = batch.lang[rows].tolist(), batch.slot[rows].tolist()
            assert sorted(slots) == [0, 1]
            assert langs[0] != langs[1]
            partners[tuple(sorted(langs))] += 1
            anchors[langs[slots.index(0)]] += 1
    assert len(partners) == 15
    assert min(partners.values()) > 15  # 600 pairs over 15 combinations, 40 each
    assert min(anchors.values()) > 60  # over six languages, 100 each


def test_pairs_of_one_group_are_not_negatives_of_each_other():
    batch = epoch(table_of(toy_groups([6, 6], key="same")), Batching(size=50, rows="matching"))[0]
    assert len(batch.group.unique()) == 6
    assert len(batch.key.unique()) == 1
    apart = epoch(table_of(toy_groups([6, 6])), Batching(size=50, rows="matching"))[0]
    assert len(apart.key.unique()) == 2


@pytest.mark.parametrize(
    ("langs", "pairs"), [("aab", 1), ("aaab", 1), ("aabb", 2), ("abc", 1), ("aaa", 0), ("a", 0), ("aabbc", 2)]
)
def test_matching_pairs_never_share_a_language(langs, pairs):
    table = table_of([Group(tuple(f"t{i}" for i in range(len(langs))), tuple(f"aa{x}" for x in langs))] * 20)
    assert matching_sizes(table).tolist() == [pairs] * 20
    if not pairs:
        return
    for batch in epoch(table, Batching(size=4, rows="matching")):
        for group in batch.group.unique():
            assert len(set(batch.lang[batch.group == group].tolist())) == 2


def test_anchor_language_is_uniform():
    batches = epoch(table_of(toy_groups([6] * 1200)), Batching(size=100))
    counts = np.bincount(torch.cat([b.lang[b.slot == 0] for b in batches]), minlength=6)
    assert ((counts - 200) ** 2 / 200).sum() < 20.5  # chi-square, 5 degrees of freedom, p = .001


def test_a_subset_of_languages_is_drawn_anew_each_epoch():
    table = table_of(toy_groups([15] * 50, hard=3))
    seen = []
    for number in range(2):
        batch = epoch(table, Batching(size=50, most=6, hard_negatives=1), number)[0]
        for group in batch.group.unique():
            assert sorted(batch.slot[batch.group == group].tolist()) == [-1, 0, 1, 2, 3, 4, 5]
        seen.append(sentences(batch))
    assert Counter(seen[0]) != Counter(seen[1])


def test_views_repeat_sentences_behind_the_translations_as_new_slots():
    """Objectives over slots 0 and 1 compare a sentence with its translation, not with its own second view."""
    batch = epoch(table_of(toy_groups([3, 1], hard=1)), Batching(size=2, views=2))[0]
    for group in batch.group.unique():
        places = (batch.group == group).nonzero()[:, 0].tolist()
        rows = {int(batch.slot[place]): sentences(batch)[place] for place in places}
        count = len(places) // 2  # without the hard negative, which is not repeated
        assert sorted(rows) == list(range(-1, 2 * count))
        assert len({rows[slot] for slot in range(-1, count)}) == count + 1
        assert all(rows[slot] == rows[slot + count] for slot in range(count))


@pytest.mark.parametrize("settings", [{"most": 2, "hard_negatives": 1}, {"rows": "matching", "hard_negatives": 1}])
def test_a_group_seen_again_in_an_epoch_has_other_sentences(settings):
    """A small source with a large weight is seen many times in an epoch, not with the same two languages each time."""
    table = table_of(toy_groups([6] * 4, hard=3), pairs_with_counts({"bbb": 300}))
    batches = epoch(table, Batching(size=20, **settings), mixing={"source0": Mixing(weight=1.0)})
    choices = []
    for batch in batches:
        rows = sentences(batch)
        for group in batch.group.unique():
            places = (batch.group == group).nonzero()[:, 0].tolist()
            if int(batch.key[places[0]]) in table.key[:4].tolist():
                choices.append((int(batch.key[places[0]]), tuple(sorted(rows[place] for place in places))))
    assert len(choices) > 100
    assert min(Counter(key for key, _ in set(choices)).values()) >= 15
    again = epoch(table, Batching(size=20, **settings), mixing={"source0": Mixing(weight=1.0)})
    assert [sentences(batch) for batch in again] == [sentences(batch) for batch in batches]


def test_first_anchor_keeps_the_order_of_the_source():
    batches = epoch(table_of(toy_groups([4] * 10)), Batching(size=5, anchor="first"))
    for batch in batches:
        assert torch.equal(batch.slot, batch.lang)  # toy groups: slot i is in language i


def test_temperature_evens_out_languages():
    table = table_of(pairs_with_counts({"aaa": 900, "aab": 100}))
    rare = table.languages.index("aab")

    def share(temperature):
        batches = epoch(table, Batching(size=100, pool=1, temperature=temperature))
        assert len(batches) == 10
        return [int((b.lang == rare).sum()) for b in batches]

    assert share(1.0) == pytest.approx([10] * 10, abs=2)  # and every batch has its share
    assert share(2.0) == pytest.approx([25] * 10, abs=2)  # 30 : 10
    assert share(1e9) == pytest.approx([50] * 10, abs=2)


def test_temperature_evens_out_languages_of_all_sources_together():
    sources = {"aaa": 100}, {"aaa": 300}, {"aab": 400}, {"aac": 100}
    table = table_of(*map(pairs_with_counts, sources))
    assert items_of(table, Batching(temperature=1e9))[0] == [[75, 225, 300, 300]] * 2
    assert items_of(table, Batching(temperature=2.0))[0] == [[90, 270, 360, 180]] * 2  # 20 : 20 : 10


def test_weights_mix_sources():
    table = table_of(pairs_with_counts({"aaa": 300}), pairs_with_counts({"aab": 100}))
    mixing = {"source0": Mixing(weight=1.0), "source1": Mixing(weight=3.0)}
    batches = Batches(table, Batching(size=40), seed=1, mixing=mixing)
    met = Counter(row for _ in range(batches.count()) for row in sentences(batches.next()))
    assert max(met.values()) - min(v for v in met.values()) <= 4  # 100 groups, 300 times: each three times


def items_of(table, batching, **mixing):
    """How many items of each source an epoch has, for two epochs, and the groups of each."""
    found = [epoch_items(table, batching, seed=1, epoch=number, mixing=mixing) for number in (0, 1)]
    counts = [np.bincount(table.source[items.group], minlength=len(table.sources)).tolist() for items in found]
    return counts, [items.group for items in found]


def test_a_cap_limits_an_epoch_and_other_epochs_draw_other_items():
    table = table_of(pairs_with_counts({"aaa": 300, "aab": 100}), pairs_with_counts({"aac": 50}))
    counts, groups = items_of(table, Batching(), source0=Mixing(cap=80))
    assert counts == [[80, 50]] * 2
    kept = [set(found[table.source[found] == 0].tolist()) for found in groups]
    assert len(kept[0]) == 80
    assert kept[0] != kept[1]
    rare = table.languages.index("aab")
    starts, _ = table.row_bounds(groups[0])
    assert np.sum(table.lang[starts] == rare) == 20  # languages of a source keep their parts
    assert items_of(table, Batching(), source0=Mixing(cap=1000))[0] == [[400, 50]] * 2
    table = table_of(pairs_with_counts({"aaa": 60, "aab": 60}), pairs_with_counts({"aac": 60, "aad": 60}))
    assert items_of(table, Batching(), source0=Mixing(cap=5), source1=Mixing(cap=5))[0] == [[5, 5]] * 2  # 2.5 of each


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
    st.lists(st.integers(0, 70), min_size=4, max_size=4),
    st.lists(st.sampled_from([None, None, 0.5, 3.0]), min_size=4, max_size=4),
    st.sampled_from([1.0, 2.0, 1e9]),
)
def test_no_mixture_passes_a_cap_and_weights_are_shares(sizes, caps, weights, temperature):
    table = table_of(*(pairs_with_counts({"aaa": size, "aab": 1 + size // 3}) for size in sizes))
    mixing = {f"source{i}": Mixing(weight=weights[i], cap=caps[i]) for i in range(len(sizes))}
    (counts, again), _ = items_of(table, Batching(temperature=temperature), **mixing)
    assert counts == again
    capped = [min(size + 1 + size // 3, cap or 1000) for size, cap in zip(sizes, caps, strict=False)]
    assert all(count <= (cap or 1000) for count, cap in zip(counts, caps, strict=False))
    assert sum(counts) <= sum(capped)
    if temperature == 1 and not any(weights[: len(sizes)]):
        assert counts == capped
    if any(weights[: len(sizes)]) and not any(caps[: len(sizes)]):
        goals = np.array([weight or 1.0 for weight in weights[: len(sizes)]])
        np.testing.assert_allclose(counts, goals / goals.sum() * sum(capped), atol=2)


def test_the_temperature_evens_out_the_languages_of_each_weighted_source():
    table = table_of(pairs_with_counts({"aaa": 900, "aab": 100}), pairs_with_counts({"aac": 200}))
    counts, groups = items_of(table, Batching(temperature=2.0), source0=Mixing(weight=1.0), source1=Mixing(weight=2.0))
    assert counts == [[400, 800]] * 2
    starts, _ = table.row_bounds(groups[0])
    met = np.bincount(table.lang[starts], minlength=len(table.languages))
    assert met[table.languages.index("aab")] == 100  # 30 : 10
    assert met[table.languages.index("aaa")] == 300


def test_a_source_may_limit_the_sentences_of_its_groups():
    table = table_of(toy_groups([6] * 5, hard=1), toy_groups([6] * 5), toy_groups([6] * 5))
    mixing = {"source0": Mixing(most=2), "source1": Mixing(most=9)}
    batch = Batches(table, Batching(size=15, most=4), seed=1, mixing=mixing).next()
    sizes = Counter(batch.group[batch.slot >= 0].tolist())
    assert sorted(Counter(sizes.values()).items()) == [(2, 5), (4, 5), (6, 5)]


def test_an_empty_corpus_and_a_matching_within_one_language_are_refused():
    with pytest.raises(ValueError, match="no groups"):
        Batches(table_of([]), Batching(), seed=1)
    with pytest.raises(CorpusError, match="no group contains sentences of two languages"):
        Batches(table_of([Group(("a", "b"), ("aaa", "aaa"))]), Batching(rows="matching"), seed=1).count()
