"""The table of readers: reached by name, checked before a file is opened."""

from __future__ import annotations

import pytest

from isoglot.data.readers import READERS, check, files_of, read
from isoglot.errors import CorpusError, RecipeError


def test_a_reader_is_reached_by_name(tmp_path):
    (tmp_path / "a.tsv").write_text("en\tde\nHi\tHallo\n")
    assert next(read("tsv", tmp_path / "a.tsv")).texts == ("Hi", "Hallo")
    assert next(read("tsv", tmp_path / "a.tsv", languages=["en", "de"])).langs == ("eng", "deu")


def test_unknown_readers_and_options_are_refused_at_once():
    with pytest.raises(RecipeError, match="unknown reader 'tvs'; did you mean 'tsv'"):
        read("tvs", "a")
    with pytest.raises(RecipeError, match=r"^sources\.0: unknown reader 'qqq'; known: tsv, csv, xlsx, moses"):
        check("qqq", {}, where="sources.0")
    with pytest.raises(RecipeError, match="reader 'tsv' has no option 'language'; did you mean 'languages'"):
        read("tsv", "a", language="en")


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_is_lazy_and_names_the_file_it_cannot_find(reader, tmp_path):
    groups = read(reader, tmp_path / "nothing-here")
    with pytest.raises(CorpusError, match="nothing-here"):
        next(groups)


@pytest.mark.parametrize(
    "reader", [name for name in READERS if name not in ("moses", "folder", "dataset", "xnli", "entities")]
)
def test_every_reader_of_files_refuses_an_empty_one(reader, tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(CorpusError, match="no text"):
        next(read(reader, tmp_path / "a"))


def test_the_files_behind_a_path(tmp_path):
    for name in ("a.de", "a.en", "b[1].de", "sub/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert [path.name for path in files_of(tmp_path / "a.de")] == ["a.de"]
    assert [path.name for path in files_of(tmp_path / "a")] == ["a.de", "a.en"]
    assert [path.name for path in files_of(tmp_path / "b[1]")] == ["b[1].de"]
    assert [path.name for path in files_of(tmp_path)] == ["a.de", "a.en", "b[1].de", "c"]
    with pytest.raises(CorpusError, match="no such file"):
        files_of(tmp_path / "nothing")
