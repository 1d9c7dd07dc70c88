"""Line-aligned files, as Moses pairs and as folders of many languages."""

from collections import Counter

import folders
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoglot.data.groups import Group
from isoglot.data.readers import read_folder, read_moses
from isoglot.data.readers.aligned import language_in_name, split_name

SENTENCE = st.text(st.characters(exclude_characters="\0\n\r\ufeff", exclude_categories=["Cs"]), max_size=20).filter(
    str.strip
)


def write(folder, files):
    for name, text in files.items():
        folders.write(folder / name, text)


def texts(groups):
    return [group.texts for group in groups]


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=8))
def test_moses_files_come_back_as_pairs(tmp_path_factory, pairs):
    folder = tmp_path_factory.mktemp("moses")
    write(folder, {f"a.{code}": "".join(pair[i] + "\n" for pair in pairs) for i, code in enumerate(("de", "en"))})
    assert list(read_moses(folder / "a")) == [Group(pair, ("deu", "eng")) for pair in pairs]


@pytest.mark.parametrize(
    "name, parts",
    [
        ("news.deu.txt.xz", ("news", "deu")),
        ("deu.txt", ("", "deu")),
        ("zho_Hans.gz", ("", "zho_Hans")),
        ("tatoeba.afr-eng.afr", ("tatoeba.afr-eng", "afr")),
        ("newstest2019-ref.zho-CN.txt.xz", ("newstest2019-ref", "zho-CN")),
        ("metadata.tsv.xz", ("metadata.tsv.xz", None)),
        ("README.md", ("README.md", None)),
        ("a.de-en.ids", ("a.de-en.ids", None)),
    ],
)
def test_file_names_tell_the_language(name, parts):
    assert split_name(name) == parts


def test_the_language_of_a_document_is_before_its_suffix():
    codes = {"a.deu.docx": "deu", "film.de.srt": "de", "film.srt": None, "a.eng.md.xz": "eng", "a.eng.xz": "eng"}
    codes |= {"film.eng.SDH.srt": "eng", "film.en.sdh.srt.gz": "en", "a.sdh": "sdh"}
    assert {name: language_in_name(name) for name in codes} == codes


def test_the_files_and_their_order_are_told_by_the_pair_in_the_name_by_languages_or_named(tmp_path):
    files = {"a.en-de.de.gz": "Hallo\n", "a.en-de.en.gz": "Hi\n", "a.en-de.fr": "Salut\n", "a.en-de.ids": "1\n"}
    write(tmp_path, files)
    assert list(read_moses(tmp_path / "a.en-de")) == [Group(("Hi", "Hallo"), ("eng", "deu"))]
    write(tmp_path, {"a.cmn": "你好\n", "a.en": "Hi\n", "a.fr": "Salut\n"})
    assert texts(read_moses(tmp_path / "a", languages="fr,zh")) == [("Salut", "你好")]
    write(tmp_path, {"left": "Hi\n", "right": "Hallo\n", "x.en": "Hi\n", "y.de": "Hallo\n"})
    pair = [Group(("Hi", "Hallo"), ("eng", "deu"))]
    assert list(read_moses(tmp_path / "left", other="right", languages="en,de")) == pair
    assert list(read_moses(tmp_path / "x.en", other=tmp_path / "y.de")) == pair


def test_empty_lines_can_be_skipped_and_are_counted(tmp_path):
    write(tmp_path, {"a.de": "eins\n\n \n", "a.en": "one\ntwo\nthree\n"})
    counts = Counter()
    assert texts(read_moses(tmp_path / "a", skip_empty=True, counts=counts)) == [("eins", "one")]
    assert counts == {"empty": 2}


def test_a_folder_of_many_languages(tmp_path):
    files = {"news-ref.deu.txt.xz": "Hallo\nJa\n", "news-ref.zho-CN.txt.xz": "你好\n是\n"}
    write(tmp_path, files | {"news-src.eng.txt.xz": "Hi\nYes\n", "README.md": "words", "LICENSE": "words"})
    langs = ("deu", "eng", "zho_Hans")
    assert list(read_folder(tmp_path)) == [Group(("Hallo", "Hi", "你好"), langs), Group(("Ja", "Yes", "是"), langs)]
    assert texts(read_folder(tmp_path, languages="zh,en")) == [("Hi", "你好"), ("Yes", "是")]


def test_skipping_empty_lines_shortens_groups_of_many(tmp_path):
    write(tmp_path, {"de.txt": "Hallo\n\n\n", "en.txt": "Hi\nYes\n\n", "fr.txt": "Salut\nOui\nNon\n"})
    counts = Counter()
    groups = list(read_folder(tmp_path, skip_empty=True, counts=counts))
    assert groups[1] == Group(("Yes", "Oui"), ("eng", "fra"))
    assert len(groups) == 2
    assert counts == {"shortened": 1, "empty": 1}


def test_several_sets_must_be_chosen_from(tmp_path):
    write(tmp_path, {"train.de": "a\n", "train.en": "b\n", "val.de": "c\n", "val.en": "d\n"})
    assert texts(read_folder(tmp_path, sets="val")) == [("c", "d")]
    assert texts(read_folder(tmp_path, sets="*")) == [("a", "b"), ("c", "d")]


def test_a_folder_of_pair_folders(tmp_path):
    files = {"deu-eng/deu.txt": "a\n", "deu-eng/eng.txt": "b\n", "eng-fra/eng.txt": "c\n", "eng-fra/fra.txt": "d\n"}
    write(tmp_path, files)
    assert texts(read_folder(tmp_path, sets="*")) == [("a", "b"), ("c", "d")]
    assert texts(read_folder(tmp_path, sets="eng-*")) == [("c", "d")]
    assert texts(read_folder(tmp_path, sets="*", languages="de,en")) == [("a", "b")]
