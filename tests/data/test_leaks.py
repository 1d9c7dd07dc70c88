"""No sentence of a test set survives in the training text, in whatever spelling."""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from unicodedata import category

import pytest

from isoglot.data import filters
from isoglot.data.groups import Group
from isoglot.errors import CorpusError


def pair(english, german="Etwas ganz anderes"):
    return Group((english, german), ("eng", "deu"))


@pytest.mark.parametrize(
    "one, other",
    [
        ("Tom is here.", "tom is here"),
        ("Straße!", "STRASSE"),
        ("ﬁne ①", "fine 1"),
        ("Cafe\u0301", "café"),
        ("a\u200bb\u00adc", "abc"),
        ("50 $ + x_y", "50xy"),
        ("「はい。」", "はい"),
        ("Ｈｅｌｌｏ", "hello"),
    ],
)
def test_spellings_that_are_the_same(one, other):
    assert filters.normalise(one) == filters.normalise(other)


@pytest.mark.parametrize(
    "one, other", [("Tom is here", "Tom was here"), ("1 2", "1 3"), ("?!", "!?"), ("?", "Ja?"), ("...", "!")]
)
def test_spellings_that_are_not(one, other):
    assert filters.normalise(one) != filters.normalise(other)


def test_letters_and_numbers_are_all_that_is_left():
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, sys.maxunicode + 1)]))
    assert {category(character)[0] for character in filters.normalise(everything)} == {"L", "N"}


def test_groups_that_touch_a_test_sentence_are_dropped_and_counted():
    tests = frozenset(map(filters.normalise, ["Tom is here.", "Nein!", "?!"]))
    clean = [pair("Tom was here."), pair("?")]
    leaks = [
        pair("TOM IS HERE"),
        pair("No", "nein"),
        pair("?!"),
        Group(("a",), ("eng",), "", ("Nein",), ("deu",)),
    ]
    counts = Counter()
    assert list(filters.remove_leaks([*leaks, *clean], tests, counts=counts)) == clean
    assert counts == {"leaked": 4}


def test_test_sentences_come_from_files_patterns_and_folders(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt.gz").write_bytes(gzip.compress(b"One\n\nTwo\tThree\n"))
    (tmp_path / "b.jsonl").write_text('{"en": "Four", "de": "Vier"}\n')
    (tmp_path / "c.tmx").write_text('<tmx><body><tu><tuv xml:lang="en"><seg>Five</seg></tuv></tu></body></tmx>')
    (tmp_path / ".hidden").write_bytes(b"\xff")
    assert filters.test_sentences(tmp_path) == {"one", "two", "three", "four", "vier", "five"}
    assert filters.test_sentences([tmp_path / "b.jsonl", str(tmp_path / "*" / "*.gz")]) == {
        "one",
        "two",
        "three",
        "four",
        "vier",
    }
    assert [path.name for path in filters.files_in(str(tmp_path / "**" / "*.t*"))] == ["c.tmx", "a.txt.gz"]


@pytest.mark.parametrize(
    "name, message", [("*.nix", "contains no files"), ("nothing.txt", "no such file"), ("empty", "contains no files")]
)
def test_test_files_that_are_not_there_are_errors(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(CorpusError, match=message):
        filters.test_sentences(tmp_path / name)
