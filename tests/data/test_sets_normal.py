"""The normal form: what is written is read again, and damage is noticed."""

import json
import os
import shutil

import pytest
from folders import write
from hypothesis import given
from hypothesis import strategies as st
from killed import kill_at_every_change, tree

from isoglot.core.errors import CorpusError, OutputError
from isoglot.data.readers import read as read_groups
from isoglot.data.sets.importers import find_parts, import_folder
from isoglot.data.sets.normal import MANIFEST, Part, Row, Rows, import_set, load_parts, parts_of, read

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
LABELS = st.none() | st.text(min_size=1) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def write_pairs(folder, *codes):
    """Tatoeba with a pair of lines for each language."""
    for code in codes or ("deu",):
        for side in (code, "eng"):
            write(folder / f"tatoeba.{code}-eng.{side}", f"{side} 1\n")


def part(rows, path):
    return Part("test", "deu", ("deu",), (path,), lambda: rows)


@given(st.lists(st.builds(Row, st.tuples(TEXT, TEXT), st.tuples(TEXT), LABELS, TEXT, TEXT), min_size=1, max_size=5))
def test_rows_come_back_as_they_were(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("n")
    write(folder / "raw.txt", "x\n")
    assert import_set("mine", parts_of([part(rows, folder / "raw.txt")]), folder / "mine") == len(rows)
    (found,) = load_parts("mine", folder / "mine").values()
    again = read(found)
    assert again == Rows(rows)
    assert [type(row.label) for row in again] == [type(row.label) for row in rows]
    assert load_parts("other", folder / "mine") == {}


def test_an_imported_set_is_found_by_its_name_and_keeps_places_and_checksums(tmp_path):
    for side in ("deu", "eng"):
        write(tmp_path / f"raw/tatoeba.deu-eng.{side}", f"{side} 1\n{side} 2\n")
    before = find_parts("tatoeba-laser", tmp_path / "raw")
    import_set("tatoeba-laser", before, tmp_path / "data" / "tatoeba-laser")
    for path in (tmp_path / "raw").iterdir():
        path.unlink()
    for folder in (tmp_path / "data", tmp_path / "data" / "tatoeba-laser"):
        (found,) = find_parts("tatoeba-laser", folder).values()
        rows = read(found)
        assert rows.texts(1) == ["eng 1", "eng 2"]
        assert rows.place(1)(1) == f"{tmp_path / 'raw/tatoeba.deu-eng.eng'}:2"
    group = next(iter(read_groups("jsonl", tmp_path / "data/tatoeba-laser/test/deu-eng.jsonl")))
    assert (group.texts, group.langs) == (("deu 1", "eng 1"), ("deu", "eng"))
    (entry,) = json.loads((tmp_path / "data/tatoeba-laser" / MANIFEST).read_text())["parts"]
    assert entry["rows"] == 2
    assert all(len(digest) == 64 for digest in entry["published"].values())


def test_nothing_to_score_is_refused_with_the_file(tmp_path):
    with pytest.raises(CorpusError, match=r"raw.txt: has no row"):
        read(part([], tmp_path / "raw.txt"))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        *((MANIFEST, text) for text in ("{", "[]", '{"set": "mine"}', '{"set": "mine", "parts": [{"split": "a"}]}')),
        *(("test/deu.jsonl", row) for row in ("{", '{"texts": ["a"]}', '{"texts": [1], "places": ["x:1"]}')),
        ("test/deu.jsonl", '{"texts": "", "places": 1}'),
    ],
)
def test_a_damaged_manifest_or_row_is_refused_with_its_place(tmp_path, file, text):
    write(tmp_path / "raw.txt", "x\n")
    import_set("mine", parts_of([part([Row(("a",), ("x:1",))], tmp_path / "raw.txt")]), tmp_path / "mine")
    write(tmp_path / "mine" / file, text + "\n")
    with pytest.raises(CorpusError, match=rf"{file}{':1' if file.startswith('test') else ''}: "):
        [read(one) for one in load_parts("mine", tmp_path / "mine").values()]


def test_a_folder_is_imported_once_more_and_another_name_is_an_error(tmp_path):
    write_pairs(tmp_path / "raw")
    for _ in range(2):
        assert import_folder("tatoeba-laser", tmp_path / "raw", tmp_path) == (tmp_path / "tatoeba-laser", 1)
    with pytest.raises(CorpusError, match=r"'TATOEBA-LASER'; did you mean 'tatoeba-laser'"):
        import_folder("TATOEBA-LASER", tmp_path / "raw", tmp_path)
    with pytest.raises(CorpusError, match="does not contain tnews; it needs a folder tnews"):
        import_folder("tnews", tmp_path / "raw", tmp_path)


@pytest.mark.parametrize("name", ["test/deu-eng.jsonl", "test/other.jsonl", "notes.txt"])
def test_files_of_the_user_are_no_parts_of_a_killed_import(tmp_path, name):
    write_pairs(tmp_path / "raw", "deu", "fra")
    write(tmp_path / "tatoeba-laser" / name, '{"texts": ["mine"], "langs": ["deu"]}\n')
    with pytest.raises(OutputError, match="something else"):
        import_folder("tatoeba-laser", tmp_path / "raw", tmp_path)
    assert (tmp_path / "tatoeba-laser" / name).read_text() == '{"texts": ["mine"], "langs": ["deu"]}\n'


@pytest.mark.skipif(os.name == "nt", reason="forks are of POSIX systems")
@pytest.mark.parametrize(
    ("by", "again", "codes"),
    [
        pytest.param(None, False, ["deu"], id="killed-first"),
        pytest.param(None, False, ["deu", "fra"], id="killed-first of two", marks=pytest.mark.slow),
        pytest.param(None, True, ["deu", "fra"], id="killed-second", marks=pytest.mark.slow),
        pytest.param(KeyboardInterrupt(), False, ["deu", "fra"], id="Ctrl-C-first", marks=pytest.mark.slow),
        pytest.param(KeyboardInterrupt(), True, ["deu", "fra"], id="Ctrl-C-second", marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_an_import_that_was_stopped_anywhere_is_repeated_by_the_same_call(tmp_path, by, again, codes):
    write_pairs(tmp_path / "raw", *codes)

    def work():
        return import_folder("tatoeba-laser", tmp_path / "raw", tmp_path / "data")

    assert work() == (tmp_path / "data/tatoeba-laser", len(codes))
    whole = tree(tmp_path / "data")

    def check():
        assert len(load_parts("tatoeba-laser", tmp_path / "data/tatoeba-laser")) in {len(codes), len(codes) * again}
        assert work()[1] == len(codes)
        assert tree(tmp_path / "data") == whole
        if not again:
            shutil.rmtree(tmp_path / "data")

    if not again:
        shutil.rmtree(tmp_path / "data")
    assert kill_at_every_change(work, check, by=by) > 9
