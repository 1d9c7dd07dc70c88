"""Triplets of premise, entailment and contradiction."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.data.groups import Group
from isoglot.data.readers import read_nli
from isoglot.errors import CorpusError

CELL = st.text(st.characters(exclude_characters="\0\r\ufeff", exclude_categories=["Cs"]), max_size=15)
SENTENCE = CELL.filter(str.strip)


def triplet(premise, entailment, *contradiction):
    return Group((premise, entailment), ("eng", "eng"), premise, contradiction, ("eng",) * len(contradiction))


@given(rows=st.lists(st.tuples(SENTENCE, SENTENCE, SENTENCE), min_size=1, max_size=6))
def test_quoted_csv_comes_back(tmp_path_factory, rows):
    stream = io.StringIO()
    csv.writer(stream).writerows([("sent0", "sent1", "hard_neg"), *rows])
    path = tmp_path_factory.mktemp("nli") / "a.csv"
    path.write_bytes(stream.getvalue().encode())
    assert list(read_nli(path, language="en")) == [triplet(*row) for row in rows]


def test_tab_separated_lines_with_and_without_contradiction_or_header(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('premise\tentailment\tcontradiction\nA "man".\tHe\tShe\nB\tC\t\nD\tE\n')
    expected = [triplet('A "man".', "He", "She"), triplet("B", "C"), triplet("D", "E")]
    assert list(read_nli(path, language="en")) == expected
    path.write_text(path.read_text().partition("\n")[2])
    assert list(read_nli(path, language="en")) == expected


def test_without_a_key_rows_of_one_premise_are_negatives(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("A\tB\tC\n")
    assert list(read_nli(path, language="en", key="none")) == [Group(("A", "B"), ("eng", "eng"), "", ("C",), ("eng",))]
    with pytest.raises(CorpusError, match="key must be premise or none, not 'no'"):
        list(read_nli(path, key="no"))


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", "a\tb\tc\na\n", "a.tsv:2: 1 columns where premise"),
        ("a.tsv", "a\tb\tc\td\n", "a.tsv:1: 4 columns"),
        ("a.tsv", "\tb\tc\n", "a.tsv:1: the premise is empty"),
        ("a.tsv", "a\t \tc\n", "a.tsv:1: the entailment is empty"),
        ("a.tsv", "sent0\tsent1\n", "a.tsv: contains a header and no text"),
        ("a.csv", 'a,b,c\n"two\nlines",b,c\n"open,b,c\n', "a.csv:4: is not quoted as CSV"),
        ("a.csv", "a,b,c\n\na\n", "a.csv:3: 1 columns"),
    ],
)
def test_wrong_rows_are_named(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(CorpusError) as caught:
        list(read_nli(tmp_path / name))
    assert message in str(caught.value)
