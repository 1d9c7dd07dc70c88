"""Plain lines are groups of one."""

from __future__ import annotations

from collections import Counter

import pytest

from isoglot.data.groups import Group
from isoglot.data.readers import read_sentences
from isoglot.errors import CorpusError


def test_each_line_is_a_group_of_one(tmp_path):
    (tmp_path / "a.txt").write_text("one\ttab\ntwo\n")
    assert list(read_sentences(tmp_path / "a.txt")) == [Group(("one\ttab",), ("und",)), Group(("two",), ("und",))]
    assert {group.langs for group in read_sentences(tmp_path / "a.txt", language="de")} == {("deu",)}


def test_blank_lines_are_errors_or_skipped(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\n \ntwo\n")
    with pytest.raises(CorpusError, match=r"a\.txt:2: is empty"):
        list(read_sentences(tmp_path / "a.txt"))
    counts = Counter()
    assert len(list(read_sentences(tmp_path / "a.txt", skip_empty=True, counts=counts))) == 2
    assert counts == {"empty": 2}


def test_an_unknown_language_is_named(tmp_path):
    with pytest.raises(CorpusError, match=r"a\.txt: unknown language 'xx'"):
        list(read_sentences(tmp_path / "a.txt", language="xx"))
