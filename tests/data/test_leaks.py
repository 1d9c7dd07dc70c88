"""No sentence of a test set survives in the training text, in whatever spelling; languages; repetitions."""

import gzip
import sys
from collections import Counter
from dataclasses import replace
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError
from isoglot.data import filters
from isoglot.data.filters import Seen
from isoglot.data.groups import Group

PAIR = Group(("Hi", "Hallo"), ("eng", "deu"))


def test_only_the_wanted_languages_stay():
    groups = [PAIR, Group(("Hi", "你好", "Salut"), ("eng", "zho_Hans", "fra"), "k", ("No", "Non"), ("eng", "fra"))]
    counts = Counter()
    (group,) = filters.select_languages(groups, "en,zh", counts=counts)
    assert group == Group(("Hi", "你好"), ("eng", "zho_Hans"), "k", ("No",), ("eng",))
    assert counts == {"of other languages": 1, "shortened": 1}
    assert list(filters.select_languages([Group(("Hi",), ("eng",))], ["en"])) == [Group(("Hi",), ("eng",))]
    assert list(filters.select_languages([PAIR], ["de", "en"])) == [PAIR]
    with pytest.raises(CorpusError, match="unknown language 'xx'"):
        list(filters.select_languages([PAIR], "en,xx"))


def test_groups_with_the_same_sentences_are_repetitions():
    others = [
        Group(("Hi", "Hallo"), ("eng", "nld")),
        Group(("HiHallo",), ("eng",)),
        Group(("Hi", "Hallo"), ("eng", "deu"), "", ("No",), ("eng",)),
        Group(("Hi",), ("eng",), "", ("Hallo",), ("deu",)),
        *(replace(PAIR, extras={name: value}) for name in ("label", "entity") for value in (0, 1)),
    ]
    counts = Counter()
    again = [Group(("Hallo", "Hi"), ("deu", "eng")), PAIR, Group(("Hi", "Hallo", "Hi"), ("eng", "deu", "eng"))]
    again += [replace(PAIR, extras={"score": 1.5}), replace(PAIR, extras={"entity": 1, "hard_entities": (4, -1)})]
    assert list(filters.deduplicate([PAIR, *others, *again, *others], counts=counts)) == [PAIR, *others]
    assert counts == {"repeated": 13}
    seen = filters.Seen()  # one memory finds repetitions across sources
    assert [list(filters.deduplicate([PAIR], seen=seen)) for _ in range(2)] == [[PAIR], []]


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


def pair(english, german="Etwas ganz anderes"):
    return Group((english, german), ("eng", "deu"))


SAME = {
    **{"Tom is here.": "tom is here", "Straße!": "STRASSE", "ﬁne ①": "fine 1", "Cafe\u0301": "café"},
    **{"a\u200bb\u00adc": "abc", "50 $ + x_y": "50xy", "「はい。」": "はい", "Ｈｅｌｌｏ": "hello"},
}
OTHERS = {"Tom is here": "Tom was here", "1 2": "1 3", "?!": "!?", "?": "Ja?", "...": "!"}


def test_spellings_that_are_the_same_and_others():
    assert {one: filters.normalise(one) for one in SAME} == {one: filters.normalise(SAME[one]) for one in SAME}
    assert [one for one in OTHERS if filters.normalise(one) == filters.normalise(OTHERS[one])] == []


def test_letters_and_numbers_are_all_that_is_left():
    # All planes that have letters; of the others, with private and unassigned characters, some.
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x33000), *range(0x33000, sys.maxunicode, 97)]))
    assert {category(character)[0] for character in filters.normalise(everything)} == {"L", "N"}


def test_groups_that_touch_a_test_sentence_are_dropped_and_counted():
    tests = frozenset(map(filters.normalise, ["Tom is here.", "Nein!", "?!"]))
    clean = [pair("Tom was here."), pair("?")]
    leaks = [pair("TOM IS HERE"), pair("No", "nein"), pair("?!"), Group(("a",), ("eng",), "", ("Nein",), ("deu",))]
    counts = Counter()
    assert list(filters.remove_leaks([*leaks, *clean], tests, counts=counts)) == clean
    assert counts == {"leaked": 4}


def test_test_sentences_come_from_files_patterns_and_folders(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt.gz").write_bytes(gzip.compress(b"One\n\nTwo\tThree\n"))
    (tmp_path / "b.jsonl").write_text('{"en": "Four", "de": "Vier"}\n')
    (tmp_path / "c.tmx").write_text('<tmx><body><tu><tuv xml:lang="en"><seg>Five</seg></tuv></tu></body></tmx>')
    (tmp_path / "d.po").write_text('msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "Six"\nmsgstr "Sechs"\n')
    (tmp_path / "e.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nSev\nen\n")
    (tmp_path / "f.csv").write_text('en,de\n"Eig,\nht",Acht\n')
    (tmp_path / ".hidden").write_bytes(b"\xff")
    sentences = {"one", "two", "three", "four", "vier", "five", "six", "sechs", "seven", "eight", "acht"}
    assert filters.test_sentences(tmp_path) == sentences | {"en", "de"}  # each cell of a table counts
    found = filters.test_sentences([tmp_path / "b.jsonl", str(tmp_path / "*" / "*.gz")])
    assert found == {"one", "two", "three", "four", "vier"}
    assert [path.name for path in filters.files_in(str(tmp_path / "**" / "*.t*"))] == ["c.tmx", "a.txt.gz"]


@pytest.mark.parametrize(
    "name, message", [("*.nix", "no file has a name"), ("nothing.txt", "no such file"), ("empty", "contains no files")]
)
def test_test_files_that_are_not_there_are_errors(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=message):
        filters.test_sentences(tmp_path / name)
