"""Tab-separated text: round trip, header, scores, and every way a line can be wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.core.errors import CorpusError
from isoglot.data.groups import Group
from isoglot.data.readers import read_tsv

CELL = st.text(st.characters(exclude_characters="\0\n\r\t\ufeff", exclude_categories=["Cs"]), max_size=20)
SENTENCE = CELL.filter(str.strip)
LANGUAGES = ["deu", "eng", "zho_Hans", "und"]


def write(path, *lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


@given(
    st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(SENTENCE, min_size=n, max_size=n), min_size=1, max_size=8))
)
def test_what_is_written_is_read(tmp_path_factory, rows):
    langs = tuple(LANGUAGES[: len(rows[0])])
    path = tmp_path_factory.mktemp("tsv") / "a.tsv"
    write(path, "\t".join(langs), *("\t".join(row) for row in rows))
    assert list(read_tsv(path)) == [Group(tuple(row), langs) for row in rows]


def test_languages_replace_the_header(tmp_path):
    path = write(tmp_path / "a.tsv", "Hi\tHallo")
    assert list(read_tsv(path, languages="en,de")) == [Group(("Hi", "Hallo"), ("eng", "deu"))]
    assert list(read_tsv(path, languages=["en", "_"])) == [Group(("Hi",), ("eng",))]


def test_a_header_that_repeats_the_languages_is_no_sentence(tmp_path):
    path = write(tmp_path / "a.tsv", "en\tdeu", "Hi\tHallo")
    assert [group.texts for group in read_tsv(path, languages="en,de")] == [("Hi", "Hallo")]


def test_empty_cells_make_smaller_groups(tmp_path):
    path = write(tmp_path / "a.tsv", "en\tde\tfr", "Hi\t\tSalut", "\t \tOui")
    assert list(read_tsv(path)) == [Group(("Hi", "Salut"), ("eng", "fra")), Group(("Oui",), ("fra",))]


def test_scores_become_extras(tmp_path):
    path = write(tmp_path / "a.tsv", "score\ten\tde", "1.25\tHi\tHallo")
    assert list(read_tsv(path)) == [Group(("Hi", "Hallo"), ("eng", "deu"), extras={"score": 1.25})]


def test_the_lines_before_a_fault_are_given(tmp_path):
    path = write(tmp_path / "a.tsv", "en\tde", "a\tb", "c")
    groups = read_tsv(path)
    assert next(groups).texts == ("a", "b")
    with pytest.raises(CorpusError):
        next(groups)
