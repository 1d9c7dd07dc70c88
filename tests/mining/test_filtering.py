"""Filtering of parallel text by margins, against the definition in loops."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from isoglot.data import Group
from isoglot.encoders.base import Encoder
from isoglot.mining import filter_pairs
from isoglot.mining.filtering import filter_file, judge


class Table(Encoder):
    """Vectors by the word before the colon, with noise by the whole text."""

    def __init__(self):
        super().__init__()
        self.dim, self.max_length, self.calls = 16, 9, 0

    def encode(self, texts, *, progress=None, **_):
        self.calls += 1
        if progress:
            progress(len(texts), len(texts))
        return np.array([vector(text) for text in texts], np.float32)


@cache
def vector(text):
    meaning = np.random.default_rng(list(text.partition(":")[0].encode())).standard_normal(16)
    noise = np.random.default_rng(list(text.encode())).standard_normal(16)
    found = meaning + 0.2 * noise
    return found / np.linalg.norm(found)


def pairs(count, wrong=(), code="deu"):
    return [
        Group((f"{n}:eng", f"{n + 1000 if n in wrong else n}:{code}"), ("eng", code), key=str(n)) for n in range(count)
    ]


def score(groups, number, place, margin, k):
    """The margin in loops; the neighbours are those that are no known translations."""
    code = groups[number].langs[place]
    known = [(g.texts[0], t) for g in groups for t, c in zip(g.texts[1:], g.langs[1:], strict=True) if c == code]
    x, y = groups[number].texts[0], groups[number].texts[place]
    cosine = float(vector(x) @ vector(y))

    def around(text, others):
        return np.mean(sorted((float(vector(text) @ vector(other)) for other in others), reverse=True)[:k])

    of_x = around(x, {t for _, t in known} - {t for s, t in known if s == x})
    of_y = around(y, {s for s, _ in known} - {s for s, t in known if t == y})
    return cosine / ((of_x + of_y) / 2) if margin == "ratio" else cosine - (of_x + of_y) / 2


def test_wrong_pairs_are_dropped_and_counted_by_languages():
    wrong = {3, 17}
    groups = pairs(40, wrong) + pairs(30, {5}, "kor")
    found = filter_pairs(Table(), groups)
    assert found.dropped == [groups[3], groups[17], groups[45]]
    assert found.kept == [group for group in groups if group not in found.dropped]
    assert found.counts == {"eng-deu": {"kept": 38, "dropped": 2}, "eng-kor": {"kept": 29, "dropped": 1}}


@pytest.mark.parametrize("margin", ["ratio", "distance"])
@pytest.mark.parametrize("k", [1, 4])
def test_scores_are_those_of_the_definition(margin, k):
    groups = [*pairs(20, {3}), Group(("1:eng", "1:other", "2:wrong"), ("eng", "deu", "deu"))]
    for number, group in enumerate(groups):
        for place, text in enumerate(group.texts[1:], 1):
            expected = score(groups, number, place, margin, k)
            for threshold, is_kept in ((expected - 1e-4, True), (expected + 1e-4, False)):
                parts = list(judge(Table(), groups, margin=margin, threshold=threshold, k=k))[number]
                assert [part is not None and text in part.texts for part in parts] == [is_kept, not is_kept]


def test_of_a_larger_group_the_wrong_sentences_are_dropped():
    groups = [
        Group(tuple(f"{n}:{c}" for c in "abc"), ("eng", "deu", "kor"), hard_negatives=("x",), hard_langs=("eng",))
        for n in range(20)
    ]
    bad = Group(("50:a", "51:b", "50:c"), ("eng", "deu", "kor"))
    found = filter_pairs(Table(), [*groups, bad, Group(("60:a", "61:b"), ("eng", "kor"))])
    assert found.kept == [*groups, Group(("50:a", "50:c"), ("eng", "kor"))]
    assert found.dropped == [Group(("50:a", "51:b"), ("eng", "deu")), Group(("60:a", "61:b"), ("eng", "kor"))]


def test_what_has_no_others_to_be_compared_with_is_kept_and_counted():
    for given, languages, name in (([("1:x", "900:y")], ("eng", "deu"), "eng-deu"), (["1:x"], "eng", "eng")):
        found = filter_pairs(Table(), given, languages=languages)
        assert (len(found.kept), found.counts) == (1, {name: {"not judged": 1}})


def test_pairs_in_both_directions_are_judged_as_in_one():
    """A sentence is on both sides, and its own text is no unrelated sentence."""
    groups = [Group((f"{n}:a", f"{n + 1000 if n == 3 else n}:b"), ("eng", "eng")) for n in range(20)]
    turned = [Group(group.texts[::-1], group.langs) for group in groups]
    assert filter_pairs(Table(), groups + turned, k=1).dropped == [groups[3], turned[3]]


def test_a_sentence_with_more_translations_than_neighbours_is_judged():
    many = [Group(("yes:eng", f"{'yes' if number else 'no'}:{number}"), ("eng", "deu")) for number in range(60)]
    found = filter_pairs(Table(), pairs(30) + many)
    assert found.dropped == many[:1]
    assert found.counts == {"eng-deu": {"kept": 89, "dropped": 1}}
    assert filter_pairs(Table(), many).counts == {"eng-deu": {"not judged": 60}}


def test_an_absolute_margin_is_the_cosine():
    groups = pairs(5, {2})
    assert filter_pairs(Table(), groups, margin="absolute", threshold=0.6).dropped == [groups[2]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"margin": "absolute"}, "'absolute' has no default threshold"),
        ({"margin": "rato"}, "margin is 'rato'"),
        ({"k": 0}, "k is 0; it must be at least 1"),
        ({"block": 1}, "block is 1; it must be at least 2"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        filter_pairs(Table(), pairs(5), **settings)


@pytest.mark.parametrize("count", [20, 21, 29, 30, 41])
def test_the_last_pair_is_compared_with_as_many_as_the_others(count):
    """A block of its own for the last pair left it nothing to be compared with."""
    groups = pairs(count, {count - 1})
    found = filter_pairs(Table(), groups, block=40)
    assert found.dropped == groups[-1:]
    assert found.counts == {"eng-deu": Counter(kept=count - 1, dropped=1)}


def test_a_file_is_filtered_in_blocks(tmp_path):
    path, model, seen = tmp_path / "a.tsv", Table(), []
    path.write_text("en\tde\n" + "".join("\t".join(group.texts) + "\n" for group in pairs(60, {7, 33})))
    counts = filter_file(
        model, path, tmp_path / "out.jsonl", dropped=tmp_path / "bad.jsonl", block=40,
        progress=lambda *numbers: seen.append(numbers),
    )  # fmt: skip
    assert counts == {"eng-deu": Counter(kept=58, dropped=2)}
    assert model.calls == 3
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 58
    first, *_ = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert first == '{"texts": ["7:eng", "1007:deu"], "langs": ["eng", "deu"]}'
    assert seen == [(40, 40)] * 3
